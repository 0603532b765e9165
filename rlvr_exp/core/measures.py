"""Names of what verifiers measure besides their verdicts."""

COUNTS = frozenset({"rules"})
"""Measures that are counts; the others are shares."""
GREEDY = "_greedy"
"""Ends the name of a measure of greedy answers."""


def is_count(name: str) -> bool:
    return name.removesuffix(GREEDY) in COUNTS
