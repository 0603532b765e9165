"""Real training runs, started as a person starts them: killed, stopped, failing within a sweep, and in one process."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from program import ENVIRONMENT, INTERPRETED, PROGRAM

SMALL = ["+experiment=quick", "evaluation.tasks=2", "evaluation.samples=2", "model.max_completion_tokens=8"]
TRAIN = ["+stage=grpo", *SMALL, "model.from_scratch=true", "run.checkpoint.every_steps=1"]
GUARDED = "run.guards.max_skipped=0"
IMITATE = ["+stage=sft", *SMALL, "model.from_scratch=true", "data.limit=40", "algorithm.eval_every_steps=1"]

pytestmark = pytest.mark.slow


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    """As a person does, since these runs are killed."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*INTERPRETED, *words], cwd=folder, env=ENVIRONMENT, **streams)


def finish(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([*PROGRAM, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def parents() -> dict[int, tuple[int, str]]:
    """Every process: its parent and state."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            found[int(entry.name)] = (int(parent), state)
    return found


def descendants(root: int) -> set[int]:
    family, processes = {root}, parents()
    while new := {pid for pid, (parent, _) in processes.items() if parent in family} - family:
        family |= new
    return family - {root}


def living(pids: set[int]) -> set[int]:
    processes = parents()
    return {pid for pid in pids if processes.get(pid, (0, "Z"))[1] != "Z"}


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return true()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in `tmp_path/run` that has written a checkpoint and is still running."""
    run = start(tmp_path, *TRAIN, "algorithm.max_steps=500", "run.dir=run")
    assert wait_until(lambda: (tmp_path / "run" / "checkpoints" / "latest").exists(), 120), run.poll()
    yield run
    run.kill()
    run.communicate()


def test_nothing_of_a_run_outlives_a_killed_parent(training: subprocess.Popen[str], tmp_path: Path) -> None:
    family = descendants(training.pid)
    assert len(living(family)) >= 3, "trainer, sandbox and its workers"
    training.kill()
    assert wait_until(lambda: not living(family), 5)
    newest = tmp_path / "run" / "checkpoints" / "latest"
    for name in ("config.yaml", "manifest.json"):
        assert (tmp_path / "run" / name).stat().st_size > 0
    assert not (tmp_path / "run" / "summary.json").exists()
    code, said = finish(tmp_path, "+stage=evaluate", *SMALL, f"model.path={newest}", "run.dir=after")
    assert code == 0, said
    assert json.loads((tmp_path / "after" / "summary.json").read_text())["after"]["pass_at_1"]["n"] == 2


def test_one_signal_stops_with_a_checkpoint(training: subprocess.Popen[str], tmp_path: Path) -> None:
    family = descendants(training.pid)
    training.send_signal(signal.SIGTERM)
    said = training.communicate(timeout=60)[0]
    assert training.returncode == 130, said
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "interrupted" and summary["before"]["pass_at_1"]["n"] == 2
    assert (tmp_path / "run" / "checkpoints" / "latest" / "model.safetensors").exists()
    assert wait_until(lambda: not living(family), 5)


def test_a_directory_in_use_is_refused(training: subprocess.Popen[str], tmp_path: Path) -> None:
    code, said = finish(tmp_path, *TRAIN, "run.dir=run")
    assert code == 2 and "holds another run" in said and training.poll() is None


def test_a_job_that_a_guard_stops_leaves_the_others_done(tmp_path: Path) -> None:
    code, said = finish(
        tmp_path,
        *IMITATE,
        "algorithm.max_steps=2",
        "optimizer.lr=1e-4,1e37,1e-3",
        GUARDED,
        "executor.jobs=2",
        "--multirun",
    )
    assert code == 3, said
    summaries = sorted(tmp_path.glob("multirun/*/*/*/summary.json"))
    assert [json.loads(path.read_text())["status"] for path in summaries] == ["completed", "stopped", "completed"]
    assert said.count("pass_at_1 before") == 1 and all(path.parent.name in said for path in summaries)
    (study,) = tmp_path.glob("multirun/*/*/study.json")
    assert [job["exit"] for job in json.loads(study.read_text())["jobs"]] == [0, 3, 0]
    assert f"table of the sweep: {study.with_name('study.html').relative_to(tmp_path)}" in said


def test_inline_is_one_process(tmp_path: Path) -> None:
    code, said = finish(tmp_path, *IMITATE, "algorithm.max_steps=1", "run.inline=true", "run.dir=run")
    assert code == 0, said
    assert not (tmp_path / "run" / "log.txt").exists()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 1
