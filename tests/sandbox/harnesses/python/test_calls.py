"""The harness of Python functions, driven in this process."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.python import calls, state_reset
from rlvr_exp.sandbox.harnesses.python.reporter import OutputCap, Reporter


@pytest.fixture
def timer():
    before = signal.getsignal(signal.SIGPROF)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_record_that_is_being_sent_is_not_cut_by_the_cases_timer(timer):
    sent = []

    def slowly(record: bytes) -> None:
        burn(0.15)
        sent.append(wire.decode(record))

    reporter = Reporter(slowly, 1 << 20, "")

    def one(index: int, given: object) -> bool:
        reporter.value(index, given)
        burn(0.15)
        return True

    assert calls._timed(0.05, one, 0, 7, reporter)
    assert sent == [["value", 0, 7]]


def test_a_case_past_its_time_before_its_record_is_a_timeout(timer):
    sent = []
    reporter = Reporter(lambda record: sent.append(wire.decode(record)[:3]), 1 << 20, "")
    for index in range(2):
        assert calls._timed(0.05, lambda *_: burn(5.0), index, 7, reporter)
    assert sent == [["error", 0, "timeout"], ["error", 1, "timeout"]]


REHEARSAL = """
import builtins, json, sys
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.python import calls
main, out, sent = sys.modules["__main__"], sys.stdout, []
if sys.argv[1] == "rehearsed":
    calls.rehearse()
    assert sys.modules["builtins"] is builtins and sys.modules["__main__"] is main and calls.MODULE not in sys.modules
code = "import random\\nseen = []\\ndef f(x):\\n    print(x)\\n    seen.append(x)\\n    return seen, random.random(), dir(__builtins__)"
calls.run(calls.pack(code, "f", [calls.pack_case((n,)) for n in range(6)], 1 << 20, 3), lambda r: sent.append(r.decode()))
sys.stdout.flush()
out.write(json.dumps(sent))
"""
ROOT = str(Path(__file__).resolve().parents[4])


def rehearsal(how: str, home: Path) -> tuple[str, list[str]]:
    """The kept part of the candidate's output, and its records."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {ROOT!r}){REHEARSAL}", how]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=home).stdout
    shown, bracket, records = printed.partition("[")
    return shown, json.loads(bracket + records)


def test_a_rehearsed_process_judges_as_a_fresh_one(tmp_path):
    shown, records = rehearsal("rehearsed", tmp_path)
    assert (shown, records) == rehearsal("fresh", tmp_path)
    assert shown == "0\n1" and len(records) == 7, "six cases, more than there are spare builtins, and the end"


def test_only_a_folder_that_was_empty_is_emptied(tmp_path, monkeypatch):
    (tmp_path / "mine").write_text("keep")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="holds files"):
        state_reset.Baseline(OutputCap(0))
