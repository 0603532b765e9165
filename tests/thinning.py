"""Many similar cases: some of them in the default suite, all with `launchers/test.sh --all`."""

import os
from collections.abc import Iterable
from typing import TypeVar

EVERY = bool(os.environ.get("RLVR_EVERY_CASE"))
Case = TypeVar("Case")


def thinned(cases: Iterable[Case], of: int = 10) -> list[Case]:
    """One of so many, the first of each."""
    return [*cases][:: 1 if EVERY else of]


def tries(count: int) -> int:
    """Examples of a property: so many with `--all`, a third of them otherwise."""
    return count if EVERY else -(-count // 3)
