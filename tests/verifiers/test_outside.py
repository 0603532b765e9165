"""A user's own verifier that raises, or answers with anything else, costs the verdict of that request alone."""

from concurrent.futures import Future

import pytest

from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Direct, Request, Verdict, Verifier
from rlvr_exp.verifiers.guarded import NoVerdictGuard, OutsideVerifier


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
