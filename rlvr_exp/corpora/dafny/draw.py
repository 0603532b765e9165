"""Draws of names, constants and wordings of one method. Knows Dafny's words only as text."""

from collections.abc import Sequence
from random import Random

VALUES = ["x", "y", "z", "a", "b", "c", "u", "v", "w", "p", "q", "k", "t"]
NUMBERS = ["n", "m", "k", "size", "count", "len"]
INDICES = ["i", "j", "k", "h", "g", "e"]
RESULTS = ["r", "res", "out", "y", "z", "ans", "v", "result"]
ARRAYS = ["a", "b", "arr", "data", "xs", "c"]
SEQUENCES = ["s", "q", "xs", "seq1", "l", "t"]
TEMPORARIES = ["t", "tmp", "w", "h", "d", "acc"]
FUNCTIONS = ["F", "G", "H", "Fn", "Val", "Step"]
PLAIN_NAMES = ["Compute", "Solve", "Run", "Work", "Calc", "Make", "Go", "Task"]
"""Method names that reveal nothing about the specification."""


class Draw:
    """Choices for one method. A name is used once, so that no two declarations of a method share it."""

    def __init__(self, rng: Random):
        self.rng = rng
        self._used: set[str] = set()

    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def k(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self.rng.randint(low, high)

    def distinct(self, count: int, low: int, high: int) -> list[int]:
        """Different integers, in rising order."""
        return sorted(self.rng.sample(range(low, high + 1), count))

    def name(self, pool: Sequence[str]) -> str:
        found = self.rng.choice([name for name in pool if name not in self._used])
        self._used.add(found)
        return found

    def value(self) -> str:
        return self.name(VALUES)

    def values(self, count: int) -> list[str]:
        return [self.value() for _ in range(count)]

    def number(self) -> str:
        return self.name(NUMBERS)

    def index(self) -> str:
        return self.name(INDICES)

    def result(self) -> str:
        return self.name(RESULTS)

    def array(self) -> str:
        return self.name(ARRAYS)

    def sequence(self) -> str:
        return self.name(SEQUENCES)

    def temporary(self) -> str:
        return self.name(TEMPORARIES)

    def function(self) -> str:
        return self.name(FUNCTIONS)

    def equal(self, left: str, *right: str) -> str:
        """`left == right` with one of the given right sides, in either order."""
        chosen = self.one(*right)
        return self.one(f"{left} == {chosen}", f"{left} == {chosen}", f"{chosen} == {left}")

    def least(self, name: str, low: int) -> str:
        """The name is at least `low`."""
        return self.one(f"{name} >= {low}", f"{low} <= {name}", f"{name} > {low - 1}" if low else f"{name} >= 0")

    def natural(self, name: str) -> tuple[str, list[str]]:
        """A parameter that is not negative, by its type or by a precondition: (declaration, requires)."""
        if self.chance(0.5):
            return f"{name}: nat", []
        return f"{name}: int", [self.least(name, 0)]

    def all(self, index: str, below: str, claim: str, low: str = "0") -> str:
        """The claim for every index from `low` to below `below`."""
        bounds = f"{low} <= {index} < {below}"
        return self.one(f"forall {index} :: {bounds} ==> {claim}", f"forall {index} | {bounds} :: {claim}")


def plus(term: str, number: int) -> str:
    """`term + number`, with the number's sign; the term alone where it is 0."""
    return term if not number else f"{term} + {number}" if number > 0 else f"{term} - {-number}"
