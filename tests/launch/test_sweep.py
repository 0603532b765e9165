"""Sweeps: every job is checked before the first, each is a run of its own, a failed job does not stop the others."""

from collections.abc import Sequence
from datetime import datetime
from itertools import permutations
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_exp.config.jobs import expand
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem, Interrupted
from rlvr_exp.launch.execute import Outcome
from rlvr_exp.launch.sweep import job_directories, job_directory, run_all, sweep_root, worst

STAGE = "+stage=grpo"


def test_every_combination_is_a_job() -> None:
    jobs = expand([STAGE, "algorithm.group_size=4,8", "seed=range(0,2)", "optimizer.lr=1"])
    assert [job.swept for job in jobs] == [(f"algorithm.group_size={g}", f"seed={s}") for g in (4, 8) for s in (0, 1)]
    assert [(job.checked.config.algorithm.group_size, job.checked.config.seed) for job in jobs] == [
        (4, 0),
        (4, 1),
        (8, 0),
        (8, 1),
    ]
    assert all(job.checked.config.optimizer.lr == 1 for job in jobs)


def test_groups_are_swept_too() -> None:
    jobs = expand(["+stage=grpo,sft", "reward.terms.length.weight=0.0"][:1] + ["model=tiny,qwen14b"])
    assert {(job.checked.config.stage, job.checked.config.model.name) for job in jobs} == {
        ("grpo", ""),
        ("sft", ""),
        ("grpo", "Qwen/Qwen3-14B"),
        ("sft", "Qwen/Qwen3-14B"),
    }


def test_all_jobs_are_checked_and_each_mistake_is_told_once() -> None:
    with pytest.raises(InputError) as caught:
        expand([STAGE, "algorithm.group_size=4,1", "seed=0,x", "lrr=1", "a=["])
    assert sorted(problem.where for problem in caught.value.problems) == ["a=[", "algorithm.group_size", "lrr", "seed"]


def test_without_several_values_there_is_one_job() -> None:
    (job,) = expand([STAGE, "seed=1"])
    assert job.swept == () and job_directory(Path("root"), 0, job.swept) == Path("root/0")


@given(st.lists(st.text(min_size=1, max_size=30), max_size=4), st.integers(0, 99))
@settings(deadline=None)
def test_a_job_directory_can_be_named_in_an_override(words: list[str], index: int) -> None:
    directory = job_directory(Path("multirun/2026-01-02/03-04-05"), index, words)
    assert directory.parent == Path("multirun/2026-01-02/03-04-05") and len(directory.name) < 120
    parsed = OverridesParser.create().parse_override(f"compare.runs=[{directory},{directory}]")
    assert parsed.value() == [str(directory), str(directory)]


def test_directories_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    now, swept = datetime(2026, 1, 2, 3, 4, 5), [("seed=0",), ("seed=1",)]

    def names(*chosen: str) -> list[str]:
        return [directory.as_posix() for directory in job_directories(chosen, swept, now)]

    assert names("", "") == [f"multirun/2026-01-02/03-04-05/{name}" for name in ("0_seed-0", "1_seed-1")]
    assert names("", "")[0] == "multirun/2026-01-02/03-04-05_2/0_seed-0", "the first one is taken"
    assert names("all", "all") == ["all/0_seed-0", "all/1_seed-1"]
    assert names("one", "two") == ["one", "two"]
    (tmp_path / "all" / "1_seed-1").mkdir(parents=True)
    (tmp_path / "all" / "1_seed-1" / "summary.json").touch()
    with pytest.raises(InputError, match="holds another run"):
        names("all", "all")
    with pytest.raises(InputError, match="some jobs share it"):
        job_directories(["a", "a", "b"], [*swept, ("seed=2",)], now)


