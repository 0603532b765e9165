"""A run from its parent's side: its directory, its exit code, its summary and what is printed, however the stage ends."""

import json
import os
from pathlib import Path

import pytest
import yaml
from checkpoint_samples import checkpoint
from thinning import thinned

from rlvr_exp.config.compose import compose
from rlvr_exp.core import hashing
from rlvr_exp.core.errors import INTERRUPTED, InputError
from rlvr_exp.launch import children
from rlvr_exp.launch import execute as module
from rlvr_exp.launch.children import Ended
from rlvr_exp.launch.execute import Outcome, execute
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.manifest import initial_weights, update

ROOT = Path(__file__).parents[2]
STAGE = """
import os, sys, types
from rlvr_exp.core.errors import GuardStop, InputError, Interrupted, InputProblem
from rlvr_exp.records.context import StageResult
from rlvr_exp import child

RATE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10, "samples": 8}

def done(context):
    context.progress(kind="step", step=2, total=2)
    return StageResult(before={"pass_at_1": RATE}, after={"pass_at_1": RATE}, metrics={"loss": float("nan")}, steps=2)

def known(context):
    from rlvr_exp.core import hashing
    return StageResult(metrics={"known": len(hashing._known)})

def guard(context):
    context.before = {"pass_at_1": RATE}
    context.progress(kind="step", step=1, total=2)
    raise GuardStop("not a number")

def bad(context): raise InputError(InputProblem("data", "shrank"))
def stopped(context): raise Interrupted("at step 1")
def fault(context): return 1 / 0
def killed(context): os.kill(os.getpid(), 9)
def silent(context): os._exit(0)

def killed_later(context):
    (context.directory / "metrics.jsonl").write_text('{"step": 1}\\n{"step": 3}\\n{"step')
    killed(context)

stage = types.ModuleType("rlvr_exp.stages.evaluate")
stage.run = lambda config, context: globals()[os.environ["HOW"]](context)
sys.modules["rlvr_exp.stages.evaluate"] = stage
if __name__ == "__main__":
    sys.exit(child.main(sys.argv[1:]))
"""
COMMAND = ["python", "-m", "rlvr_exp", "+stage=evaluate"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "fake_launch.py").write_text(STAGE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr(module, "LAUNCH", "fake_launch")

    def start(how: str) -> Outcome:
        monkeypatch.setenv("HOW", how)
        return execute(compose(["+stage=evaluate", "seed=4"]), COMMAND, tmp_path / "run")

    return start


def test_what_the_parent_has_read_the_child_need_not_read_again(run, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "weights").write_bytes(b"weights")
    monkeypatch.setattr(hashing, "_known", {})
    monkeypatch.setattr(hashing, "SETTLED_NS", -1_000_000_000)
    hashing.checksum(tmp_path / "weights")
    outcome = run("known")
    assert outcome.summary["metrics"] == {"known": 1 + len(initial_weights(compose(COMMAND[3:]).config))}
    assert not (outcome.directory / hashing.HANDED).exists()


@pytest.mark.parametrize(
    ("how", "code", "status", "reason"),
    [
        ("done", 0, "completed", ""),
        ("guard", 3, "stopped", "not a number"),
        ("bad", 2, "failed", "data: shrank"),
        ("stopped", 130, "interrupted", "at step 1"),
        ("fault", 1, "failed", "ZeroDivisionError: division by zero"),
        ("killed", 1, "failed", "the stage's process was killed by SIGKILL; the machine may have run out of memory"),
        ("silent", 1, "failed", "the stage's process ended with code 0 and no summary"),
    ],
)
def test_every_end_has_its_code_and_summary(run, capfd, how: str, code: int, status: str, reason: str) -> None:
    outcome = run(how)
    summary = json.loads((outcome.directory / "summary.json").read_text())
    assert outcome.code == code and outcome.summary == summary
    assert (summary["stage"], summary["status"], summary["reason"]) == ("evaluate", status, reason)
    assert set(summary) == {"stage", "status", "reason", "steps", "seconds", "before", "after", "metrics"}
    assert (outcome.directory / "report.html").is_file()
    said = capfd.readouterr()
    assert reason in said.err
    assert (f"continue with: python -m rlvr_exp run.resume={outcome.directory}\n" in said.err) == (how == "stopped")
    if how == "fault":
        assert "ZeroDivisionError" in said.err and "log.txt" in said.err
    elif how == "done":
        assert summary["steps"] == 2 and summary["after"]["pass_at_1"]["n"] == 10
        assert summary["metrics"] == {"loss": None}, "strict JSON has no NaN"
        assert "pass_at_1: 50.0% -> 50.0% [40.0%, 60.0%], 10 tasks" in said.out
        tell_what_ran(outcome.directory)
    elif how == "guard":
        assert summary["steps"] == 1 and summary["before"]["pass_at_1"]["value"] == 0.5, "measured before it stopped"
        with pytest.raises(InputError, match="holds another run"):
            run("done")
        assert json.loads((outcome.directory / "summary.json").read_text()) == summary, "a directory is used once"
    elif how == "bad":
        again = run("done")
        assert again.code == 0 and "shrank" not in (again.directory / "log.txt").read_text(), "a refused run leaves it"


def tell_what_ran(directory: Path) -> None:
    assert yaml.safe_load((directory / "config.yaml").read_text())["seed"] == 4
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["command"] == COMMAND and manifest["seed"] == 4 and manifest["stage"] == "evaluate"
    assert manifest["versions"]["hydra-core"] and manifest["hardware"]["cores"] >= 1
    assert len(manifest["git"]["commit"]) == 40
    update(directory, data={"fingerprint": "abc"})
    assert json.loads((directory / "manifest.json").read_text()) == manifest | {"data": {"fingerprint": "abc"}}
    assert not list(directory.rglob("*.tmp"))


def test_a_killed_run_counts_the_steps_that_it_logged(run) -> None:
    outcome = run("killed_later")
    assert (outcome.code, outcome.summary["steps"]) == (1, 3)


def test_inline_runs_in_this_process(tmp_path: Path) -> None:
    seen: list[tuple[int, RunContext]] = []

    def inline(config, context: RunContext) -> int:
        from rlvr_exp.records.context import StageResult, write_summary

        seen.append((os.getpid(), context))
        context.progress(kind="note", text="here")
        write_summary(context.directory, config.stage, 0, 1.0, StageResult())
        return 0

    outcome = execute(compose(["+stage=evaluate"]), COMMAND, tmp_path / "run", inline)
    assert outcome.code == 0 and seen[0][0] == os.getpid() and not (outcome.directory / "log.txt").exists()


def test_an_interrupted_phase_ends_the_stage(tmp_path: Path) -> None:
    from rlvr_exp.core.errors import Interrupted

    context = RunContext(tmp_path, lambda event: None)
    context.progress(kind="phase", name="evaluate before", done=1, total=2)
    context.interrupted = True
    context.progress(kind="step", step=3)
    with pytest.raises(Interrupted, match="evaluate before"):
        context.progress(kind="phase", name="evaluate before", done=2, total=2)
    assert context.steps == 3


@pytest.mark.parametrize(
    ("returncode", "asked", "code"),
    [(0, False, 0), (3, True, 3), (-15, True, 130), (-9, True, 130), (-9, False, 1), (77, False, 1)],
)
def test_a_childs_end_becomes_an_exit_code(returncode: int, asked: bool, code: int) -> None:
    assert module.exit_code(Ended(returncode, asked)) == code


def test_the_terminal_says_at_once_that_imports_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the parent can say before its child can: the first seconds are imports."""
    told: list[dict] = []
    monkeypatch.setattr("rlvr_exp.launch.console.Progress.event", lambda self, event: told.append(dict(event)))
    monkeypatch.setattr(module, "run_children", lambda *_: told.append({"kind": "started"}) or Ended(0, False))
    execute(compose(["+stage=evaluate"]), COMMAND, tmp_path / "run")
    assert told == [{"kind": "wait", "name": "starting: imports"}, {"kind": "started"}]


def test_settings_and_advice_come_before_the_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["+stage=evaluate", f"model.path={checkpoint(tmp_path / 'model')}", "evaluation.temperature=0.01"]
    told = []

    def stage(*_: object) -> int:
        told.append(capsys.readouterr().out)
        return INTERRUPTED

    execute(compose(words), ["python"], tmp_path / "run", stage)
    settings = {one["option"]: one for one in json.loads((tmp_path / "run" / "manifest.json").read_text())["settings"]}
    assert "chosen: data.prompt.style=instruct: a model with a chat template" in told[0]
    assert "advice: evaluation.temperature=0.01 is meant by hardly anyone" in told[0]
    assert settings["data.prompt.style"]["value"] == "instruct" and settings["model.dtype"]["why"]
    (advice,) = json.loads((tmp_path / "run" / "manifest.json").read_text())["advice"]
    assert advice.startswith("evaluation.temperature=0.01")


STAGE_OF_RANKS = """
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
def run_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "launch_of_ranks.py").write_text(STAGE_OF_RANKS)
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
    run_ranks, capfd, who: int, how: str, code: int, status: str, reason: str
) -> None:
    outcome = run_ranks(who, how)
    summary = json.loads((outcome.directory / "summary.json").read_text())
    assert outcome.code == code and outcome.summary == summary
    assert summary["status"] == status and reason in summary["reason"] and "Connection closed" not in summary["reason"]
    assert summary["reason"].startswith("rank 1") == (who == 1)
    said = capfd.readouterr().err
    assert summary["reason"] in said and ("1 / 0" in said) == (how == "fault"), "the traceback of that rank"


def test_one_directory_one_progress_one_set_of_numbers(run_ranks, capfd) -> None:
    outcome = run_ranks(0, "done")
    assert outcome.code == 0 and outcome.summary["metrics"] == {"rank": 0}
    names = {path.name for path in outcome.directory.iterdir() if not path.name.startswith(".")}
    assert names == {"config.yaml", "manifest.json", "log.txt", "log.rank1.txt", "summary.json", "report.html"}
    said = capfd.readouterr().out
    assert "rank 0 in run" in said and "rank 1" not in said
