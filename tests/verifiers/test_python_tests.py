"""Tests as calls: valid where the reference passes them, worth what they catch; nothing else is a test."""

from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.domains.problems.rows import call_text
from rlvr_exp.launch.preflight import verifier_mismatch
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.calls import MOST_LINES, CallsProblem, read_tests
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.futures import completed_future, gathered
from rlvr_exp.verifiers.python_tests import PythonTests

REFERENCE = "def f(x):\n    return abs(x)\n"
SAME, NEGATIVE, BREAKS, ENDLESS, NOTHING = (
    "def f(y):\n    return y if y > 0 else -y\n",
    "def f(x):\n    return x\n",
    "def f(x):\n    return 1 // x * x\n",
    "def f(x):\n    while x == 2:\n        pass\n    return abs(x)\n",
    "def f(x):\n    print(x)\n",
)


@pytest.fixture(scope="module")
def verifier():
    with PythonTests(Sandbox(workers=2, cpu_s=0.5)) as one:
        yield one


def judged(verifier, text, *programs, reference=REFERENCE):
    request = Request(CallsProblem("f", reference, programs), Candidate(text))
    return verifier.execute(request).result(timeout=60)


def test_a_program_is_caught_by_valid_tests_alone(verifier) -> None:
    found = judged(verifier, "f(3) == 3\nf(-2) == -2\nf(0) == 0\n", SAME, NEGATIVE, BREAKS)
    assert found.outputs == ((True, False, True), ((False,) * 3, (False,) * 3, (True, False, True)))
    verdict = found.verdict
    assert (verdict.outcome, verdict.passed, verdict.total) == ("failed", 2, 3) and "(-2,)" in verdict.log
    assert verdict.measures == {"validity": 2 / 3, "duplicates": 0.0, "mutation_score": 1 / 3}


def test_programs_are_compared_with_what_a_test_expects_as_plain_data(verifier) -> None:
    """The order of a dict counts for nothing, and a bool is no number."""
    counts = "def f(s):\n    return {c: s.count(c) for c in s}\n"
    in_order, truth = (
        "def f(s):\n    return {c: s.count(c) for c in sorted(s)}\n",
        "def f(s):\n    return {c: True for c in s}\n",
    )
    found = judged(verifier, "f('ba') == {'a': 1, 'b': 1}", in_order, truth, reference=counts)
    assert found.outputs == ((True,), ((False,), (True,))) and found.verdict.measures["mutation_score"] == 0.5


@pytest.mark.parametrize(
    ("text", "outcome", "score"),
    [
        ("f(-2) == 2", "passed", 0.5),
        ("assert f(-2) == 2\nf(2) == 2", "passed", 1.0),
        ("f(0) == 0\nf(1) == 1", "failed", 0.0),
        ("f(-2) == 2\nf(-2) == 2", "failed", 0.5),
    ],
)
def test_tests_pass_where_all_are_valid_and_some_program_is_caught(verifier, text, outcome, score) -> None:
    verdict = judged(verifier, text, NEGATIVE, ENDLESS).verdict
    assert verdict.outcome == outcome and verdict.measures["mutation_score"] == score


@pytest.mark.slow
def test_another_writers_expensive_call_makes_no_test_invalid(verifier) -> None:
    reference = "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n"
    mine, dear = "f(5) == 5\nf(6) == 8", "f(60) == 1548008755920"
    for together in ((mine, dear), (dear, mine)):
        asked = Request(CallsProblem("f", reference, ("def f(n):\n    return n\n",), together), Candidate(mine))
        verdict = verifier.execute(asked).result(timeout=60).verdict
        assert verdict.outcome == "passed" and verdict.measures["validity"] == 1.0, together
    lost = Request(CallsProblem("f", reference, (), (mine, dear)), Candidate(dear))
    assert verifier.execute(lost).result(timeout=60).verdict.measures["validity"] == 0.0


def test_another_writers_expensive_call_catches_no_program_for_mine(verifier) -> None:
    reference = "def f(n):\n    a, b = 0, 1\n    for _ in range(n): a, b = b, a + b\n    return a\n"
    slow = "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n"
    mine, dear = "f(5) == 5\nf(6) == 8", "f(60) == 1548008755920"
    asked = Request(CallsProblem("f", reference, (slow,), (mine, dear)), Candidate(mine))
    verdict = verifier.execute(asked).result(timeout=60).verdict
    assert (verdict.outcome, verdict.measures["mutation_score"]) == ("failed", 0.0)


