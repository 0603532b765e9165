"""The guard stops a run whose grader is broken, and no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.guarded import SETTLED, Guarded

PASSED, SILENT = Verdict("passed"), Verdict("no_verdict", log="grader broke")


class Scripted(Verifier):
    """Gives the verdicts that its problems are."""

    name, version = "scripted", "1"
    closed = False

    def verify(self, requests):
        return [request.problem for request in requests]

    def close(self):
        self.closed = True


def ask(verifier, verdicts):
    return verifier.verify([Request(verdict, Candidate("x")) for verdict in verdicts])


@given(st.lists(st.booleans(), max_size=80), st.floats(0, 1))
def test_it_stops_exactly_past_the_rate(silent, rate):
    verifier, stopped = Guarded(Scripted(), rate), False
    for index, missing in enumerate(silent, 1):
        past = missing and sum(silent[:index]) > rate * max(index, SETTLED)
        if past:
            with pytest.raises(GuardStop, match="grader broke"):
                ask(verifier, [SILENT])
            stopped = True
            break
        assert ask(verifier, [SILENT if missing else PASSED]) == [SILENT if missing else PASSED]
    assert stopped or verifier.asked == len(silent)


def test_closing_closes_what_it_guards():
    inner = Scripted()
    with Guarded(inner, 0.1):
        assert not inner.closed
    assert inner.closed
