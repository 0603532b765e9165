"""Estimates over seeds and tasks: against textbook formulas, at their edges, and by how often they hold the truth."""

import math
import random
import subprocess
import sys
from statistics import fmean, stdev, variance

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from rlvr_exp.core.crossed import (
    crossed,
    crossed_iqm,
    crossed_mean,
    crossed_median,
    crossed_ratio,
    differences,
    fold_spread,
    holm,
    layout,
    p_value,
    smallest_found,
)
from rlvr_exp.core.statistics import mean_interval

RATES = st.integers(1, 4).flatmap(
    lambda tasks: st.lists(st.lists(st.floats(0, 1), min_size=tasks, max_size=tasks), min_size=1, max_size=4)
)


def drawn(draw, seeds, tasks, of_seed, of_task, rest, middle=0.0):
    by_task = [draw.gauss(0, of_task) for _ in range(tasks)]
    rows = []
    for _ in range(seeds):
        own = draw.gauss(middle, of_seed)
        rows.append([own + task + draw.gauss(0, rest) for task in by_task])
    return rows


@pytest.mark.heavy
def test_the_module_loads_no_library() -> None:
    code = "import sys, rlvr_exp.core.crossed; print({'numpy', 'scipy', 'torch'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "set()"


def test_mean_squares_are_those_of_a_two_way_analysis_of_variance() -> None:
    values = [[1.0, 2.0, 6.0], [2.0, 5.0, 8.0]]
    of_tasks = [1.5, 3.5, 7.0]
    found = layout(values)
    assert (found.mean, found.freedoms) == (4.0, (1, 2, 2))
    assert found.between_seeds == pytest.approx(3 * variance([3.0, 5.0]))
    assert found.between_tasks == pytest.approx(2 * variance(of_tasks))
    left = [value - fmean(row) - task + 4 for row in values for value, task in zip(row, of_tasks, strict=True)]
    assert found.rest == pytest.approx(sum(one**2 for one in left) / 2)


def test_one_seed_has_the_interval_over_tasks_and_so_have_seeds_that_agree() -> None:
    row = [0.0, 0.25, 0.5, 1.0, 1.0]
    assert crossed_mean([row]) == pytest.approx(mean_interval(row))
    assert crossed_mean([row, row, row]) == pytest.approx(mean_interval(row))


def test_many_tasks_do_not_make_up_for_few_seeds() -> None:
    values = [[0.1] * 500, [0.2] * 500, [0.3] * 500]
    found = crossed(values)
    assert found.error == pytest.approx(0.1 / math.sqrt(3)) and found.freedom == pytest.approx(2.0)
    assert crossed_mean(values).low < 0 + 1e-9


@settings(deadline=None)
@given(RATES)
@example([[0.0, 5e-124]])
@example([[0.0625, 0.5], [0.0625, 0.0], [0.0625, 0.0]])
def test_an_interval_holds_its_mean_and_does_not_depend_on_order(values) -> None:
    mean, low, high = crossed_mean(values)
    assert 0.0 <= low <= mean + 1e-12 and mean - 1e-12 <= high <= 1.0
    turned = [row[::-1] for row in values[::-1]]
    assert crossed_mean(turned) == pytest.approx((mean, low, high), abs=1e-9)


def test_where_nothing_spreads_the_bound_is_the_exact_one() -> None:
    for value in (0.0, 0.3, 1.0):
        assert crossed_mean([[value] * 20] * 3) == pytest.approx(mean_interval([value] * 20))
    assert smallest_found([[0.0] * 20] * 3) == pytest.approx(1 - 0.025 ** (1 / 20))
    assert crossed_mean([[0.5], [0.7]]) == pytest.approx(mean_interval([0.6]))


@pytest.mark.parametrize("values", [[], [[]], [[1.0], [1.0, 2.0]]])
def test_other_tasks_for_other_seeds_are_refused(values) -> None:
    for estimate in (crossed, crossed_mean, crossed_iqm, crossed_median, p_value, smallest_found):
        with pytest.raises(ValueError, match="the same tasks for every seed"):
            estimate(values)
    with pytest.raises(ValueError, match="paired by seed and task|same tasks"):
        differences([[1.0]], values)


@settings(deadline=None)
@given(RATES)
@example([[0.0, 8.312166350257495e-15]])
def test_a_p_value_is_below_5_in_100_where_the_interval_leaves_out_0(values) -> None:
    changes = [[value - 0.3 for value in row] for row in values]
    _, low, high = crossed_mean(changes, -1.0, 1.0)
    p = p_value(changes)
    assert 0 <= p <= 1
    if abs(p - 0.05) > 1e-6:
        assert (p < 0.05) == (low > 0 or high < 0)


