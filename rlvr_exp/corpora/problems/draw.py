"""The choices of a problem: names, numbers, conditions and changes in words and in Python, and arguments of calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

VERBS = "build calc check count find get make pick read run solve take work".split()
NOUNS = "all bits cells data list marks nums out part row score sum text total value words".split()
LISTS, ITEMS = "items nums values xs data row".split(), "x v n item".split()
NUMBERS, TEXTS, LETTERS = "n m num k".split(), "text s word line".split(), "c ch".split()
ALPHABET = "abcdeiou"
Item = TypeVar("Item")


@dataclass(frozen=True)
class Test:
    """A condition on one value."""

    words: str
    """After `is`: `greater than 3`."""
    code: str
    """With {x} for the value."""
    near: tuple[int, ...] = ()
    """Numbers about its border."""

    def of(self, name: str) -> str:
        return self.code.format(x=name)


@dataclass(frozen=True)
class Change:
    """What becomes of one number."""

    words: str
    """After `each number`: `plus 3`."""
    code: str
    near: tuple[int, ...] = ()

    def of(self, name: str) -> str:
        return self.code.format(x=name)


class Draw:
    def __init__(self, rng: Random):
        self._rng = rng
        self._used: set[str] = set()

    def pick(self, items: Sequence[Item]) -> Item:
        return self._rng.choice(items)

    def number(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)

    def name(self, pool: Sequence[str]) -> str:
        """A name of the pool that no other of this problem has."""
        found = self.pick([name for name in pool if name not in self._used])
        self._used.add(found)
        return found

    def list_names(self) -> tuple[str, str]:
        """The names of a list and of one of its numbers."""
        return self.name(LISTS), self.name(ITEMS)

    def text_names(self) -> tuple[str, str]:
        """The names of a text and of one of its characters."""
        return self.name(TEXTS), self.name(LETTERS)

    def function(self) -> str:
        return f"{self.pick(VERBS)}_{self.pick(NOUNS)}"

    def test(self) -> Test:
        k = self.number(2, 9)
        border = (k - 1, k, k + 1)
        return self.pick(
            [
                Test(f"greater than {k}", f"{{x}} > {k}", border),
                Test(f"less than {k}", f"{{x}} < {k}", border),
                Test(f"at least {k}", f"{{x}} >= {k}", border),
                Test(f"at most {k}", f"{{x}} <= {k}", border),
                Test("even", "{x} % 2 == 0", (0, 1)),
                Test("odd", "{x} % 2 == 1", (0, 1)),
                Test(f"a multiple of {k}", f"{{x}} % {k} == 0", (0, *border)),
                Test(f"no multiple of {k}", f"{{x}} % {k} != 0", (0, *border)),
                Test("positive", "{x} > 0", (-1, 0, 1)),
                Test("negative", "{x} < 0", (-1, 0, 1)),
                Test(f"not {k}", f"{{x}} != {k}", border),
                Test(f"from {k} to {k + 4}", f"{k} <= {{x}} <= {k + 4}", (k - 1, k, k + 4, k + 5)),
            ]
        )

    def change(self) -> Change:
        k = self.number(2, 9)
        return self.pick(
            [
                Change(f"times {k}", f"{{x}} * {k}", (0, 1)),
                Change(f"plus {k}", f"{{x}} + {k}", (0, -k)),
                Change(f"minus {k}", f"{{x}} - {k}", (0, k)),
                Change("squared", "{x} * {x}", (-1, 0, 1)),
                Change("negated", "-{x}", (-1, 0, 1)),
                Change("without its sign", "abs({x})", (-1, 0, 1)),
                Change(f"divided by {k} and rounded down", f"{{x}} // {k}", (k - 1, k, -1)),
                Change(f"modulo {k}", f"{{x}} % {k}", (k - 1, k, -1)),
            ]
        )

    def letter_test(self) -> Test:
        c = self.pick("aeb")
        return self.pick(
            [
                Test("a vowel", "{x} in 'aeiou'"),
                Test("no vowel", "{x} not in 'aeiou'"),
                Test("a digit", "{x}.isdigit()"),
                Test("a letter", "{x}.isalpha()"),
                Test("an upper-case letter", "{x}.isupper()"),
                Test("a lower-case letter", "{x}.islower()"),
                Test(f"'{c}'", f"{{x}} == '{c}'"),
                Test(f"not '{c}'", f"{{x}} != '{c}'"),
            ]
        )

    # Arguments of calls.

    def list_of(self, near: Sequence[int] = (), least: int = 0) -> Callable[[Random], tuple[Any, ...]]:
        return lambda rng: (numbers(rng, near, least),)

    def edge_lists(self, near: Sequence[int] = (), least: int = 0) -> list[list[int]]:
        found = [[], [near[0]] if near else [1], list(near), list(reversed(near)), [0, *near]]
        return [one for one in found if len(one) >= least]

    def text_of(self, letters: str = "", words: bool = False) -> Callable[[Random], tuple[str]]:
        return lambda rng: (sentence(rng) if words else characters(rng, letters),)


def numbers(rng: Random, near: Sequence[int] = (), least: int = 0) -> list[int]:
    pool = [*near, *near, *range(-3, 13)]
    return [rng.choice(pool) for _ in range(rng.randint(max(least, 1), 6))]


def characters(rng: Random, letters: str = "") -> str:
    pool = letters * 2 + ALPHABET + "A3B "
    return "".join(rng.choice(pool) for _ in range(rng.randint(1, 7)))


def sentence(rng: Random) -> str:
    return " ".join("".join(rng.choice(ALPHABET) for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(1, 4)))