def test_one_failed_job_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rate = {"value": 0.25, "low": 0.2, "high": 0.3, "n": 9, "samples": 8}
    summary = {"status": "completed", "steps": 5, "seconds": 1.5, "before": {}, "after": {"pass_at_1": rate}}

    def start(index: int) -> Outcome:
        if index == 1:
            raise InputError(InputProblem("run.dir", "taken"))
        code = 3 if index == 2 else 0
        return Outcome(tmp_path / str(index), code, summary | ({"status": "stopped"} if code else {}))

    assert run_all(["seed=0", "seed=1", "seed=2", "seed=3"], [tmp_path] * 4, start) == 3
    said = capsys.readouterr().out
    table = said[said.index("job   ") :].splitlines()
    assert [row.split()[1:3] for row in table[1:5]] == [
        ["completed", "0"],
        ["failed", "2"],
        ["stopped", "3"],
        ["completed", "0"],
    ]
    assert "25.0%" in table[1] and "run.dir: taken" in said


def test_a_job_that_ends_by_an_error_of_ours_keeps_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    raised = [GuardStop("the disk is full"), Interrupted("stopped"), None]
    started: list[int] = []

    def start(index: int) -> Outcome:
        started.append(index)
        raise raised[index] or AssertionError

    assert run_all(["a", "b", "c"], [Path("x")] * 3, start) == 130
    said = capsys.readouterr().out
    assert started == [0, 1] and "the disk is full" in said and "Traceback" not in said


def test_an_interrupted_job_ends_the_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started: list[int] = []

    def start(index: int) -> Outcome:
        started.append(index)
        return Outcome(tmp_path, 130, {"status": "interrupted"})

    assert run_all(["a", "b", "c"], [tmp_path] * 3, start) == 130
    assert started == [0] and "2 jobs were not started" in capsys.readouterr().out


def test_the_worst_code_is_the_sweeps() -> None:
    for codes in permutations((0, 2, 3, 1)):
        assert [worst(codes[:count]) for count in range(1, 5)] == [
            next(code for code in (1, 3, 2, 0) if code in codes[:count]) for count in range(1, 5)
        ]
    assert worst([]) == 0


def test_jobs_that_resume_find_their_own_directories_again(tmp_path: Path) -> None:
    swept = [["seed=0"], ["seed=1"]]
    first = job_directories([str(tmp_path)] * 2, swept, datetime(2026, 1, 2))
    for directory in first:
        directory.mkdir()
        (directory / "config.yaml").write_text("stage: grpo")
    assert job_directories([str(tmp_path)] * 2, swept, datetime(2026, 1, 2), resuming=True) == first
    with pytest.raises(InputError, match="holds another run"):
        job_directories([str(tmp_path)] * 2, swept, datetime(2026, 1, 2))


def test_the_table_of_a_sweep_is_kept_whatever_its_jobs_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept: list[list[int]] = []

    def start(index: int) -> Outcome:
        return Outcome(tmp_path, (0, 3, 130)[index], {"status": "completed"})

    def keep(outcomes: Sequence[Outcome]) -> str:
        kept.append([outcome.code for outcome in outcomes])
        return "table of the sweep: PATH"

    assert run_all(["a", "b", "c", "d"], [tmp_path] * 4, start, keep) == 130
    assert kept == [[0, 3, 130]] and capsys.readouterr().out.endswith("table of the sweep: PATH\n")


def test_a_table_that_cannot_be_written_is_a_fault_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def start(index: int) -> Outcome:
        return Outcome(tmp_path, 0, {"status": "completed"})

    assert run_all(["a"], [tmp_path], start, lambda _: str(1 / 0)) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_the_table_stands_beside_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    now, jobs = datetime(2026, 1, 2, 3, 4, 5), [Path("all/0_seed-0"), Path("all/1_seed-1")]
    assert sweep_root(["all", "all"], jobs, now) == Path("all")
    assert sweep_root(["one", "two"], [Path("one"), Path("two")], now) == Path("multirun/2026-01-02/03-04-05")
