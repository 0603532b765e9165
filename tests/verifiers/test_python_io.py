"""The verifier of Python functions: buckets, partial results, limits, cached verdicts, and the guard."""

import sys
import weakref
from types import SimpleNamespace

import pytest

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers import python_io
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.engine import VerificationJob
from rlvr_exp.verifiers.python_io import PythonIO

PROBLEM = PythonProblem("double", (Case((2,), 4), Case((3,), 6), Case((4,), 8)))
RIGHT = "def double(x): return 2 * x"


def make(workers: int = 1, **limits: float) -> PythonIO:
    options = {"cpu_s": 0.5, "wall_s": 6.0, "memory_mb": 100, "output_kb": 16, "level": "auto", "require": ""} | limits
    return PythonIO(SimpleNamespace(workers=workers, **options))


@pytest.fixture(scope="module")
def verifier():
    with make() as verifier:
        yield verifier


def verify(verifier, *codes: str | None, problem: PythonProblem = PROBLEM):
    return verifier.verify([Request(problem, Candidate(code)) for code in codes])


@pytest.mark.parametrize(
    ("code", "bucket", "passed", "said"),
    [
        (RIGHT, None, 3, ""),
        ("def double(x) return x", "parse", 0, "SyntaxError"),
        ("def triple(x): return 3 * x", "resolve", 0, "double is not defined"),
        ("double = 4", "resolve", 0, "not callable"),
        ("import nowhere_to_be_found", "runtime_error", 0, "ModuleNotFoundError"),
        ("def double(x): return 4", "wrong_answer", 1, "case 1: double(3) gave 4, expected 6"),
        ("def double(x): return 2 * x if x != 3 else 1 / 0", "runtime_error", 2, "case 1: ZeroDivisionError"),
        ("def double(x, y): return 2 * x", "runtime_error", 0, "TypeError"),
        ("def double(x): yield 2 * x", "wrong_answer", 0, "not plain data"),
        ("def double(x):\n    while x > 2: pass\n    return 4", "timeout", 1, "CPU limit"),
        ("def double(x): return 2 * x if x < 4 else [0] * 10 ** 9", "memory", 2, "MemoryError"),
        ("def double(x):\n    print('y' * 20000)\n    return 2 * x", None, 3, ""),
        ("def double(x):\n    while True: print('y' * 20000)", "output_limit", None, "more than it may"),
        ("import os\ndef double(x):\n    os.write(1, b'y' * 20000)\n    return 2 * x", "output_limit", None, "more"),
        ("import os\ndef double(x): return 2 * x if x < 4 else os._exit(0)", "runtime_error", 2, "exit code 0"),
        (
            "import sys\nprint('the reason', flush=True)\nimport os\nos._exit(3)",
            "runtime_error",
            0,
            "printed: the reason",
        ),
    ],
)
def test_buckets(verifier, code, bucket, passed, said):
    verdict = verify(verifier, code)[0]
    assert (verdict.outcome, verdict.bucket) == ("failed" if bucket else "passed", bucket), verdict
    assert passed in (None, verdict.passed) and verdict.total == 3
    assert said in verdict.log and len(verdict.log) < 1000


def test_no_program_in_the_answer_is_a_parse_failure(verifier):
    verdict = verifier.verify([Request(PROBLEM, Candidate(None, "no fence"))])[0]
    assert (verdict.bucket, verdict.total, verdict.log) == ("parse", 3, "no fence")


def test_module_state_is_fresh_for_each_candidate(verifier):
    counting = "import math\nmath.calls = getattr(math, 'calls', 0) + 1\n"
    counting += "def double(x): return 2 * x if math.calls == 1 else 0  # %d"
    assert {verdict.outcome for verdict in verify(verifier, *(counting % n for n in range(4)))} == {"passed"}


def test_arguments_are_fresh_for_each_candidate(verifier):
    problem = PythonProblem("f", (Case(([1, 2],), [1, 2, 3]),))
    codes = (f"def f(x):\n    x.append(3)\n    return x # {n}" for n in range(2))
    assert {verdict.outcome for verdict in verify(verifier, *codes, problem=problem)} == {"passed"}


def test_a_problems_own_limits_win(verifier):
    slow = "def double(x):\n    while time.process_time() < 0.25: pass\n    return 2 * x"
    tight = PythonProblem("double", PROBLEM.cases, limits=Limits(cpu_s=0.1))
    assert verify(verifier, "import time\n" + slow)[0].outcome == "passed"
    assert verify(verifier, "import time\n" + slow, problem=tight)[0].bucket == "timeout"


