"""A stalled process logs its phase and stacks once, to the log and to a person; others are left alone."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rlvr_exp.config.run import Guards
from rlvr_exp.core.phase import current, go_over, phase
from rlvr_exp.launch.watchdog import watched
from rlvr_exp.records.context import RunContext

SHORT = Guards(step_deadline_s=0.4)


def stuck_here(seconds: float) -> None:
    """Its name is looked for in the stacks."""
    with phase("evaluate"), phase("generate"):
        go_over("verify")
        time.sleep(seconds)


def test_phase_and_stacks_are_told_once_where_nothing_moves(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    before = current()[0]
    with watched(SHORT, RunContext(tmp_path, lambda event: None), "grpo"):
        stuck_here(0.8)
    log, said = (tmp_path / "log.txt").read_text(), capfd.readouterr().err
    for text in (log, said):
        assert text.count("watchdog: no sign of progress") == 1
        assert "last phase: verify (of evaluate)" in text and "stuck_here" in text and "Thread 0x" in text
        assert "raise run.guards.step_deadline_s=0.4" in text
    assert current()[0] == before


def test_each_time_of_standing_still_is_told(tmp_path: Path) -> None:
    context = RunContext(tmp_path, lambda event: None)
    with watched(SHORT, context, "grpo"):
        for step in (1, 2):
            stuck_here(0.7)
            context.progress(kind="step", step=step)
    log = (tmp_path / "log.txt").read_text()
    assert log.count("watchdog: no sign") == 2 and "after step 0" in log and "after step 1" in log


def test_signs_of_progress_keep_it_silent(tmp_path: Path) -> None:
    context = RunContext(tmp_path, lambda event: None)
    with watched(SHORT, context, "grpo"):
        for done in range(12):
            time.sleep(0.1)
            context.progress(kind="phase", name="evaluate", done=done, total=12)
    assert not (tmp_path / "log.txt").exists()


def test_a_deadline_of_nothing_starts_no_thread(tmp_path: Path) -> None:
    with watched(Guards(step_deadline_s=0), RunContext(tmp_path, lambda event: None), "grpo"):
        assert "watchdog" not in {thread.name for thread in threading.enumerate()}


CHILD = """
import sys, time
from pathlib import Path
from rlvr_exp.config.run import Guards
from rlvr_exp.core.phase import phase
from rlvr_exp.records.context import RunContext
from rlvr_exp.launch.watchdog import watched

directory, ends = Path(sys.argv[1]), sys.argv[2] == "ends"
sent = []
context = RunContext(directory, sent.append)
context.steps, context.before = 4, {"pass_at_1": 0.5}
with watched(Guards(step_deadline_s=0.3, stop_past_deadline=ends), context, "grpo"), phase("update"):
    time.sleep(1)
print("ALARM", [event["kind"] for event in sent])
"""


@pytest.mark.heavy
@pytest.mark.parametrize("ends", [False, True])
def test_a_run_is_ended_only_where_configured_and_then_with_3_and_a_summary(tmp_path: Path, ends: bool) -> None:
    """The child's standard error is its log, as in a run; the parent prints to the person."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with open(tmp_path / "log.txt", "ab") as log:
        words = [sys.executable, "-c", CHILD, str(tmp_path), "ends" if ends else "goes on"]
        done = subprocess.run(words, stderr=log, stdout=subprocess.PIPE, text=True, env=env, timeout=60)
    assert "last phase: update" in (tmp_path / "log.txt").read_text()
    if not ends:
        assert done.returncode == 0 and "ALARM ['alarm']" in done.stdout
        return
    assert done.returncode == 3 and "ALARM" not in done.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["status"] == "stopped" and "no sign of progress" in summary["reason"]
    assert summary["steps"] == 4 and summary["before"] == {"pass_at_1": 0.5}