def test_without_programs_validity_alone_counts(verifier) -> None:
    verdict = judged(verifier, "f(-1) == 1").verdict
    assert verdict.outcome == "passed" and "mutation_score" not in verdict.measures
    assert judged(verifier, "f(1) == 1", NOTHING).verdict.measures["mutation_score"] == 1.0


@pytest.mark.parametrize(
    "line",
    [
        "f(print(1)) == 1",
        "f(...) == 1",
        "f(1) == ...",
        f"f({'[' * 101}{']' * 101}) == 1",
        "f(__import__('os').getpid()) == 1",
        "f(1) == f(1)",
        "f(1) == (lambda: 1)()",
        "f(1) != 2",
        "f(1) == 1 == 1",
        "True == True",
        "g(1) == 1",
        "f(x=1) == 1",
        "f(*[1]) == 1",
        "f(1) == 1; import os",
        "import os",
        "open('/etc/passwd').read()",
        "while True: pass",
        "f(" + "(" * 300 + ")" * 300 + ") == 1",
        "f(1) == " + "1" * 600,
        "\x00",
    ],
)
def test_nothing_but_calls_on_literals_is_a_test(verifier, line) -> None:
    """A tester cannot print, exit, patch, read files or look into a solution, and is not paid for trying."""
    assert not read_tests(line, "f").cases
    alone, beside = judged(verifier, line, NEGATIVE).verdict, judged(verifier, f"f(-2) == 2\n{line}", NEGATIVE).verdict
    assert (alone.outcome, alone.bucket) == ("failed", "parse") and not alone.measures
    assert beside.outcome == "failed" and beside.measures["validity"] == 0.5


def test_a_flood_of_lines_is_not_read() -> None:
    found = read_tests("\n".join(f"f({number}) == {number}" for number in range(500)), "f")
    assert len(found.cases) == MOST_LINES and found.lines == 500


@given(
    st.lists(
        st.tuples(
            st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4),
            st.integers(),
        ),
        max_size=6,
    )
)
def test_what_is_written_as_calls_is_read_as_it_was(given) -> None:
    cases = [Case((one, other), one) for one, other in given]
    found = read_tests("\n".join(call_text("f", case) for case in cases), "f")
    distinct = {repr(case.args): case for case in reversed(cases)}
    assert not found.faulty and {repr(case.args): case for case in found.cases} == distinct
    assert found.lines == len(cases)


def test_every_other_problem_is_judged_as_by_python_io(verifier) -> None:
    problem = PythonProblem("f", (Case((-3,), 3),))
    verdicts = [verifier.submit(Request(problem, Candidate(code))).result(timeout=60) for code in (SAME, NEGATIVE)]
    assert [one.outcome for one in verdicts] == ["passed", "failed"]
    assert verifier.execute(Request(problem, Candidate(NEGATIVE))).result(timeout=60).outputs == (-3,)


def test_futures_are_gathered_in_their_order_and_a_fault_is_told() -> None:
    late: Future[int] = Future()
    both = gathered([late, completed_future(2)])
    assert not both.done()
    late.set_result(1)
    assert both.result(timeout=1) == [1, 2] and gathered([]).result(timeout=1) == []
    broken: Future[int] = Future()
    broken.set_exception(ValueError("x"))
    with pytest.raises(ValueError, match="x"):
        gathered([completed_future(1), broken]).result(timeout=1)


SUITE = PytestProblem("from solution import f\n\n\ndef test_it():\n    assert f(-3) == 3\n", reference=REFERENCE)


def test_a_problem_with_a_test_file_is_judged_by_pytest(verifier) -> None:
    verdicts = [verifier.submit(Request(SUITE, Candidate(code))).result(timeout=60) for code in (SAME, NEGATIVE)]
    assert [(one.outcome, one.bucket) for one in verdicts] == [("passed", None), ("failed", "wrong_answer")]
    found = verifier.execute(Request(SUITE, Candidate(SAME))).result(timeout=60)
    assert found.verdict.outcome == "passed" and found.outputs == ()
    assert verifier.metrics()["assertions"] >= 1 and "pytest" in verifier.tool()
    assert not verifier_mismatch("python_io", {"pytest", "python_io"}, verifier.also_judges)


def test_a_reference_that_is_executed_runs_anew_each_time(verifier) -> None:
    drawn = "import os\n\n\ndef f(x):\n    return os.urandom(1)[0] % 2\n"
    odd = PytestProblem("from solution import f\n\n\ndef test_it():\n    assert f(1) == 1\n", reference=drawn)
    runs = [verifier.execute(Request(odd, Candidate(drawn))).result(timeout=60).verdict.outcome for _ in range(24)]
    assert set(runs) == {"passed", "failed"}


