"""Every task held out once: what is measured, and the variances of folds and seeds told apart."""

from dataclasses import replace
from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import TASKS, evaluated, plant

from rlvr_exp.core.errors import InputError
from rlvr_exp.core.seeds import uniform
from rlvr_exp.runs.studies.resampling import BiasVariance, CrossValidation, decomposed, sources

GREEDY, SIZE = "pass_at_1_greedy", 20


def folded(**more):
    return CrossValidation(command=["+stage=grpo"], metric=GREEDY, **{"folds": 3, "seeds": [0, 1], **more})


def folds_measured(tmp_path, asked, passes, before=None, unjudged=()):
    """Its runs; `passes(fold, seed, place)` says which of the tasks of a fold pass after training, `before` so before it.
    `unjudged`: (when, fold, seed) of evaluations without a verdict of their first task."""
    runs = []
    for job in asked.jobs():
        fold = int(job.arm.removeprefix("fold"))
        run = plant(tmp_path, job, lambda task: True, tasks=0)
        tasks, summary = range(fold * SIZE, (fold + 1) * SIZE), dict(run.summary)
        for when, how in [("after", passes), *([("before", before)] if before else [])]:
            of_run = lambda task, how=how, fold=fold, seed=job.seed: how(fold, seed, task - fold * SIZE)  # noqa: E731
            lost = (when, fold, job.seed) in unjudged
            summary[when] = evaluated(run.directory, when, of_run, tasks[1:] if lost else tasks)
        runs.append(replace(run, summary=summary))
    return runs


def test_each_fold_is_held_out_with_every_seed():
    jobs = folded().jobs()
    assert [(job.arm, job.seed) for job in jobs] == [(f"fold{fold}", seed) for fold in range(3) for seed in (0, 1)]
    assert jobs[-1].words == ("+stage=grpo", "data.folds=3", "data.fold=2", "seed=1")


@pytest.mark.property(39)
def test_success_and_spread_are_those_of_the_plain_formulas(tmp_path):
    passing = {(0, 0): 4, (0, 1): 8, (1, 0): 10, (1, 1): 12, (2, 0): 15, (2, 1): 17}
    runs = folds_measured(
        tmp_path, folded(), lambda fold, seed, place: place < passing[fold, seed], lambda fold, seed, place: place < 4
    )
    found = folded().summarise(runs)
    rates = {key: passed / SIZE for key, passed in passing.items()}
    assert {(int(row["fold"][-1]), row["seed"]): row["success"] for row in found.tables["folds"]} == rates
    by_fold = [[rates[fold, seed] for seed in (0, 1)] for fold in range(3)]
    (spread,) = found.tables["spread"]
    assert spread["mean"] == pytest.approx(fmean(rates.values()))
    assert spread["of_folds"] == pytest.approx(variance(map(fmean, by_fold)))
    assert spread["between_seeds"] == pytest.approx(fmean(map(variance, by_fold)))
    assert spread["between_folds"] == pytest.approx(spread["of_folds"] - spread["between_seeds"] / 2)
    success, gain, apart = found.answer
    assert success.startswith("pass_at_1_greedy is 55.0% [") and "60 of them in 3 folds, 2 seeds" in success
    assert gain.startswith("Training gained +35.0 points [")
    assert apart == "Standard deviation between folds 24.0 points, between seeds of a fold 10.0."
    assert len(found.plots["folds"].svg()) > 500


def test_a_seed_that_failed_in_one_fold_is_left_out_of_all(tmp_path):
    runs = folds_measured(tmp_path, folded(), lambda fold, seed, place: place % 2 == seed or seed == 1)
    lost = [run for run in runs if run.job.name != "fold1_seed1"]
    found = folded().summarise(lost)
    assert "1 seed" in found.answer[0] and "50.0%" in found.answer[0]
    assert "one seed cannot tell" in found.answer[-1]
    assert {row["seed"] for row in found.tables["folds"]} == {0}


def test_without_a_fold_it_cannot_tell(tmp_path):
    runs = folds_measured(tmp_path, folded(), lambda fold, seed, place: place % 2 == 0)
    assert folded().summarise(runs[:4]).answer == ["Cannot tell: no seed completed in all 3 folds."]


def test_folds_that_were_measured_on_the_same_tasks_are_refused(tmp_path):
    runs = [plant(tmp_path, job, lambda task: task % 2 == 0) for job in folded().jobs()]
    with pytest.raises(InputError, match="folds were measured on the same tasks"):
        folded().summarise(runs)


def test_a_task_that_some_evaluation_could_not_judge_is_left_out_of_all(tmp_path):
    lost = [("after", 0, 1), ("before", 2, 0)]
    first = lambda fold, seed, place: place == 0  # noqa: E731
    runs = folds_measured(tmp_path, folded(), first, lambda *_: False, unjudged=lost)
    success, gain, _ = folded().summarise(runs).answer
    assert "58 of them in 3 folds" in success and success.startswith(f"{GREEDY} is {100 / 58:.1f}%")
    assert gain.startswith(f"Training gained {100 / 58:+.1f} points")


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


def decomposing(**more):
    return BiasVariance(command=["+stage=grpo"], **{"resamples": 3, "seeds": [0, 1], **more})


def outcomes_measured(tmp_path, asked, passes):
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

    asked = decomposing()
    assert [job.words for job in asked.jobs()][-1] == ("+stage=grpo", "data.resample=3", "seed=1")
    found = asked.summarise(outcomes_measured(tmp_path, asked, passes))
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
    runs = outcomes_measured(tmp_path, asked := decomposing(), lambda draw, seed, task: task < 30 + 10 * seed)
    lost = [run for run in runs if run.job.name != "resample2_seed1"]
    found = asked.summarise(lost)
    assert found.answer[0].startswith("Greedy answers fail on 50.0%") and "1 seeds" in found.answer[0]
    assert (
        found.answer[1] == "One seed cannot tell what of the variance is the seed's." and "variance" not in found.tables
    )
    none = asked.summarise([run for run in runs if run.job.arm != "resample3"])
    assert none.answer == ["Cannot tell: no seed completed with all 3 samples of training tasks."]


def test_where_nothing_varies_it_is_said(tmp_path):
    asked = decomposing()
    found = asked.summarise(outcomes_measured(tmp_path, asked, lambda draw, seed, task: task < 30))
    assert found.answer[1] == "No outcome varies from training to training."
