"""Guards around a verifier.

`NoVerdictGuard` stops a run whose grader is broken, so that it does not train on missing verdicts. `OutsideVerifier` wraps
a user's own verifier: an exception, or a result that is no verdict, is a missing verdict of that request alone.
"""

import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from rlvr_exp.core.errors import GuardStop, InputError, InputProblem, RlvrError
from rlvr_exp.verifiers.base import Execution, Executor, Request, Verdict, Verifier, executor_of
from rlvr_exp.verifiers.futures import WINDOW, completed_future


class _Around(Verifier):
    """A verifier around `inner`, which it owns and closes."""

    def __init__(self, inner: Verifier):
        self.inner = inner
        self.name, self.version, self.row_format = inner.name, inner.version, inner.row_format
        self.also_judges = inner.also_judges

    def tool(self) -> Mapping[str, str]:
        return self.inner.tool()

    def metrics(self) -> Mapping[str, float]:
        return self.inner.metrics()

    def isolation(self) -> dict[str, Any]:
        return self.inner.isolation()

    def nodes(self) -> list[str]:
        return self.inner.nodes()

    def close(self) -> None:
        self.inner.close()


class OutsideVerifier(_Around):
    """Judges with a user's own verifier.

    Raises:
        InputError: the object is no verifier, or lacks its name or version.
    """

    def __init__(self, inner: Verifier):
        lacking = [name for name in ("name", "version") if not getattr(inner, name, "")]
        if lacking or not isinstance(inner, Verifier):
            what = f"has no {' and no '.join(lacking)}" if lacking else "does not derive from Verifier"
            remedy = "derive it from rlvr_exp.verifiers.base.Direct, with the attributes name and version"
            raise InputError(InputProblem("verifier._target_", what, type(inner).__name__, "", "", remedy))
        super().__init__(inner)

    def submit(self, request: Request) -> Future[Verdict]:
        try:
            judging = self.inner.submit(request)
        except RlvrError:
            raise
        except Exception as fault:
            return completed_future(_failed(fault))
        if not isinstance(judging, Future):
            return completed_future(_checked(judging))
        answer: Future[Verdict] = Future()
        answer.set_running_or_notify_cancel()
        judging.add_done_callback(lambda done: _pass_on(done, answer))
        return answer


def _pass_on(done: Future[Any], answer: Future[Verdict]) -> None:
    fault = done.exception()
    if isinstance(fault, RlvrError) or (fault is not None and not isinstance(fault, Exception)):
        answer.set_exception(fault)
    elif fault is not None:
        answer.set_result(_failed(fault))
    else:
        answer.set_result(_checked(done.result()))


def _checked(given: Any) -> Verdict:
    if isinstance(given, Verdict):
        return given
    return Verdict("no_verdict", log=f"the verifier returned {given!r:.200}, not a Verdict")


def _failed(fault: Exception) -> Verdict:
    """Logged with the line that raised it; the traceback goes to the run's log."""
    traceback.print_exception(fault, file=sys.stderr)
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return Verdict("no_verdict", log=f"the verifier failed: {type(fault).__name__}: {fault}{where}")


MIN_VERDICTS = 20
"""The rate is taken over at least this many verdicts, so that one early fault does not end a run."""


class NoVerdictRate:
    """Counts verdicts and missing verdicts. Thread-safe.

    Args:
        name: the verifier's name.
        max_rate: share of requests without a verdict above which the grader counts as broken.
        least: the share is taken over at least this many requests.
    """

    def __init__(self, name: str, max_rate: float, least: int = MIN_VERDICTS):
        self._name, self._max_rate, self._least = name, max_rate, least
        self._lock = threading.Lock()
        self._last = ""
        self.n_requests = self.n_no_verdict = 0

    def count(self, outcome: str, log: str) -> None:
        with self._lock:
            self.n_requests += 1
            if outcome == "no_verdict":
                self.n_no_verdict += 1
                self._last = log

    @property
    def exceeded(self) -> bool:
        return self.n_no_verdict > self._max_rate * max(self.n_requests, self._least)

    def check(self) -> None:
        """Raises GuardStop above the rate."""
        if self.exceeded:
            raise GuardStop(
                f"verifier {self._name}: {self.n_no_verdict} of {self.n_requests} requests had no verdict, allowed share "
                f"{self._max_rate}. Last reason: {self._last}. "
                "Fix the cause, or raise verifier.max_no_verdict_rate"
            )


class NoVerdictGuard(_Around, Executor):
    """Judges with `inner` and counts requests without a verdict.

    Above the rate, `verify` and `as_ready` raise GuardStop as soon as they notice, and `submit` takes no further
    request; a future always holds its own verdict.

    Args:
        max_no_verdict_rate: see `NoVerdictRate`.
    """

    def __init__(self, inner: Verifier, max_no_verdict_rate: float):
        super().__init__(inner)
        self._rate = NoVerdictRate(inner.name, max_no_verdict_rate)

    @property
    def n_requests(self) -> int:
        return self._rate.n_requests

    @property
    def n_no_verdict(self) -> int:
        return self._rate.n_no_verdict

    def submit(self, request: Request) -> Future[Verdict]:
        self._rate.check()
        future = self.inner.submit(request)
        future.add_done_callback(lambda done: self._note(None if done.exception() else done.result()))
        return future

    def execute(self, request: Request) -> Future[Execution]:
        """Of a verifier that is an `Executor`; counted like a verdict."""
        self._rate.check()
        future = executor_of(self.inner, "verifier").execute(request)
        future.add_done_callback(lambda done: self._note(None if done.exception() else done.result().verdict))
        return future

    def verify(self, requests: Sequence[Request]) -> list[Verdict]:
        verdicts = self.inner.verify(requests)
        for verdict in verdicts:
            self._note(verdict)
        if any(verdict.outcome == "no_verdict" for verdict in verdicts):
            self._rate.check()
        return verdicts

    def as_ready(self, requests: Iterable[Request], window: int = WINDOW) -> Iterator[tuple[int, Verdict]]:
        for index, verdict in self.inner.as_ready(requests, window):
            self._note(verdict)
            yield index, verdict
            if verdict.outcome == "no_verdict":
                self._rate.check()

    def _note(self, verdict: Verdict | None) -> None:
        if verdict is not None:
            self._rate.count(verdict.outcome, verdict.log)
