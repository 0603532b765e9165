"""Runs the corpus' own functions, and mutants of them, on arguments: what each call returns, as text that can be compared.

Nothing but code that this corpus drew comes here; a loop that a mutant made endless is stopped.
"""

import copy
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENOUGH_S = 0.05
"""Seconds of CPU for a call: those of the corpus take microseconds."""
ENDLESS = "endless"


class _Endless(BaseException):
    """No `except` of a program catches it."""


def function_of(code: str, name: str) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(code, space)
    return space[name]


def returned(code: str, name: str, calls: Sequence[tuple[Any, ...]]) -> list[str]:
    """What each call returns, by `repr`; the name of its exception where it fails. After a call that does not end, no other
    is made: all that are left count as endless."""
    run, found = function_of(code, name), []
    with _stopping():
        for args in calls:
            found.append(_one(run, args))
            if found[-1] == ENDLESS:
                break
    return found + [ENDLESS] * (len(calls) - len(found))


def _one(run: Callable[..., Any], args: tuple[Any, ...]) -> str:
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, ENOUGH_S)
        return repr(run(*copy.deepcopy(args)))
    except _Endless:
        return ENDLESS
    except Exception as fault:
        return type(fault).__name__
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def _stopping() -> Iterator[None]:
    kept = signal.signal(signal.SIGVTALRM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, kept)


def _stop(_: int, __: FrameType | None) -> None:
    raise _Endless
