"""What a candidate returned on each case, beside its verdict."""

from types import SimpleNamespace

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.verifiers.base import Direct, KeepsOutputs, Request, Verdict, executor_of
from rlvr_exp.verifiers.guarded import NoVerdictGuard
from rlvr_exp.verifiers.python_io import PythonIO

PROBLEM = PythonProblem("double", (Case((2,), 4), Case((3,), 6), Case((4,), 8)))


@pytest.fixture(scope="module")
def verifier():
    limits = {"cpu_s": 0.5, "wall_s": 6.0, "memory_mb": 100, "output_kb": 16, "level": "auto", "require": ""}
    with NoVerdictGuard(PythonIO(SimpleNamespace(workers=1, **limits)), 1.0) as verifier:
        yield verifier


@pytest.mark.parametrize(
    ("code", "outputs", "reason"),
    [
        ("def double(x): return 2 * x", (4, 6, 8), "passed"),
        ("def double(x): return [x, [x]]", ([2, [2]], [3, [3]], [4, [4]]), "wrong_answer"),
        ("def double(x): return 2 * x if x != 3 else 1 / 0", (4, None, 8), "runtime_error"),
        ("def double(x): return object()", (None, None, None), "wrong_answer"),
        ("def double(x): return", (None, None, None), "wrong_answer"),
        ("def double(x) return x", (None, None, None), "parse"),
        ("import os\ndef double(x): return 2 * x if x < 4 else os._exit(0)", (4, 6, None), "runtime_error"),
        (None, (), "parse"),
    ],
)
def test_the_outputs_are_those_of_each_case(verifier, code, outputs, reason):
    found = executor_of(verifier, "here").execute(Request(PROBLEM, Candidate(code))).result()
    assert (found.outputs, found.verdict.reason) == (outputs, reason)


def test_a_program_is_known_by_what_it_prints(verifier):
    problem = PythonProblem("", (StdinCase("3\n", "6\n"), StdinCase("4\n", "8\n")))
    found = executor_of(verifier, "here").execute(Request(problem, Candidate("print(3 * int(input()))"))).result()
    assert (found.outputs, found.verdict.passed) == (("9\n", "12\n"), 0)


def test_each_call_is_a_run_of_its_own(verifier):
    executor = executor_of(verifier, "here")
    request = Request(PROBLEM, Candidate("import os\ndouble = lambda x: os.urandom(8).hex()"))
    first, second = (executor.execute(request).result() for _ in range(2))
    assert first.outputs != second.outputs


def test_a_verifier_of_verdicts_alone_is_refused():
    class Judge(Direct):
        name, version = "judge", "1"

        def judge(self, request: Request) -> Verdict:
            return Verdict("passed")

    with pytest.raises(InputError, match=r"self_play\.relabel"):
        executor_of(NoVerdictGuard(Judge(), 1.0), "self_play.relabel")


def test_verdicts_carry_outputs_and_a_program_is_run_once(verifier):
    keeping, before = KeepsOutputs(verifier, "here"), verifier.n_requests
    twice = [Request(PROBLEM, Candidate("import os\ndouble = lambda x: os.urandom(8).hex()"))] * 2
    first, second = keeping.verify(twice)
    assert first.outputs == second.outputs and len(set(first.outputs)) == 3
    assert verifier.n_requests == before + 1


def test_an_answer_without_a_program_keeps_its_own_fault(verifier):
    keeping = KeepsOutputs(verifier, "here")
    verdicts = keeping.verify([Request(PROBLEM, Candidate(None, fault)) for fault in ("line 2", "line 5")])
    assert [(one.bucket, one.log, one.outputs) for one in verdicts] == [
        ("parse", "line 2", None),
        ("parse", "line 5", None),
    ]