@pytest.mark.slow
def test_a_suite_has_a_limit_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr("rlvr_exp.verifiers.python_tests.SUITE_CPU_S", 1.0)
    slow = PytestProblem(SUITE.tests, reference="")
    endless = Candidate("def f(x):\n    while True:\n        pass\n")
    with PythonTests(Sandbox(workers=1, cpu_s=30)) as one:
        verdict = one.submit(Request(slow, endless)).result(timeout=60)
    assert verdict.bucket == "timeout" and verdict.seconds < 5


def test_tests_that_are_judged_together_have_the_verdicts_that_they_have_apart_and_run_each_program_once(
    verifier, monkeypatch
) -> None:
    texts = ["f(3) == 3\nf(-2) == 2", "f(-2) == -2\nf(0) == 0\nnonsense", "f(2) == 2\nf(3) == 3", "nothing"]
    programs = (SAME, NEGATIVE, BREAKS, NOTHING)
    ran, execute = [], verifier._programs.execute
    monkeypatch.setattr(
        verifier._programs, "execute", lambda request, *more: ran.append(request) or execute(request, *more)
    )
    together = CallsProblem("f", REFERENCE, programs, tuple(texts))
    found = gathered([verifier.execute(Request(together, Candidate(text))) for text in texts]).result(timeout=60)
    assert len(ran) == 1 + len(programs) and len(ran[0].problem.cases) == 4
    apart = [judged(verifier, text, *programs) for text in texts]
    assert [(one.outputs, one.verdict.measures) for one in found] == [
        (one.outputs, one.verdict.measures) for one in apart
    ]
    assert [one.verdict.outcome for one in found] == [one.verdict.outcome for one in apart]


RAISING = """
class Own(ValueError):
    pass


def f(x):
    if x < 0:
        raise Own("negative")
    return x / 3
"""


@pytest.mark.parametrize(
    ("line", "valid"),
    [
        ("with pytest.raises(ValueError): f(-1)", True),
        ("with pytest.raises((KeyError, Exception)):\n    f(-1)", True),
        ("with pytest.raises(KeyError): f(-1)", False),
        ("with pytest.raises(ValueError): f(1)", False),
        ("f(1) == pytest.approx(0.333333333)", True),
        ("f(1) == pytest.approx(0.33, abs=0.01)", True),
        ("f(1) == pytest.approx(0.33)", False),
        ("f(1) == pytest.approx([0.33])", False),
        ("f(-1) == pytest.approx(0.33)", False),
    ],
)
def test_exceptions_and_tolerances_are_judged_as_by_pytest(verifier, line, valid) -> None:
    assert judged(verifier, line, reference=RAISING).outputs[0] == (valid,)


def test_a_program_that_raises_another_exception_or_none_is_caught(verifier) -> None:
    none = "def f(x):\n    return x / 3\n"
    other = RAISING.replace("(ValueError)", "(KeyError)")
    forged = RAISING.replace(
        "class Own(ValueError)", "class ValueError(Exception):\n    pass\n\n\nclass Own(ValueError)"
    )
    rough = RAISING.replace("x / 3", "round(x / 3, 1)")
    found = judged(
        verifier,
        "with pytest.raises(ValueError): f(-1)\nf(1) == pytest.approx(0.3333333)",
        RAISING, none, other, forged, rough, "def f(x):\n    raise SystemExit\n", reference=RAISING,
    )  # fmt: skip
    assert found.outputs[0] == (True, True)
    assert found.outputs[1] == (
        (False, False), (True, False), (True, False), (True, False), (False, True), (True, True),
    )  # fmt: skip


def test_floats_may_differ_by_the_problems_tolerances(verifier) -> None:
    volume, other = "4 * 3.141592653589793 * r ** 3 / 3", "4 / 3 * 3.141592653589793 * r ** 3 * (1 + 1e-9)"
    codes = [f"def f(r):\n    return {one}\n" for one in (volume, other, f"{volume} + 1")]
    for atol, caught in ((0.0, ((True,), (True,))), (1e-4, ((False,), (True,)))):
        problem = CallsProblem("f", codes[0], tuple(codes[1:]), atol=atol, rtol=1e-7 if atol else 0.0)
        found = verifier.execute(Request(problem, Candidate("f(10) == 4188.790204786391"))).result(timeout=60)
        assert found.outputs == ((True,), caught)


def test_none_is_a_value(verifier) -> None:
    reference = "def f(x):\n    return x or None\n"
    found = judged(verifier, "f(0) is None\nf(2) == 2", reference, "def f(x):\n    return x\n", reference=reference)
    assert found.outputs == ((True, True), ((False, False), (True, False)))
