"""The current phase of this process, in a word, for the log of a stuck run (rlvr_exp.launch.watchdog).

Owns one stack of names, written by the thread that works and read by any. Never decides anything.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

GENERATE, VERIFY, UPDATE, EVALUATE, CHECKPOINT = "generate", "verify", "update", "evaluate", "checkpoint"

_stack: list[tuple[str, float]] = []


@contextmanager
def phase(name: str) -> Iterator[None]:
    """The block is this phase, nested in the current phase."""
    _stack.append((name, time.monotonic()))
    try:
        yield
    finally:
        _stack.pop()


def go_over(name: str) -> None:
    """Replace the innermost phase by this one, for work whose phases are no blocks."""
    _stack[-1:] = [(name, time.monotonic())]


def current() -> tuple[str, float]:
    """(the innermost phase, with the evaluation that it is part of; the seconds since it began); "start" before any."""
    stack = list(_stack)
    if not stack:
        return "start", 0.0
    name, since = stack[-1]
    within = f" (of {EVALUATE})" if name != EVALUATE and any(other == EVALUATE for other, _ in stack) else ""
    return name + within, time.monotonic() - since
