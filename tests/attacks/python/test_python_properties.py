"""Properties 18-22 of the specification, over generated candidates; and verdicts that depend on nothing else."""

import builtins
import random
from dataclasses import replace

import pytest
from endurance import KINDS, mixture, unchanged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from python_arena import LIMITS, MARK, PROBLEM, SECRET, double, judge, make, unseen
from thinning import tries

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request

quick = settings(max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = st.sampled_from(["f", "Sub", "state_1", "\u00e9t\u00e9", "x" * 100])
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)
ERRORS = [kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, Exception)]
SIMPLE = sorted({kind.__name__ for kind in ERRORS if not issubclass(kind, (UnicodeError, ExceptionGroup, MemoryError))})


@pytest.mark.property(18)
@quick
@given(name=NAMES, value=st.integers(0, 999))
def test_state_of_any_name_ends_with_its_candidate_and_its_case(verifier, name, value):
    leave = f"import math, os, sys\nsetattr(math, {name!r}, {value}); os.environ[{name!r}] = '{value}'\n"
    leave += f"sys.modules[{name!r}] = math; open({name!r}, 'w').close()\n"
    look = (
        f"import math, os, sys\nseen = hasattr(math, {name!r}) or {name!r} in os.environ or {name!r} in sys.modules\n"
    )
    look += f"seen = seen or os.path.exists({name!r})\n"
    body = "def double(x): return None if seen else 2 * x"
    assert judge(verifier, unseen(look + leave + body)).outcome == "passed"
    assert judge(verifier, unseen(look + body)).outcome == "passed"


@pytest.mark.property(18)
@quick
@given(value=PLAIN)
def test_any_plain_answer_arrives_as_it_is_and_no_other_does(verifier, value):
    same = PythonProblem("f", (Case((value,), value),), strict=True, limits=LIMITS)
    other = PythonProblem("f", (Case((value,), [value, SECRET]),), strict=True, limits=LIMITS)
    assert judge(verifier, "def f(x): return x", same).outcome == "passed"
    assert judge(verifier, "def f(x): return x", other).outcome == "failed"


@pytest.mark.property(19)
@settings(quick, max_examples=tries(6))
@given(cpu_s=st.floats(0.05, 0.4), swallow=st.booleans())
def test_cpu_used_stays_near_any_limit(verifier, cpu_s, swallow):
    body = "while True:\n    try: x += 1\n    except BaseException: pass" if swallow else "while True: x += 1"
    verdict = judge(verifier, unseen(double(body)), replace(PROBLEM, limits=replace(LIMITS, cpu_s=cpu_s)))
    assert verdict.bucket == "timeout" and cpu_s <= verdict.seconds < cpu_s + 0.5


@pytest.mark.property(20)
@settings(quick, max_examples=tries(12))
@given(limit_mb=st.integers(48, 200), share=st.sampled_from([0.4, 3.0]))
def test_memory_is_granted_below_the_limit_and_not_above(verifier, limit_mb, share):
    problem = replace(PROBLEM, limits=replace(LIMITS, memory_mb=limit_mb, cpu_s=2.0))
    verdict = judge(verifier, double(f"return 2 * x if bytearray({int(limit_mb * share) << 20}) else 0"), problem)
    assert (verdict.outcome, verdict.bucket) == (("passed", None) if share < 1 else ("failed", "memory"))


@pytest.mark.property(21)
@quick
@given(
    family=st.sampled_from([1, 2, 10, 16, 17, 38, 40]),
    kind=st.sampled_from([1, 2, 3, 5]),
    address=st.sampled_from(["127.0.0.1", "10.0.0.1", "8.8.8.8"]),
)
def test_no_socket_of_any_family_is_had(verifier, family, kind, address):
    body = f"s = socket.socket({family}, {kind}); s.connect(('{address}', 53)); return 2 * x"
    assert judge(verifier, double(body, "import socket")).outcome == "failed"


@pytest.mark.property(22)
@quick
@given(
    error=st.sampled_from(SIMPLE),
    text=st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=30),
    case=st.integers(0, 1),
    lines=st.integers(0, 5),
)
def test_any_error_is_told_with_type_text_case_and_line(verifier, error, text, case, lines):
    body = "\n" * lines + f"if x == {2 + case}: raise {error}({text!r})\nreturn 2 * x"
    verdict = judge(verifier, "def double(x):\n" + "\n".join(f"    {line}" for line in body.split("\n")))
    assert (verdict.outcome, verdict.bucket, verdict.passed) == ("failed", "runtime_error", 1)
    assert f"case {case}: {error}: " in verdict.log and text in verdict.log and f"(line {lines + 2}: " in verdict.log


@pytest.mark.property(22)
@quick
@given(code=st.text(max_size=60) | st.sampled_from(["def double(x", "return 1", "\tx", "a b", "x = = 1", "'"]))
def test_any_text_gets_a_verdict_with_a_reason(verifier, code):
    verdict = judge(verifier, code)
    assert verdict.outcome == "failed" and verdict.bucket in ("parse", "resolve", "runtime_error") and verdict.log


def test_a_log_stays_short_and_printable_whatever_it_quotes(verifier):
    for text in ("x" * 10**6, "\n" * 5000, "\x1b[2J\ud800", MARK * 9999):
        for code in (double(f"raise ValueError({text[:9000]!r})"), double(f"return {text[:9000]!r}")):
            verdict = judge(verifier, code)
            verdict.log.encode()
            assert 0 < len(verdict.log) < 1000


def test_verdicts_are_the_same_with_one_worker_and_eight_shuffled_twice():
    codes = [mixture(n) for n in range(3 * len(KINDS))]

    def seen(workers: int, order: list[str]) -> dict[str, tuple[object, ...]]:
        with make(workers) as verifier:
            verdicts = verifier.verify([Request(PROBLEM, Candidate(code)) for code in order])
        return {
            code: (v.outcome, v.bucket, v.passed, v.bucket == "timeout" or v.log)
            for code, v in zip(order, verdicts, strict=True)
        }

    first = seen(1, codes)
    assert set(KINDS) and len({key[:2] for key in first.values()}) >= 6
    for seed in (1, 2):
        assert seen(8, random.Random(seed).sample(codes, len(codes))) == first


@pytest.mark.slow
def test_many_candidates_leave_no_process_descriptor_or_memory():
    assert unchanged(count=300, workers=2) == []
