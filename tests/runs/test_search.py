"""What a search answers, over planted runs: the best and how far its figure can be trusted, what was pruned, what matters."""

import json
from pathlib import Path

import pytest
from planted import plant
from searched import GREEDY, completed, drive, search, stopped, stored, success, unchecked  # noqa: F401

from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.studies import search as search_study
from rlvr_exp.runs.studies import trials as importance
from rlvr_exp.runs.study import Job, JobRun

pytestmark = pytest.mark.usefixtures("unchecked")


def trial(study, number, lr, unchanged=False):
    return study.trial_jobs(number, [f"optimizer.lr={lr}"], unchanged)


def test_the_best_is_judged_by_fresh_seeds_and_its_own_figure_called_too_good(tmp_path: Path) -> None:
    study = search(seeds=[0], confirm=[7, 8, 9])
    tried = [job for i, lr in enumerate((0.1, 0.001, 1e-5)) for job in trial(study, i, lr, unchanged=i == 0)]
    runs = [completed(tmp_path, job) for job in tried]
    solved = {"default": lambda task: task % 3 == 0, "best": lambda task: task % 3 < 2}
    runs += [plant(tmp_path, job, solved[job.arm]) for job in study.confirm_jobs(["optimizer.lr=0.001"])]
    found = study.summarise(runs)
    assert found.answer[0].startswith(
        "The best trial against the unchanged command, on seeds that no trial had (7, 8, 9): Difference on pass_at_1_greedy "
        "beyond chance, 1 of 1: best (+33.3 points)"
    )
    assert found.answer[1].startswith("best: better, difference +33.3 points")
    assert "The best of 3 completed trials is trial_001 (optimizer.lr=0.001) with 80.0%" in found.answer[2]
    assert "too good a figure" in found.answer[2] and found.answer[3] == "3 trials: 3 completed."
    rows = {row["arm"]: row for row in found.tables["difference"]}
    assert set(rows) == {"default", "best"} and rows["best"]["seeds"] == 3
    assert [(row["trial"], row["optimizer.lr"]) for row in found.tables["trials"]] == [
        ("trial_000_default", "0.1"),
        ("trial_001", "0.001"),
        ("trial_002", "1e-05"),
    ]
    assert set(found.plots) == {"history", "by_optimizer.lr", "difference"}


def test_without_fresh_seeds_it_says_what_is_not_known_and_how_to_know_it(tmp_path: Path) -> None:
    study = search(seeds=[0])
    runs = [completed(tmp_path, *trial(study, 0, 0.1, True)), completed(tmp_path, *trial(study, 1, 0.01))]
    (first, *_) = study.summarise(runs).answer
    assert "is trial_001" in first and "'study.confirm=[1000,1001,1002]' run.resume=auto" in first
    (first, *_) = search(seeds=[0], direction="minimize").summarise(runs).answer
    assert "is trial_000_default" in first and "It is the unchanged command: nothing better was found." in first
    (first, *_) = search(seeds=[0], confirm=[7]).summarise(runs).answer
    assert "runs that compare them did not complete" in first


def test_trials_that_were_pruned_or_failed_are_counted_and_have_no_value(tmp_path: Path) -> None:
    study = search(seeds=[0, 1])
    (pruned, _), (failed, lost), (unreached, _) = (trial(study, i, 10.0**-i) for i in (1, 2, 4))
    runs = [completed(tmp_path, job) for job in trial(study, 0, 0.1)]
    runs += [
        stopped(tmp_path, pruned),
        completed(tmp_path, failed),
        JobRun(lost, tmp_path / "x", 3, {"status": "stopped"}),
    ]
    runs += [completed(tmp_path, unreached)]  # It ended before it was stopped, and has no second seed.
    found = study.summarise(runs)
    assert found.answer[1] == "4 trials: 1 completed, 2 pruned, 1 failed."
    rows = found.tables["trials"]
    assert [row["state"] for row in rows] == ["completed", "pruned", "failed", "pruned"]
    assert [row.get("value") for row in rows][1:] == [None] * 3
    text = write_record(tmp_path, "study", ["python"], runs, found)
    assert "4 trials" in text and json.loads((tmp_path / "study.json").read_text())["jobs"][2]["status"] == "pruned"
    nothing = study.summarise([stopped(tmp_path, pruned)])
    assert nothing.answer[0] == "Cannot tell: no trial completed." and nothing.plots == {}