def test_strict_tells_tuples_from_lists(verifier):
    code = "def f(): return (1, 2)"
    for strict, outcome in ((False, "passed"), (True, "failed")):
        assert (
            verify(verifier, code, problem=PythonProblem("f", (Case((), [1, 2]),), strict=strict))[0].outcome == outcome
        )


def test_duplicates_are_judged_once_and_remembered(verifier):
    code = RIGHT + "  # asked for several times"
    first, copy, other = verify(verifier, code, code, "double = 0  # other")
    assert (first.cached, copy.cached, other.cached) == (False, True, False)
    again = verify(verifier, code)[0]
    assert again.cached and again.outcome == "passed"


def test_problems_that_differ_in_types_alone_are_told_apart(verifier):
    code = "def f(): return (1,)"
    as_tuple, as_list = (PythonProblem("f", (Case((), value),), strict=True) for value in ((1,), [1]))
    assert verify(verifier, code, problem=as_tuple)[0].outcome == "passed"
    assert verify(verifier, code, problem=as_list)[0].outcome == "failed"


def test_a_fall_to_the_wall_clock_is_not_remembered():
    with make(wall_s=0.15) as verifier:
        sleeper = "import time\ndef double(x): time.sleep(30)"
        assert [verify(verifier, sleeper)[0].cached for _ in range(2)] == [False, False]


def test_a_broken_grader_gives_no_verdict(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with make() as verifier:
        verdict = verify(verifier, RIGHT)[0]
        assert (verdict.outcome, verdict.bucket, verdict.score) == ("no_verdict", None, 0.0)
        assert "no sandbox worker" in verdict.log


@pytest.mark.parametrize("problem", [PythonProblem("f", ()), PythonProblem("f", (Case((object(),), 1),))])
def test_a_problem_that_cannot_be_judged_has_no_verdict(problem):
    with make() as verifier:
        assert verify(verifier, RIGHT, problem=problem)[0].outcome == "no_verdict"


def test_isolation_is_told(verifier):
    told = verifier.isolation()
    assert told["level"] in ("namespaces", "user", "process") and told["isolated"]


NUMPY = "import numpy as np\ndef double(x): return int(np.array([x]).sum() * 2)"


def test_packages_are_there_in_every_case_and_not_where_they_are_refused():
    options = SimpleNamespace(workers=1, cpu_s=5.0, wall_s=30.0, memory_mb=512, output_kb=16, level="auto", require="")
    with PythonIO(options) as open_to_all, PythonIO(options, packages=False) as bare:
        assert verify(open_to_all, NUMPY)[0].outcome == "passed"
        assert verify(bare, NUMPY)[0].bucket == "runtime_error"
        assert verify(open_to_all, "import rlvr_exp\n" + RIGHT)[0].bucket == "runtime_error"


def test_a_fall_to_the_cpu_clock_is_remembered():
    with make() as verifier:
        first, second = (verify(verifier, "def double(x):\n    while True: pass")[0] for _ in range(2))
    assert (first.bucket, first.cached, second.bucket, second.cached) == ("timeout", False, "timeout", True)


def test_the_packages_are_part_of_what_is_remembered():
    with make() as verifier:
        assert verifier.tool()["packages"]


def test_packed_problems_are_held_up_to_a_number_of_bytes_and_never_keep_a_problem(monkeypatch):
    monkeypatch.setattr(python_io, "_PACKED_BYTES", 40_000)
    with make() as verifier:
        for n in range(20):
            problem = PythonProblem("double", (Case(("x" * 9000 + str(n),), n),))
            gone = weakref.ref(problem)
            assert isinstance(verifier.prepare(Request(problem, Candidate(RIGHT))), VerificationJob)
            assert verifier._pack(problem) is verifier._pack(problem)
        held = sum(packed.size for _, packed in verifier._packed.values())
        assert 0 < held == verifier._packed_bytes <= 40_000
        del problem
        assert gone() is None


def test_a_problem_of_nan_can_be_passed_by_nan_alone(verifier):
    problem = PythonProblem("f", (Case((), float("nan")),))
    for answer, outcome in (("float('nan')", "passed"), ("0.0", "failed"), ("None", "failed"), ("'nan'", "failed")):
        assert verify(verifier, f"def f(): return {answer}", problem=problem)[0].outcome == outcome
