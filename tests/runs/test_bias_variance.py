"""Bias and variance of success over bootstrap samples of the training tasks and seeds."""

from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import TASKS, plant

from rlvr_exp.core.seeds import uniform
from rlvr_exp.runs.studies.resampling import BiasVariance, decomposed, sources

GREEDY = "pass_at_1_greedy"
SHAPES = st.tuples(st.integers(2, 4), st.integers(2, 4), st.integers(1, 8))
OUTCOMES = SHAPES.flatmap(
    lambda shape: st.lists(
        st.lists(
            st.lists(st.sampled_from([0.0, 1.0]), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ),
        min_size=shape[2],
        max_size=shape[2],
    )
)


def study(**more):
    return BiasVariance(command=["+stage=grpo"], **{"resamples": 3, "seeds": [0, 1], **more})


def measured(tmp_path, asked, passes):
    """Its runs; `passes(draw, seed, task)` says which tasks pass."""
    return [
        plant(tmp_path, job, lambda task, job=job: passes(int(job.arm.removeprefix("resample")), job.seed, task))
        for job in asked.jobs()
    ]


def by_hand(outcomes):
    """Error, bias and both variances, a task after the other."""
    error = bias = adds = takes = 0.0
    for task in outcomes:
        flat = [value for row in task for value in row]
        main = 1.0 if 2 * sum(flat) >= len(flat) else 0.0
        other = sum(value != main for value in flat) / len(flat)
        error += sum(value == 0.0 for value in flat) / len(flat)
        bias += main == 0.0
        adds, takes = (adds + other, takes) if main else (adds, takes + other)
    return [total / len(outcomes) for total in (error, bias, adds, takes)]


@given(OUTCOMES)
def test_the_parts_are_the_plain_counts_and_add_up_to_the_error(outcomes):
    found = decomposed(outcomes)
    assert [one.value for one in found] == pytest.approx(by_hand(outcomes))
    assert found.error.value == pytest.approx(
        found.bias.value + found.unbiased_variance.value - found.biased_variance.value
    )


@given(OUTCOMES)
def test_the_sources_are_the_components_of_a_two_way_layout_and_those_of_one_effect_alone(outcomes):
    found = sources(outcomes)
    for task, seeds in ((task, list(zip(*task, strict=True))) for task in outcomes[:1]):
        draws, columns = [fmean(row) for row in task], [fmean(column) for column in seeds]
        mean, rows = fmean(draws), len(task)
        rest = sum((task[i][j] - draws[i] - columns[j] + mean) ** 2 for i in range(rows) for j in range(len(columns)))
        rest /= (rows - 1) * (len(columns) - 1)
        own = sources([task])
        assert own.both.value == pytest.approx(rest)
        assert own.draw.value == pytest.approx(variance(draws) - rest / len(columns))
        assert own.seed.value == pytest.approx(variance(columns) - rest / rows)
    assert found.draw.value == pytest.approx(fmean(sources([task]).draw.value for task in outcomes))
    by_draw = sources([[[row[0]] * len(row) for row in task] for task in outcomes])
    assert (by_draw.seed.value, by_draw.both.value) == pytest.approx((0, 0)) and by_draw.draw.value >= -1e-12


def test_other_numbers_are_no_outcomes():
    with pytest.raises(ValueError, match="allowed 0 and 1"):
        decomposed([[[0.5, 1.0], [0.0, 1.0]]])
    with pytest.raises(ValueError, match="2 draws and 1 seeds"):
        sources([[[1.0], [0.0]]])


def test_a_study_decomposes_the_failures_of_its_runs(tmp_path):
    def passes(draw, seed, task):
        return task < 20 or (task < 50 and uniform("planted", draw, task) < 0.5)

    asked = study()
    assert [job.words for job in asked.jobs()][-1] == ("+stage=grpo", "data.resample=3", "seed=1")
    found = asked.summarise(measured(tmp_path, asked, passes))
    outcomes = [[[float(passes(draw, seed, task)) for seed in (0, 1)] for draw in (1, 2, 3)] for task in range(TASKS)]
    parts = {row["part"]: row for row in found.tables["decomposition"]}
    assert [row["value"] for row in parts.values()] == pytest.approx(by_hand(outcomes))
    assert all(row["low"] < row["value"] < row["high"] for row in parts.values())
    assert found.answer[0].startswith(f"Greedy answers fail on {100 * parts['error']['value']:.1f}% [")
    assert "60 tasks, 3 samples of training tasks, 2 seeds" in found.answer[0]
    kinds = {row["part"]: row["value"] for row in found.tables["variance"]}
    assert kinds["draw"] > 0.05 and (kinds["seed"], kinds["both"]) == pytest.approx((0, 0))
    assert "of the training tasks that were drawn 100% [" in found.answer[1]


def test_a_seed_that_failed_in_one_sample_is_left_out_of_all(tmp_path):
    runs = measured(tmp_path, asked := study(), lambda draw, seed, task: task < 30 + 10 * seed)
    lost = [run for run in runs if run.job.name != "resample2_seed1"]
    found = asked.summarise(lost)
    assert found.answer[0].startswith("Greedy answers fail on 50.0%") and "1 seeds" in found.answer[0]
    assert (
        found.answer[1] == "One seed cannot tell what of the variance is the seed's." and "variance" not in found.tables
    )
    none = asked.summarise([run for run in runs if run.job.arm != "resample3"])
    assert none.answer == ["Cannot tell: no seed completed with all 3 samples of training tasks."]


def test_where_nothing_varies_it_is_said(tmp_path):
    asked = study()
    found = asked.summarise(measured(tmp_path, asked, lambda draw, seed, task: task < 30))
    assert found.answer[1] == "No outcome varies from training to training."
