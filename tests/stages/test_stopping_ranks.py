"""A run of two processes, one killed in the middle of a step, or both stopped: a single ending, no process survives."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from test_stopping import LONG, alive, descendants, start, wait_for_checkpoint

pytestmark = pytest.mark.slow


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
