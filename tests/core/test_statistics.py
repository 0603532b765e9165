"""Estimates and their intervals: against textbook formulas, at their edges, and by how often they cover the truth."""

import math
import random
import subprocess
import sys
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist, fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlvr_exp.core.statistics import (
    bootstrap_interval,
    difference_error,
    mean_interval,
    pass_at_k,
    slope,
    t_interval,
    upper_bound,
    wilson,
)


@pytest.mark.heavy
def test_the_module_loads_no_library() -> None:
    code = "import sys, rlvr_exp.core.statistics; sys.exit(bool({'numpy', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_ends_of_a_wilson_interval_solve_its_equation(drawn):
    count, n = drawn
    share, low, high = wilson(count, n)
    assert 0 <= low <= share == count / n <= high <= 1
    z = NormalDist().inv_cdf(0.975)
    for end in (low, high):
        assert abs(end - share) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-9)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))))
def test_at_an_upper_bound_so_small_a_count_has_a_probability_of_5_percent(drawn):
    count, n = drawn
    assert stats.binom.cdf(count, n, upper_bound(count, n)) == pytest.approx(0.05, rel=1e-4)
    assert upper_bound(n, n) == upper_bound(0, 0) == 1


@pytest.mark.parametrize(("count", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_impossible_counts_are_refused(count, n):
    with pytest.raises(ValueError, match="wilson"):
        wilson(count, n)


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_k_subsets_with_a_pass(n, data):
    passed, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(combinations([i < passed for i in range(n)], k))
    exact = Fraction(sum(any(subset) for subset in subsets), len(subsets))
    assert pass_at_k(n, passed, k) == pytest.approx(float(exact), abs=1e-12)


def test_pass_at_k_neither_overflows_nor_loses_digits_at_thousands_of_samples():
    assert pass_at_k(10_000, 1, 1000) == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("samples, passed, k", [(4, 5, 1), (4, -1, 1), (4, 2, 5), (4, 2, 0)])
def test_pass_at_k_refuses_counts_that_cannot_be(samples, passed, k):
    with pytest.raises(ValueError, match="allowed"):
        pass_at_k(samples, passed, k)


def test_equal_tasks_get_the_exact_bound_not_a_zero_width_interval():
    zero, one = mean_interval([0.0] * 20, 0.0, 1.0), mean_interval([1.0] * 20, 0.0, 1.0)
    low, high = stats.binomtest(0, 20).proportion_ci(0.95, method="exact")
    assert zero == pytest.approx((0.0, low, high))
    assert one == pytest.approx((1.0, 1 - high, 1.0))
    assert high == pytest.approx(1 - 0.025 ** (1 / 20))


def test_the_t_interval_is_the_textbook_one():
    values = [0.0, 0.25, 0.5, 1.0]
    expected = stats.t.interval(0.95, 3, loc=fmean(values), scale=stats.sem(values))
    assert mean_interval(values, -9.0, 9.0) == pytest.approx((fmean(values), *expected))


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_holds_its_mean_and_stays_in_range(values):
    mean, low, high = mean_interval(values, 0.0, 1.0)
    assert 0.0 <= low <= mean + 1e-12 and mean - 1e-12 <= high <= 1.0


@pytest.mark.heavy
def test_the_interval_covers_the_truth_about_95_times_in_100():
    rng = stats.bernoulli(0.3)
    draws = rng.rvs(size=(2000, 60), random_state=1)
    hits = sum(low <= 0.3 <= high for _, low, high in (mean_interval(list(map(float, row)), 0, 1) for row in draws))
    assert 0.92 <= hits / 2000 <= 0.98


@settings(deadline=None)
@given(st.floats(-5, 5), st.floats(0, 1000), st.integers(2, 40))
def test_the_slope_of_a_line_is_its_own_whatever_a_few_points_do(rate: float, start: float, count: int) -> None:
    values = [start + rate * step for step in range(count)]
    assert slope(values) == pytest.approx(rate, abs=1e-6)
    if count >= 10:
        values[3] += 1e6
        assert slope(values) == pytest.approx(rate, abs=1e-6)


@pytest.mark.parametrize("estimate", [t_interval, mean_interval])
def test_no_values_have_no_interval(estimate):
    with pytest.raises(ValueError, match="got no values"):
        estimate([])


def test_a_bootstrap_draws_the_same_each_time_and_is_near_the_t_interval_of_a_mean():
    draw = random.Random(3)
    values = [draw.gauss(0, 1) for _ in range(60)]

    def found() -> tuple[float, float]:
        return bootstrap_interval(lambda drawn: fmean(values[i] for i in drawn), len(values))

    assert found() == found() == pytest.approx(t_interval(values)[1:], abs=0.1)
    assert bootstrap_interval(lambda drawn: values[drawn[0]], 1) == (values[0], values[0])


def test_the_error_of_a_difference_is_the_textbook_one():
    first, last = [0.0, 0.5, 1.0], [0.25, 0.25, 1.0, 1.0]
    expected = math.sqrt(stdev(first) ** 2 / 3 + stdev(last) ** 2 / 4)
    assert difference_error(first, last) == pytest.approx(expected)
