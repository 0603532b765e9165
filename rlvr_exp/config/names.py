"""The nearest existing name to an unknown name."""

import difflib
from collections.abc import Iterable


def suggest(name: str, names: Iterable[str]) -> str:
    """The most similar of the names, without regard to case; empty when none is near."""
    by_lower = {candidate.lower(): candidate for candidate in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else ""
