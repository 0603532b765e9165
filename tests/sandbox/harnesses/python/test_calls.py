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
from rlvr_exp.sandbox.harnesses.python.calls import has_side_effects
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


PURE = {
    "transpose": "def f(g): return [list(row) for row in zip(*g)]",
    "nested": "def f(g):\n    def turn(r): return r[::-1]\n    return [turn(r) for r in g]",
    "methods of data": "def f(s):\n    out = []\n    for c in s: out.append(c.upper())\n    return ''.join(out)",
    "raising": "def f(x):\n    if x < 0: raise ValueError('no')\n    return x",
    "generator": "def f(n): return sum(i * i for i in range(n) if i % 2)",
    "own memory": "seen = {}\ndef f(x):\n    seen[x] = seen.get(x, 0) + 1\n    return seen[x]",
    "print": "def f(x):\n    print(x)\n    return x",
}
LEAVING = {
    "import": "import math\ndef f(x): return math.sqrt(x)",
    "import inside": "def f(x):\n    from os import environ\n    environ['A'] = '1'",
    "attribute": "def f(x): f.count = x",
    "global": "def f(x):\n    global y\n    y = x",
    "class": "class A: pass",
    "dunder": "def f(x): return x.__class__",
    "exec": "exec('import os')",
    "getattr in a lambda": "f = lambda x: getattr(x, 'y')",
    "open": "def f(x): return open('a', 'w')",
    "input": "print(input())",
    "comprehension": "f = [globals() for _ in range(2)]",
    "deletion": "def f(x): del x.y",
}


@pytest.mark.parametrize("source", PURE.values(), ids=PURE)
def test_code_that_computes_leaves_nothing(source):
    assert not has_side_effects(compile(source, "candidate", "exec"))


@pytest.mark.parametrize("source", LEAVING.values(), ids=LEAVING)
def test_code_that_could_leave_something_is_cleaned_after(source):
    assert has_side_effects(compile(source, "candidate", "exec"))
