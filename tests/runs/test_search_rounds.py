"""How a search goes: what it asks for, what it stops, what it tells, and how it goes on after it was killed."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import plant
from searched import GREEDY, Broken, completed, drive, names, search, stored, success, unchecked  # noqa: F401

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.runs.study import Job

pytestmark = pytest.mark.usefixtures("unchecked")
PRUNING = {"trials": 8, "pruner": "median", "pruner_startup": 2, "pruner_warmup": 2, "startup": 3, "confirm": [7]}


@pytest.fixture(scope="module")
def unbroken(unchecked, tmp_path_factory):  # noqa: F811
    """Runs and trials of a search that prunes."""
    root = tmp_path_factory.mktemp("unbroken")
    return drive(search(**PRUNING), root), stored(root)


def test_every_trial_has_the_same_seeds_and_the_first_is_the_unchanged_command(tmp_path: Path) -> None:
    runs = drive(search(trials=3), tmp_path)
    assert names(runs) == [
        f"{arm}_seed{seed}" for arm in ("trial_000_default", "trial_001", "trial_002") for seed in (0, 1)
    ]
    assert runs[0].job.own == ("optimizer.lr=0.1", "seed=0") and runs[2].job.own[0] == runs[3].job.own[0] != "0.1"
    found = stored(tmp_path)
    assert [state for state, *_ in found] == ["COMPLETE"] * 3
    values = [sum(run.summary["after"][GREEDY]["value"] for run in runs[i : i + 2]) / 2 for i in (0, 2, 4)]
    assert [value for _, _, value, _ in found] == pytest.approx(values)


def test_a_search_is_the_same_for_a_seed_and_another_for_another(tmp_path: Path) -> None:
    words = {}
    for place, seed, sampler in (("a", 0, "tpe"), ("b", 0, "tpe"), ("c", 1, "tpe"), ("d", 0, "random")):
        study = search(trials=4, startup=2, sampler=sampler, seeds=[0])
        words[place] = [run.job.own[0] for run in drive(study, tmp_path / place, seed)]
    assert words["a"] == words["b"] and len(set(words["a"])) == 4
    assert words["a"][1:] != words["c"][1:]
    assert words["a"][2:] != words["d"][2:] and words["a"][1] == words["d"][1], "tpe begins at random, then learns"


def test_a_trial_that_promises_too_little_is_stopped_in_its_first_seed(unbroken, tmp_path: Path) -> None:
    (runs, found), never = unbroken, drive(search(**PRUNING | {"pruner": "none", "seeds": [0]}), tmp_path)
    pruned = [run for run in runs if run.pruned]
    assert pruned and all(run.job.seed == 0 for run in pruned) and not any(run.pruned for run in never)
    states = [state for state, *_ in found]
    assert states.count("PRUNED") == len(pruned) and {*states} == {"PRUNED", "COMPLETE"}
    completing = [run for run in runs if run.completed and run.job.arm.startswith("trial")]
    assert len(completing) == 2 * states.count("COMPLETE"), "a pruned trial has no run of another seed"
    worst, best = max(success(run.job) for run in pruned), max(success(run.job) for run in completing)
    assert worst < best
    reported = [values for state, _, _, values in found if state == "PRUNED"]
    assert all(2 <= max(one) < 6 for one in reported), "stopped after the warm-up and before the end"


def test_a_first_seed_that_ends_before_it_is_stopped_is_judged_as_well(unbroken, tmp_path: Path) -> None:
    study = search(**PRUNING)
    rounds, ended = study.rounds(tmp_path, 0), []
    while batch := rounds.batch():
        for job in batch:
            assert isinstance(job, Job)
            ended.append(job.name)
            rounds.ended(completed(tmp_path, job))
    found = stored(tmp_path)
    assert [state for state, *_ in found] == [state for state, *_ in unbroken[1]]
    assert sum(name.endswith("seed1") for name in ended) == [state for state, *_ in found].count("COMPLETE")


def test_of_equal_trials_the_first_is_the_best_in_whichever_order_they_end(tmp_path: Path) -> None:
    study = search(trials=3, seeds=[0], confirm=[7])
    rounds = study.rounds(tmp_path, 0)
    jobs = [job for _ in range(3) for job in rounds.batch()]
    for job in (jobs[2], jobs[1], jobs[0]):
        rounds.ended(plant(tmp_path, job, lambda task, job=job: job is not jobs[0], tasks=4))
    confirmed = rounds.batch()
    assert confirmed[-1].own[0] == jobs[1].own[0] != jobs[2].own[0]


def test_the_other_seeds_wait_for_the_first_only_where_trials_are_pruned(tmp_path: Path) -> None:
    waiting = search(**PRUNING).rounds(tmp_path / "a", 0)
    assert [job.name for _ in range(3) for job in waiting.batch()] == [
        "trial_000_default_seed0",
        "trial_001_seed0",
        "trial_002_seed0",
    ]
    at_once = search(trials=2).rounds(tmp_path / "b", 0)
    assert [job.name for _ in range(5) for job in at_once.batch()] == [
        f"{arm}_seed{seed}" for arm in ("trial_000_default", "trial_001") for seed in (0, 1)
    ]
    assert at_once.left() == 0 and search(trials=2, confirm=[7]).rounds(tmp_path / "c", 0).left() == 6


def go_on_after(unbroken, root: Path, kills: Sequence[int]) -> None:
    """Kill a search after so many steps, each time it is begun; the last one ends as the unbroken one did."""
    for after in kills:
        try:
            drive(search(**PRUNING), root, kill_after=after)
        except Broken:
            continue
    broken = drive(search(**PRUNING), root)
    assert names(broken) == names(unbroken[0]) and stored(root) == unbroken[1]
    assert {run.job.name for run in broken if run.pruned} == {run.job.name for run in unbroken[0] if run.pruned}


def test_a_search_that_is_killed_twice_goes_on_as_if_it_had_not_been(unbroken, tmp_path: Path) -> None:
    go_on_after(unbroken, tmp_path, (33, 20))


@pytest.mark.slow
@settings(max_examples=20)
@given(kills=st.lists(st.integers(1, 60), min_size=1, max_size=3))
def test_a_search_that_is_killed_anywhere_goes_on_as_if_it_had_not_been(unbroken, kills: list[int]) -> None:
    with tempfile.TemporaryDirectory() as root:
        go_on_after(unbroken, Path(root), kills)


def test_a_trial_that_was_to_stop_when_the_search_was_killed_is_stopped_where_it_was(unbroken, tmp_path: Path) -> None:
    with pytest.raises(Broken):
        drive(search(**PRUNING), tmp_path, kill_at_stop=True)
    assert names(drive(search(**PRUNING), tmp_path)) == names(unbroken[0]) and stored(tmp_path) == unbroken[1]


def test_a_failed_run_fails_its_trial_and_stops_nothing_else(tmp_path: Path) -> None:
    fails = lambda job: job.name == "trial_001_seed0"  # noqa: E731
    runs = drive(search(trials=3), tmp_path, failing=fails)
    assert "trial_001_seed1" not in names(runs) and "trial_002_seed1" in names(runs)
    assert [state for state, *_ in stored(tmp_path)] == ["COMPLETE", "FAIL", "COMPLETE"]
    again = drive(search(trials=4), tmp_path)
    assert names(again)[:5] == names(runs) and names(again)[5:] == ["trial_003_seed0", "trial_003_seed1"]
    assert [run.code for run in again if run.job.arm == "trial_001"] == [1], "it is not run again, and has no summary"


def test_values_that_the_configuration_refuses_together_fail_with_the_reason(tmp_path: Path) -> None:
    study = search(trials=2, seeds=[0])
    rounds = study.rounds(tmp_path, 0)
    (first,) = rounds.batch()
    rounds.ended(completed(tmp_path, first))
    rounds.batch()
    fault = InputError(InputProblem("optimizer.lr", "too high"))
    (refused,) = rounds.refused(fault)
    assert (refused.job.name, refused.code) == ("trial_001_seed0", 2) and "too high" in refused.summary["reason"]
    assert rounds.batch() == () and [state for state, *_ in stored(tmp_path)] == ["COMPLETE", "FAIL"]
    with pytest.raises(InputError):
        rounds.refused(fault)
    assert study.rounds(tmp_path, 0).batch() == [first, refused], "a later command has it as it was"


def test_the_best_is_compared_on_seeds_that_no_trial_had(tmp_path: Path) -> None:
    runs = drive(search(trials=6, seeds=[0], confirm=[7, 8], trial_words=["evaluation.split=dev"]), tmp_path)
    assert names(runs)[6:] == [f"{arm}_seed{seed}" for arm in ("default", "best") for seed in (7, 8)]
    best = max(runs[:6], key=lambda run: success(run.job))
    assert runs[-1].job.words == ("+stage=grpo", best.job.own[0], "seed=8"), "without what only trials have"
    assert runs[0].job.words[1] == "evaluation.split=dev" and runs[6].job.words == ("+stage=grpo", "seed=7")
    unbeaten = search(trials=2, seeds=[0], confirm=[7], direction="minimize")
    assert len(drive(unbeaten, tmp_path / "unbeaten")) == 2, "the unchanged command is the best: it is not run twice"


def test_a_curve_that_no_run_logs_is_refused_at_the_first_of_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"study.curve(.|\n)*allowed: success/mean"):
        drive(search(**PRUNING, curve="nothing"), tmp_path)


def test_another_space_is_another_search_in_the_same_file(tmp_path: Path) -> None:
    drive(search(trials=2), tmp_path)
    rounds = search(trials=3).rounds(tmp_path, 0)
    assert len(rounds.batch()) == 4 and rounds.left() == 2, "more trials of the same search"
    changed = search(trials=2, space={"optimizer": {"lr": {"uniform": [0.05, 0.2]}}}).rounds(tmp_path, 0)
    assert len(changed.batch()) == 1 and changed.left() == 3