def test_a_pruned_trial_of_one_seed_is_none_of_those_that_completed(tmp_path: Path) -> None:
    study = search(seeds=[0], trials=8, pruner="median", pruner_startup=2, pruner_warmup=2, startup=3)
    rounds, runs = study.rounds(tmp_path, 0), []
    while batch := rounds.batch():
        for job in batch:
            assert isinstance(job, Job)
            runs.append(completed(tmp_path, job))  # All end before they are stopped.
            rounds.ended(runs[-1])
    states = [state for state, *_ in stored(tmp_path)]
    assert states.count("PRUNED") > 1
    for given in (runs, runs[::-1]):  # As they come, and where those that were there already come in another order.
        found = study.summarise(given)
        assert f"8 trials: {states.count('COMPLETE')} completed, {states.count('PRUNED')} pruned." in found.answer
        rows = found.tables["trials"]
        assert [row["state"] == "pruned" for row in rows] == [state == "PRUNED" for state in states]
    study.rounds(tmp_path, 0)  # It goes on, and knows it of before.
    assert f"{states.count('PRUNED')} pruned." in study.summarise(runs).answer[1]


def test_a_figure_that_is_no_rate_is_not_shown_in_percent(tmp_path: Path, monkeypatch) -> None:
    study = search(seeds=[0], metric="bits_per_character", direction="minimize")
    job = study.trial_jobs(0, ["optimizer.lr=0.1"])[0]
    values = {"trial_000": {0: {"t0": 2.4, "t1": 2.5}}}
    monkeypatch.setattr(search_study, "arm_values", lambda *_: values)
    (first, *_) = study.summarise([completed(tmp_path, job)]).answer
    assert "with 2.450 bits_per_character on the seeds" in first


def test_others_that_reached_as_much_are_counted(tmp_path: Path) -> None:
    study = search(seeds=[0])
    jobs = [job for number, lr in enumerate((0.1, 0.01, 1e-5)) for job in trial(study, number, lr)]
    runs = [plant(tmp_path, job, lambda task, job=job: task % (3 if "1e-05" in job.text else 2)) for job in jobs]
    assert "is trial_002" in study.summarise(runs).answer[0] and "more reached" not in study.summarise(runs).answer[0]
    assert "is trial_000" in (first := study.summarise(runs[:2]).answer[0]) and ", which 1 more reached: too" in first


def test_trials_of_unequal_budgets_are_said_first(tmp_path: Path) -> None:
    study = search(seeds=[0])
    jobs = [job for number, lr in enumerate((0.1, 0.01)) for job in trial(study, number, lr)]
    runs = [plant(tmp_path, job, lambda task: task % 2, 64 * (1 + i)) for i, job in enumerate(jobs)]
    assert study.summarise(runs).answer[0].startswith("Unequal budgets: trial_000 had 128 rollouts, trial_001 256")


def test_a_whole_search_finds_the_rate_that_was_planted_and_that_it_matters(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(importance, "DEALS", 99)
    space = {"optimizer.lr": {"log_uniform": [1e-5, 1e-1]}, "algorithm.kl_coef": {"uniform": [0.0, 1.0]}}
    study = search(trials=24, seeds=[0], space=space)
    runs = drive(study, tmp_path)
    found = study.summarise(runs)
    best = max(runs, key=lambda run: run.summary["after"][GREEDY]["value"])
    assert f"is {best.job.arm} (" in found.answer[0] and success(best.job) > 0.75
    assert found.answer[-1].startswith("Importance of options beyond what chance gives, 1 of 2: optimizer.lr (")
    assert [row["option"] for row in found.tables["importance"]] == ["optimizer.lr", "algorithm.kl_coef"]
    assert found.tables["trials"][0]["trial"] == "trial_000", "the space lacks the unchanged command's kl_coef"
    assert GREEDY in found.plots["history"].svg() and "importance" in found.plots
