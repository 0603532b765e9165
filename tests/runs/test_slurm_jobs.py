"""The executor of Slurm, on submitit's own processes of this machine."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planted import Fed

from rlvr_exp.core.errors import FAULT, INTERRUPTED, InputError, InputProblem, Interrupted
from rlvr_exp.records.context import RunContext
from rlvr_exp.runs.executors import Command, Slurm, SubmittedCommand

pytest.importorskip("submitit")


@pytest.mark.heavy
def test_jobs_are_submitted_and_waited_for(tmp_path: Path) -> None:
    feed = Fed(tmp_path, good="--version", bad="+stage=nothing")
    executor = Slurm(jobs=1, cluster="local", parameters={"timeout_min": 3})
    executor.run(feed, RunContext(tmp_path, lambda _: None))
    assert feed.events == [("good", None), ("good", 0), ("bad", None), ("bad", 2)]
    assert "rlvr_exp" in (tmp_path / "good.txt").read_text() and (tmp_path / "submitit").is_dir()


class Recorded(Slurm):
    """Keeps the process of the job that it started."""

    def start(self, command: Command, slot: int) -> Any:
        job = super().start(command, slot)
        self.process = job._process
        return job


def long_run(tmp_path: Path) -> Fed:
    """A training of minutes, and a command after it."""
    feed = Fed(tmp_path, two="--version")
    feed.waiting = {"one": Command(("+stage=grpo", f"run.dir={tmp_path}/run"), tmp_path / "one.txt"), **feed.waiting}
    return feed


@pytest.mark.heavy
def test_a_study_that_is_stopped_cancels_its_jobs(tmp_path: Path) -> None:
    context, feed = RunContext(tmp_path, lambda _: None), long_run(tmp_path)
    feed.began = lambda: setattr(context, "interrupted", True)
    executor = Recorded(jobs=1, cluster="local")
    with pytest.raises(Interrupted, match="run.resume=auto"):
        executor.run(feed, context)
    assert feed.events == [("one", None)]
    executor.process.wait(30)


@pytest.mark.heavy
def test_a_study_that_ends_by_a_fault_leaves_no_job(tmp_path: Path) -> None:
    feed = long_run(tmp_path)

    def unwanted() -> list[str]:
        raise InputError(InputProblem("study.curve", "no row has it"))

    feed.began = lambda: setattr(feed, "unwanted", unwanted)
    executor = Recorded(jobs=1, cluster="local")
    with pytest.raises(InputError, match=r"study\.curve"):
        executor.run(feed, RunContext(tmp_path, lambda _: None))
    executor.process.wait(30)


def test_parameters_that_submitit_does_not_take_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="submitit refuses"):
        Slurm(jobs=1, cluster="local", parameters={"gpus": 2}).run(Fed(tmp_path), RunContext(tmp_path, lambda _: None))


@pytest.mark.parametrize(
    ("job", "code", "ends"), [("7", INTERRUPTED, True), ("7", FAULT, False), ("", INTERRUPTED, False)]
)
def test_a_job_that_slurm_stops_leaves_no_result_so_that_it_may_be_queued_anew(job, code, ends, tmp_path, monkeypatch):
    """A result would tell the study that the job is over."""
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=code))
    monkeypatch.setenv("SLURM_JOB_ID", job) if job else monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    program = SubmittedCommand(Command(("+stage=grpo",), tmp_path / "printed" / "one.txt"))
    assert program() == code and ended == ([code] if ends else [])
    assert program.checkpoint().function is program, "where its time is up, the same is queued"
