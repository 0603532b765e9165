"""How a run ends when it is killed, interrupted or has nothing to learn: no process survives, existing files are
complete."""

import hashlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from program import ENVIRONMENT, INTERPRETED, run_program

from rlvr_exp.records.rollout_files import read_rollouts, rollout_steps

pytestmark = pytest.mark.slow

LONG = ["+stage=grpo", "+experiment=quick", "algorithm.max_steps=500", "evaluation.tasks=4", "run.dir=run"]


def start(place: Path, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*INTERPRETED, *words],
        cwd=place,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_checkpoint(place: Path, parent: subprocess.Popen) -> Path:
    latest = place / "run" / "checkpoints" / "latest"
    for _ in range(6000):
        if latest.exists():
            return latest
        assert parent.poll() is None, (place / "run" / "log.txt").read_text()
        time.sleep(0.1)
    raise TimeoutError("no checkpoint within ten minutes")


def descendants(root: int) -> set[int]:
    """All processes below a process, by parent links."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended while we looked
    found, added = set(), {root}
    while added:
        found |= added
        added = {child for child, parent in parents.items() if parent in added}
    return found - {root}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_kill_9_of_the_parent_leaves_nothing_alive_and_no_partial_file(tmp_path):
    parent = start(tmp_path, *LONG)
    latest = wait_for_checkpoint(tmp_path, parent)
    below = descendants(parent.pid)
    assert len(below) >= 2, "a stage and at least one sandbox worker"
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 5
    while any(map(alive, below)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in below if alive(pid)]
    for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines():
        json.loads(line)
    for folder in (tmp_path / "run" / "checkpoints").glob("step_*"):
        for name, wanted in json.loads((folder / "checkpoint.json").read_text())["sha256"].items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == wanted, f"{folder / name} is damaged"
    for path in rollout_steps(tmp_path / "run").values():
        assert read_rollouts(path)
    words = ["+stage=evaluate", "+experiment=quick", "evaluation.tasks=4", f"model.path={latest}", "run.dir=after"]
    done = run_program(tmp_path, *words)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_writes_a_checkpoint_and_ends_with_130(tmp_path):
    parent = start(tmp_path, *LONG)
    wait_for_checkpoint(tmp_path, parent)
    os.kill(parent.pid, signal.SIGINT)
    _, printed = parent.communicate(timeout=300)
    assert parent.returncode == 130
    assert printed.splitlines()[-1] == "continue with: python -m rlvr_exp run.resume=run"
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "interrupted" and summary["steps"] >= 2 and summary["before"]
    checkpoint = tmp_path / "run" / "checkpoints" / f"step_{summary['steps']:06d}"
    assert (checkpoint / "checkpoint.json").exists()


def test_a_run_in_which_no_group_can_teach_ends_with_3(tmp_path):
    words = ["+stage=grpo", "+experiment=quick", "evaluation.tasks=4", "model.max_completion_tokens=1", "run.dir=run"]
    parent = start(tmp_path, *words)
    _, printed = parent.communicate(timeout=600)
    assert parent.returncode == 3, printed
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "stopped" and "none had anything to learn from" in summary["reason"]


def ranks_of(parent: int) -> dict[str, int]:
    """The process of each rank, by the RANK in its environment."""
    found = {}
    for pid in descendants(parent):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"rlvr_exp.child" in words:
            env = dict(
                part.split(b"=", 1) for part in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if b"=" in part
            )
            found[env[b"RANK"].decode()] = pid
    return found


def summary_of(place: Path) -> dict:
    return json.loads((place / "run" / "summary.json").read_text())


def test_a_rank_killed_in_a_step_ends_the_run_with_1_and_nothing_alive(tmp_path):
    parent = start(tmp_path, *LONG, "parallel=zero2")
    wait_for_checkpoint(tmp_path, parent)
    below, ranks = descendants(parent.pid), ranks_of(parent.pid)
    assert sorted(ranks) == ["0", "1"]
    os.kill(ranks["1"], signal.SIGKILL)
    began = time.monotonic()
    _, said = parent.communicate(timeout=60)
    assert parent.returncode == 1 and time.monotonic() - began < 20
    assert not [pid for pid in below if alive(pid)]
    summary = summary_of(tmp_path)
    assert summary["status"] == "failed" and summary["before"]
    assert summary["reason"].startswith("rank 1 was killed by SIGKILL") and summary["reason"] in said
    assert [path.name for path in tmp_path.iterdir()] == ["run"] and not (tmp_path / "run" / ".ranks").exists()


def test_an_interrupt_stops_all_ranks_at_one_step_with_its_checkpoint(tmp_path):
    parent = start(tmp_path, *LONG, "parallel=zero3")
    wait_for_checkpoint(tmp_path, parent)
    os.kill(parent.pid, signal.SIGINT)
    _, said = parent.communicate(timeout=120)
    assert parent.returncode == 130, said
    summary = summary_of(tmp_path)
    assert summary["status"] == "interrupted" and summary["steps"] >= 2 and summary["before"]
    assert (tmp_path / "run" / "checkpoints" / f"step_{summary['steps']:06d}" / "checkpoint.json").exists()
    stopped = [(tmp_path / "run" / name).read_text() for name in ("log.txt", "log.rank1.txt")]
    assert all(f"stopped at step {summary['steps']} of" in text for text in stopped)
