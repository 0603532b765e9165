"""The choices of a draft: names, numbers, texts and expressions, all from one seeded generator and each name once."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

VERBS = "add apply build check clean collect compare count fetch find fix get join keep load make merge move parse pick read scale send show sort split store sum trim update".split()
NOUNS = "area batch cells costs data entry event field files grid group item items key lines list log marks name nodes order pairs path points price rate record rows score steps table text total user values weight words".split()
VARIABLES = "a acc age b base best c cell col cost count cur data depth end first goal hit idx item k key last left limit line low m mark n name num out p part pos price q rank rate res right row s score size span start step t text top total u v val w width word x y z".split()
ATTRIBUTES = "age amount color count depth email height items kind label level limit name owner path price rate score size speed state status tag title total unit value weight width".split()
CLASSES = "Account Box Cart Cell Car Door Event File Game Item Job Lamp Line Menu Node Order Page Path Plan Point Queue Room Shape Shop Song Stack Task Team Timer Tree User Wheel".split()
WORDS = "alpha blue cat done east empty error five gold green hello high home ice key late low moon new north ok old open park pear red river sun tea time top up west win yes zero".split()
Item = TypeVar("Item")


class Draw:
    def __init__(self, rng: Random):
        self._rng = rng
        self._used: set[str] = set()

    def pick(self, items: Sequence[Item]) -> Item:
        return self._rng.choice(items)

    def chance(self, share: float) -> bool:
        return self._rng.random() < share

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        return self._rng.sample(items, len(items))

    def number(self, low: int = 2, high: int = 99) -> int:
        return self._rng.randint(low, high)

    def function(self) -> str:
        return self._fresh(lambda: f"{self.pick(VERBS)}_{self.pick(NOUNS)}" if self.chance(0.6) else self.pick(VERBS))

    def variable(self) -> str:
        return self._fresh(lambda: self.pick(VARIABLES))

    def variables(self, count: int) -> list[str]:
        return [self.variable() for _ in range(count)]

    def attribute(self) -> str:
        return self._fresh(lambda: self.pick(ATTRIBUTES))

    def type(self) -> str:
        return self._fresh(lambda: self.pick(CLASSES))

    def constant(self) -> str:
        return self._fresh(lambda: self.pick(NOUNS).upper())

    def word(self) -> str:
        return self.pick(WORDS)

    def phrase(self, most: int = 2) -> str:
        return " ".join(self.pick(WORDS) for _ in range(self.number(1, most)))

    def operator(self) -> str:
        return self.pick("+-*")

    def value(self, *names: str) -> str:
        """An expression of the names, which a call never is."""
        first = self.pick(names)
        other = self.pick([*names, str(self.number())])
        return f"{first} {self.operator()} {other}" if other != first else f"{first} {self.operator()} {self.number()}"

    def expression(self, first: str, second: str) -> str:
        """Any value of two names."""
        text, number, inner = f'"{self.phrase()}"', str(self.number()), self.pick(VARIABLES)
        call = f"{self.pick(VERBS)}_{self.pick(NOUNS)}"
        return self.pick(
            [
                self.value(first, second),
                f"{first}.{self.pick(ATTRIBUTES)}",
                f"{first}[{self.pick([number, second, text])}]",
                f"{call}({first})",
                f"{call}({first}, {self.pick([number, second, text])})",
                f"{call}({first}, {self.pick(ATTRIBUTES)}={second})",
                f"{first}.{self.pick(VERBS)}({self.pick(['', second, number, text])})",
                f"[{first}, {second}]",
                f"({first}, {number})",
                f"{first}[{number}:]",
                f"{first} if {second} else {number}",
                f"[{inner} {self.operator()} {number} for {inner} in {first}]",
                f'f"{self.phrase()} {{{first}}}"',
                text,
                f"-{first}",
                f"{self.pick(CLASSES)}({first}, {second})",
            ]
        )

    def condition(self, first: str, second: str) -> str:
        """Any condition on two names."""
        value = self.pick([str(self.number()), second, f'"{self.word()}"', "True"])
        return self.pick(
            [
                f"{first} {self.pick(['==', '<', '>', '<=', '>='])} {value}",
                f"{first} is {self.pick(['None', second])}",
                f"{first} in {second}",
                f"not {first}",
                f"{first} and {second}",
                f"{first} or not {second}",
                f"{first}.{self.pick(VERBS)}({second})",
                f"isinstance({first}, {self.pick(CLASSES)})",
                f"len({first}) > {self.number()}",
                f"{self.pick(VERBS)}_{self.pick(NOUNS)}({first})",
            ]
        )

    def test(self, name: str) -> str:
        """A condition on a number."""
        return f"{name} {self.pick(['<', '>', '<=', '>='])} {self.number()}"

    def _fresh(self, made: Callable[[], str]) -> str:
        while (name := made()) in self._used:
            continue
        self._used.add(name)
        return name
