"""The guard around any verifier: a run whose grader is broken stops in place of learning from silence."""

from collections.abc import Sequence
from typing import Any

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

SETTLED = 20
"""The rate is taken over at least this many verdicts, so that one early fault does not end a run."""


class Guarded(Verifier):
    """Judges with `inner` and counts what got no verdict; owns and closes it.

    Args:
        max_no_verdict_rate: share of all requests so far without a verdict past which `verify` raises GuardStop.
    """

    def __init__(self, inner: Verifier, max_no_verdict_rate: float):
        self._inner, self._max_rate = inner, max_no_verdict_rate
        self.name, self.version = inner.name, inner.version
        self.asked = self.silent = 0

    def verify(self, requests: Sequence[Request]) -> list[Verdict]:
        verdicts = self._inner.verify(requests)
        missing = [verdict for verdict in verdicts if verdict.outcome == "no_verdict"]
        self.asked += len(verdicts)
        self.silent += len(missing)
        if missing and self.silent > self._max_rate * max(self.asked, SETTLED):
            raise GuardStop(
                f"verifier {self.name}: {self.silent} of {self.asked} requests had no verdict, allowed share "
                f"{self._max_rate}. Last reason: {missing[-1].log}. "
                "Fix the cause, or raise verifier.max_no_verdict_rate"
            )
        return verdicts

    def isolation(self) -> dict[str, Any]:
        return self._inner.isolation()

    def close(self) -> None:
        self._inner.close()
