"""Things of several kinds in fixed shares, in one fixed order."""

from collections.abc import Mapping


def normalized(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares that add up to 1."""
    total = sum(shares.values())
    return {kind: share / total for kind, share in shares.items()}


def lacking(shares: Mapping[str, float], counts: Mapping[str, int]) -> str:
    """The kind of the next thing: the one that lacks most of its share."""
    every = sum(counts.values()) + 1
    return max(shares, key=lambda kind: shares[kind] * every - counts[kind])


class Quota:
    """The kinds of things one after the other, each in its share, to within one."""

    def __init__(self, shares: Mapping[str, float]):
        self._shares = shares
        self._restart()

    def between(self, first: int, last: int) -> tuple[dict[str, int], list[str]]:
        """How many of each kind are before `first`, and the kinds from there up to before `last`."""
        if first < self._at:
            self._restart()
        while self._at < first:
            self._next()
        before = dict(self._counts)
        return before, [self._next() for _ in range(last - first)]

    def _next(self) -> str:
        kind = lacking(self._shares, self._counts)
        self._counts[kind] += 1
        self._at += 1
        return kind

    def _restart(self) -> None:
        self._at = 0
        self._counts = dict.fromkeys(self._shares, 0)
