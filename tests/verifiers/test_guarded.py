"""The guard stops a run whose grader is broken, and no other; a user's own verifier that raises, or answers with anything
else, costs the verdict of that request alone."""

from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Direct, Request, Verdict, Verifier
from rlvr_exp.verifiers.guarded import MIN_VERDICTS, NoVerdictGuard, NoVerdictRate, OutsideVerifier

PASSED, SILENT = Verdict("passed"), Verdict("no_verdict", log="grader broke")


class Scripted(Direct):
    """Gives its problems as verdicts."""

    name, version, row_format = "scripted", "1", "dafny"
    closed = False

    def judge(self, request):
        return request.problem

    def tool(self):
        return {"oracle": "3"}

    def metrics(self):
        return {"requests": 7.0}

    def close(self):
        self.closed = True


def requests(verdicts):
    return [Request(verdict, Candidate("x")) for verdict in verdicts]


def ask(verifier, verdicts):
    return verifier.verify(requests(verdicts))


@given(st.lists(st.booleans(), max_size=80), st.floats(0, 1))
def test_it_stops_exactly_past_the_rate(silent, rate):
    verifier, stopped = NoVerdictGuard(Scripted(), rate), False
    for index, missing in enumerate(silent, 1):
        past = missing and sum(silent[:index]) > rate * max(index, MIN_VERDICTS)
        if past:
            with pytest.raises(GuardStop, match="grader broke"):
                ask(verifier, [SILENT])
            stopped = True
            break
        assert ask(verifier, [SILENT if missing else PASSED]) == [SILENT if missing else PASSED]
    assert stopped or verifier.n_requests == len(silent)


def test_one_by_one_it_gives_every_verdict_and_takes_nothing_more():
    verifier = NoVerdictGuard(Scripted(), 0.05)
    for count in range(1, 3):
        assert verifier.submit(requests([SILENT])[0]).result() == SILENT
        assert (verifier.n_requests, verifier.n_no_verdict) == (count, count)
    with pytest.raises(GuardStop, match="2 of 2 requests"):
        verifier.submit(requests([PASSED])[0])


def test_a_verdict_counts_when_it_comes():
    inner, coming = Scripted(), Future()
    inner.submit = lambda request: coming
    verifier = NoVerdictGuard(inner, 0.05)
    verifier.submit(requests([SILENT])[0])
    assert verifier.n_requests == 0
    coming.set_result(SILENT)
    assert verifier.n_no_verdict == 1


def test_a_stream_stops_once_it_has_learnt_of_it():
    verifier, seen = NoVerdictGuard(Scripted(), 0.1), []
    with pytest.raises(GuardStop):
        for index, _ in verifier.as_ready(requests([PASSED] * 5 + [SILENT] * 10)):
            seen.append(index)
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7] and verifier.n_no_verdict == 3


def test_a_rate_over_few_requests_may_be_asked_for():
    rate = NoVerdictRate("x", 0.4, least=1)
    for outcome in ("passed", "no_verdict"):
        rate.count(outcome, "why")
    with pytest.raises(GuardStop, match="1 of 2 requests .* Last reason: why"):
        rate.check()


def test_it_tells_what_it_guards():
    inner = Scripted()
    verifier = NoVerdictGuard(inner, 0.1)
    assert (verifier.name, verifier.version, verifier.row_format) == ("scripted", "1", "dafny")
    assert verifier.tool() == {"oracle": "3"} and verifier.metrics() == {"requests": 7.0}
    assert verifier.isolation() == inner.isolation()


def test_closing_closes_what_it_guards():
    inner = Scripted()
    with NoVerdictGuard(inner, 0.1):
        assert not inner.closed
    assert inner.closed


class Own(Direct):
    """Gives its problem as the verdict, or raises it."""

    name, version = "own", "1"

    def judge(self, request):
        if isinstance(request.problem, Exception):
            raise request.problem
        return request.problem


class Later(Own):
    """Answers by futures that are completed with the fault."""

    def submit(self, request):
        future: Future[Verdict] = Future()
        if isinstance(request.problem, Exception):
            future.set_exception(request.problem)
        else:
            future.set_result(request.problem)
        return future


class Unready(Own):
    """Gives no future."""

    def submit(self, request):
        return self.judge(request)


def asked(problem: object) -> Request:
    return Request(problem, Candidate("x"))


@pytest.mark.parametrize("kind", [Own, Later, Unready])
def test_one_request_loses_its_verdict_and_no_other(kind: type[Verifier]) -> None:
    passed = Verdict("passed", passed=1, total=1)
    given = [passed, ValueError("fell over"), True, None, passed]
    found = OutsideVerifier(kind()).verify([asked(problem) for problem in given])
    assert [verdict.outcome for verdict in found] == ["passed", "no_verdict", "no_verdict", "no_verdict", "passed"]
    assert "ValueError: fell over" in found[1].log and "returned True, not a Verdict" in found[2].log


def test_the_log_names_the_line_that_raised() -> None:
    (verdict,) = OutsideVerifier(Own()).verify([asked(ValueError("fell over"))])
    assert f"{__file__}:" in verdict.log


def test_past_the_rate_the_run_stops() -> None:
    with pytest.raises(GuardStop, match="fell over"):
        NoVerdictGuard(OutsideVerifier(Own()), 0.05).verify([asked(ValueError("fell over"))] * 3)


def test_a_stop_of_ours_is_none_of_it() -> None:
    for kind in (Own, Later):
        with pytest.raises(GuardStop, match="enough"):
            OutsideVerifier(kind()).verify([asked(GuardStop("enough"))])


def test_what_is_no_verifier_is_refused() -> None:
    class Nameless(Own):
        version = ""

    with pytest.raises(InputError, match="has no version"):
        OutsideVerifier(Nameless())
    with pytest.raises(InputError, match="does not derive from Verifier"):
        OutsideVerifier(type("Duck", (), {"name": "duck", "version": "1"})())  # type: ignore[arg-type]
