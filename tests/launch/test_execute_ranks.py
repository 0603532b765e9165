"""A run of two processes from its parent's side: the failed process decides its code, its reason and what is
printed."""

import json
import os
from pathlib import Path

import pytest
from thinning import thinned

from rlvr_exp.config.compose import compose
from rlvr_exp.launch import children
from rlvr_exp.launch import execute as module
from rlvr_exp.launch.execute import Outcome, execute

ROOT = Path(__file__).parents[2]
STAGE = """
import contextlib, os, sys, time, types
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.context import StageResult
from rlvr_exp import child

def run(config, context):
    context.before = {"from": "rank 0"}
    context.progress(kind="note", text=f"rank {os.environ['RANK']} in {context.directory.name}")
    if os.environ["RANK"] == os.environ["WHO"]:
        time.sleep(0.3)
        ENDS[os.environ["HOW"]]()
    elif os.environ["HOW"] != "done":
        time.sleep(1)
        raise RuntimeError("Connection closed by peer")
    return StageResult(metrics={"rank": int(os.environ["RANK"])})

def stop():
    raise GuardStop("graders fail")

ENDS = {"fault": lambda: 1 / 0, "guard": stop, "kill": lambda: os.kill(os.getpid(), 9), "done": lambda: 0}

child.joined = lambda parallel: contextlib.nullcontext()  # What they do needs no torch.
stage = types.ModuleType("rlvr_exp.stages.evaluate")
stage.run = run
sys.modules["rlvr_exp.stages.evaluate"] = stage
if __name__ == "__main__":
    sys.exit(child.main(sys.argv[1:]))
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "launch_of_ranks.py").write_text(STAGE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr(module, "LAUNCH", "launch_of_ranks")
    monkeypatch.setattr(children, "GRACE_FAULT_S", 2.0)

    def start(who: int, how: str) -> Outcome:
        monkeypatch.setenv("WHO", str(who))
        monkeypatch.setenv("HOW", how)
        return execute(compose(["+stage=evaluate", "parallel=ddp"]), ["rlvr_exp"], tmp_path / "run")

    return start


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize(
    ("how", "code", "status", "reason"),
    thinned(
        [
            ("fault", 1, "failed", "ZeroDivisionError: division by zero"),
            ("guard", 3, "stopped", "graders fail"),
            ("kill", 1, "failed", "was killed by SIGKILL"),
        ],
        2,
    ),
)
def test_the_rank_that_failed_first_tells_why(
    run, capfd, who: int, how: str, code: int, status: str, reason: str
) -> None:
    outcome = run(who, how)
    summary = json.loads((outcome.directory / "summary.json").read_text())
    assert outcome.code == code and outcome.summary == summary
    assert summary["status"] == status and reason in summary["reason"] and "Connection closed" not in summary["reason"]
    assert summary["reason"].startswith("rank 1") == (who == 1)
    said = capfd.readouterr().err
    assert summary["reason"] in said and ("1 / 0" in said) == (how == "fault"), "the traceback of that rank"


def test_one_directory_one_progress_one_set_of_numbers(run, capfd) -> None:
    outcome = run(0, "done")
    assert outcome.code == 0 and outcome.summary["metrics"] == {"rank": 0}
    names = {path.name for path in outcome.directory.iterdir() if not path.name.startswith(".")}
    assert names == {"config.yaml", "manifest.json", "log.txt", "log.rank1.txt", "summary.json", "report.html"}
    said = capfd.readouterr().out
    assert "rank 0 in run" in said and "rank 1" not in said
