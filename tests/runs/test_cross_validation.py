"""Every task held out once: what is measured, and the variances of folds and seeds told apart."""

from dataclasses import replace
from statistics import fmean, variance

import pytest
from planted import evaluated, plant

from rlvr_exp.core.errors import InputError
from rlvr_exp.runs.studies.resampling import CrossValidation

GREEDY, SIZE = "pass_at_1_greedy", 20


def study(**more):
    return CrossValidation(command=["+stage=grpo"], metric=GREEDY, **{"folds": 3, "seeds": [0, 1], **more})


def measured(tmp_path, asked, passes, before=None, unjudged=()):
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
    jobs = study().jobs()
    assert [(job.arm, job.seed) for job in jobs] == [(f"fold{fold}", seed) for fold in range(3) for seed in (0, 1)]
    assert jobs[-1].words == ("+stage=grpo", "data.folds=3", "data.fold=2", "seed=1")


@pytest.mark.property(39)
def test_success_and_spread_are_those_of_the_plain_formulas(tmp_path):
    passing = {(0, 0): 4, (0, 1): 8, (1, 0): 10, (1, 1): 12, (2, 0): 15, (2, 1): 17}
    runs = measured(
        tmp_path, study(), lambda fold, seed, place: place < passing[fold, seed], lambda fold, seed, place: place < 4
    )
    found = study().summarise(runs)
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
    runs = measured(tmp_path, study(), lambda fold, seed, place: place % 2 == seed or seed == 1)
    lost = [run for run in runs if run.job.name != "fold1_seed1"]
    found = study().summarise(lost)
    assert "1 seed" in found.answer[0] and "50.0%" in found.answer[0]
    assert "one seed cannot tell" in found.answer[-1]
    assert {row["seed"] for row in found.tables["folds"]} == {0}


def test_without_a_fold_it_cannot_tell(tmp_path):
    runs = measured(tmp_path, study(), lambda fold, seed, place: place % 2 == 0)
    assert study().summarise(runs[:4]).answer == ["Cannot tell: no seed completed in all 3 folds."]


def test_folds_that_were_measured_on_the_same_tasks_are_refused(tmp_path):
    runs = [plant(tmp_path, job, lambda task: task % 2 == 0) for job in study().jobs()]
    with pytest.raises(InputError, match="folds were measured on the same tasks"):
        study().summarise(runs)


def test_a_task_that_some_evaluation_could_not_judge_is_left_out_of_all(tmp_path):
    lost = [("after", 0, 1), ("before", 2, 0)]
    first = lambda fold, seed, place: place == 0  # noqa: E731
    runs = measured(tmp_path, study(), first, lambda *_: False, unjudged=lost)
    success, gain, _ = study().summarise(runs).answer
    assert "58 of them in 3 folds" in success and success.startswith(f"{GREEDY} is {100 / 58:.1f}%")
    assert gain.startswith(f"Training gained {100 / 58:+.1f} points")
