"""A user's own verifier as the framework calls it: what it raises, and what is no verdict, is a missing verdict of that
request alone. Its own process and memory are its own business."""

import sys
import traceback
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem, RlvrError
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.futures import completed_future


class OutsideVerifier(Verifier):
    """Judges with `inner`; owns and closes it.

    Raises:
        InputError: the object is no verifier, or lacks its name or version.
    """

    def __init__(self, inner: Verifier):
        lacking = [name for name in ("name", "version") if not getattr(inner, name, "")]
        if lacking or not isinstance(inner, Verifier):
            what = f"has no {' and no '.join(lacking)}" if lacking else "does not derive from Verifier"
            remedy = "derive it from rlvr_exp.verifiers.base.Direct, with the attributes name and version"
            raise InputError(InputProblem("verifier._target_", what, type(inner).__name__, "", "", remedy))
        self._inner = inner
        self.name, self.version, self.row_format = inner.name, inner.version, inner.row_format
        self.also_judges = inner.also_judges

    def submit(self, request: Request) -> Future[Verdict]:
        try:
            judging = self._inner.submit(request)
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

    def tool(self) -> Mapping[str, str]:
        return self._inner.tool()

    def metrics(self) -> Mapping[str, float]:
        return self._inner.metrics()

    def isolation(self) -> dict[str, Any]:
        return self._inner.isolation()

    def close(self) -> None:
        self._inner.close()


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