def test_the_p_value_of_one_seed_is_that_of_a_paired_t_test() -> None:
    first, second = [0.0, 0.5, 0.5, 1.0], [0.5, 0.5, 1.0, 1.0]
    assert p_value(differences([first], [second])) == pytest.approx(stats.ttest_rel(second, first).pvalue)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_never_lowers_a_p_value(ps) -> None:
    found = holm(ps)
    assert all(p <= corrected <= 1 for p, corrected in zip(ps, found, strict=True))
    assert min(found) == pytest.approx(min(1.0, len(ps) * min(ps)))
    ranked = sorted(range(len(ps)), key=ps.__getitem__)
    assert [found[i] for i in ranked] == sorted(found)


def test_holm_is_the_textbook_s_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_the_interquartile_mean_leaves_out_a_quarter_at_either_end() -> None:
    values = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 700.0]]
    assert crossed_iqm(values).value == pytest.approx(stats.trim_mean([*values[0], *values[1]], 0.25)) == 3.5


def test_one_seed_has_yuen_s_interval_of_a_trimmed_mean() -> None:
    row = [float(i * i) for i in range(20)]
    wide = stats.sem([min(max(value, row[5]), row[14]) for value in row]) / 0.5
    found = crossed_iqm([row])
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 19) * wide)


def test_a_ratio_is_that_of_the_means_and_scales() -> None:
    first, second = [[1.0, 2.0, 1.0], [2.0, 3.0, 1.0]], [[2.0, 5.0, 1.0], [4.0, 7.0, 1.0]]
    value, low, high = crossed_ratio(first, second)
    assert value == 2.0 and low < 2.0 < high
    doubled = crossed_ratio(first, [[2 * one for one in row] for row in second])
    assert doubled == pytest.approx((2 * value, 2 * low, 2 * high))
    assert crossed_ratio(first, first) == pytest.approx((1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="no ratio"):
        crossed_ratio([[0.0]], [[1.0]])


@pytest.mark.parametrize("of_seed", [0.0, 0.2])
@pytest.mark.parametrize("estimate", [crossed_mean, crossed_iqm, crossed_median], ids=["mean", "iqm", "median"])
def test_intervals_of_every_kind_hold_the_truth_about_95_times_in_100(estimate, of_seed) -> None:
    draw = random.Random(5)
    hits = 0
    for _ in range(300):
        values = drawn(draw, 5, 40, of_seed, 0.5, 0.5)
        _, low, high = estimate(values, -9.0, 9.0) if estimate is crossed_mean else estimate(values)
        hits += low <= 0.0 <= high
    assert 0.92 <= hits / 300 <= 0.99


def test_the_interval_of_a_ratio_holds_the_truth_about_95_times_in_100() -> None:
    draw, hits = random.Random(6), 0
    for _ in range(300):
        first = drawn(draw, 5, 40, 0.1, 0.3, 0.3, middle=2.0)
        _, low, high = crossed_ratio(first, [[1.5 * a + draw.gauss(0, 0.3) for a in row] for row in first])
        hits += low <= 1.5 <= high
    assert 0.92 <= hits / 300 <= 0.98


@pytest.mark.heavy
def test_the_smallest_difference_falls_with_seeds_and_with_tasks() -> None:
    def middle(seeds: int, tasks: int) -> float:
        draw = random.Random(1)
        return sorted(smallest_found(drawn(draw, seeds, tasks, 0.02, 0.2, 0.3)) for _ in range(41))[20]

    assert middle(3, 100) > middle(5, 100) > middle(10, 100) and middle(5, 50) > middle(5, 400)


@pytest.mark.property(39)
@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=6))
def test_the_variance_of_folds_is_the_naive_formula_s(values) -> None:
    found = fold_spread(values)
    means = [sum(row) / 3 for row in values]
    middle = sum(means) / len(means)
    assert found.mean == pytest.approx(middle)
    assert found.of_folds == pytest.approx(sum((one - middle) ** 2 for one in means) / (len(means) - 1), abs=1e-12)
    assert found.between_seeds == pytest.approx(fmean(stdev(row) ** 2 for row in values), abs=1e-12)


def test_folds_and_seeds_are_told_apart() -> None:
    draw = random.Random(2)
    found = [
        fold_spread(
            [[fold + draw.gauss(0, 0.02) for _ in range(3)] for fold in (draw.gauss(0.5, 0.05) for _ in range(5))]
        )
        for _ in range(400)
    ]
    assert fmean(one.between_folds for one in found) == pytest.approx(0.05**2, rel=0.1)
    assert fmean(one.between_seeds for one in found) == pytest.approx(0.02**2, rel=0.1)
    assert fold_spread([[0.5, 0.5], [0.5, 0.5]])[1:] == (0.0, 0.0, 0.0)
    assert fold_spread([[0.4], [0.6]])[2:] == (None, None), "one seed cannot tell"
    with pytest.raises(ValueError, match="2 and more"):
        fold_spread([[0.4, 0.5]])
