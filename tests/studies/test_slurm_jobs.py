"""The executor of Slurm, on submitit's own processes of this machine."""

from pathlib import Path

import pytest

from rlvr_exp.core.errors import InputError, Interrupted
from rlvr_exp.records.context import RunContext
from rlvr_exp.studies.executors import Command
from rlvr_exp.studies.slurm import Slurm

pytest.importorskip("submitit")


def commands(place: Path, **words: str) -> dict[str, Command]:
    return {name: Command((word,), place / f"{name}.txt") for name, word in words.items()}


def test_jobs_are_submitted_and_waited_for(tmp_path: Path) -> None:
    found, codes, begun = commands(tmp_path, good="--version", bad="+stage=nothing"), dict[str, int](), list[str]()
    executor = Slurm(jobs=1, cluster="local", parameters={"timeout_min": 3})
    executor.run(found, RunContext(tmp_path, lambda _: None), begun.append, codes.__setitem__)
    assert codes == {"good": 0, "bad": 2} and begun == ["good", "bad"]
    assert "rlvr_exp" in (tmp_path / "good.txt").read_text() and (tmp_path / "submitit").is_dir()


def test_a_study_that_is_stopped_cancels_its_jobs(tmp_path: Path) -> None:
    context, begun = RunContext(tmp_path, lambda _: None), list[str]()

    def began(name: str) -> None:
        begun.append(name)
        context.interrupted = True

    with pytest.raises(Interrupted, match="run.resume=auto"):
        Slurm(jobs=1, cluster="local").run(
            commands(tmp_path, one="+stage=grpo", two="--version"), context, began, lambda *_: None
        )
    assert begun == ["one"]


def test_parameters_that_submitit_does_not_take_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="submitit refuses"):
        Slurm(jobs=1, cluster="local", parameters={"gpus": 2}).run(
            {}, RunContext(tmp_path, lambda _: None), lambda _: None, lambda *_: None
        )
