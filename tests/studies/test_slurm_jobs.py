"""The executor of Slurm, on submitit's own processes of this machine."""

from pathlib import Path

import pytest
from planted import Fed

from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.records.context import RunContext
from rlvr_exp.studies.slurm import Slurm

pytest.importorskip("submitit")


def test_jobs_are_submitted_and_waited_for(tmp_path: Path) -> None:
    feed = Fed(tmp_path, good="--version", bad="+stage=nothing")
    executor = Slurm(jobs=1, cluster="local", parameters={"timeout_min": 3})
    executor.run(feed, RunContext(tmp_path, lambda _: None))
    assert feed.events == [("good", None), ("good", 0), ("bad", None), ("bad", 2)]
    assert "rlvr_exp" in (tmp_path / "good.txt").read_text() and (tmp_path / "submitit").is_dir()


def test_a_study_that_is_stopped_cancels_its_jobs(tmp_path: Path) -> None:
    context, feed = RunContext(tmp_path, lambda _: None), Fed(tmp_path, one="+stage=grpo", two="--version")
    feed.began = lambda: setattr(context, "interrupted", True)
    with pytest.raises(Interrupted, match="run.resume=auto"):
        Slurm(jobs=1, cluster="local").run(feed, context)
    assert feed.events == [("one", None)]


def test_parameters_that_submitit_does_not_take_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="submitit refuses"):
        Slurm(jobs=1, cluster="local", parameters={"gpus": 2}).run(Fed(tmp_path), RunContext(tmp_path, lambda _: None))
