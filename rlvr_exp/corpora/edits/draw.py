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

    def expression(self, *names: str, depth: int = 2) -> str:
        """Any value of some names, of any form, parts of it expressions of their own."""
        if depth == 0 or self.chance(0.25):
            return self._leaf(names)
        one, two = (self.expression(*names, depth=depth - 1) for _ in range(2))
        inner, call = self.pick(VARIABLES), self._name()
        return self.pick(
            [
                f"{one} {self.pick(['+', '-', '*', '/', '//', '%', '**', '|', '&'])} {two}",
                f"({one} {self.operator()} {two})",
                f"{self.pick(names)}.{self.pick(ATTRIBUTES)}",
                f"{self.pick(names)}[{one}]",
                f"{self.pick(names)}[{self._bound()}:{self._bound()}]",
                f"{call}({one})",
                f"{call}({one}, {two})",
                f"{call}({one}, {self.pick(ATTRIBUTES)}={two})",
                f"{self.pick(names)}.{call}({self.pick(['', one, f'{one}, {two}'])})",
                f"[{one}, {two}]",
                f"{{{one}: {two}}}",
                f"({one}, {two})",
                f"{one} if {self.condition(*names, depth=depth - 1)} else {two}",
                f"[{inner} {self.operator()} {one} for {inner} in {self.pick(names)}]",
                f"{call}({inner}.{self.pick(ATTRIBUTES)} for {inner} in {self.pick(names)})",
                f'f"{self.phrase()} {{{self.pick(names)}}}{self.pick(["", "!", " " + self.word()])}"',
                f'"{self.phrase()}{self.pick([" %s", " {}", ""])}"{self.pick([f" % {one}", f".{call}({one})"])}',
                f"-{one}",
            ]
        )

    def condition(self, *names: str, depth: int = 2) -> str:
        """Any condition on some names."""
        one, two = (self.expression(*names, depth=max(0, depth - 1)) for _ in range(2))
        forms = [
            f"{one} {self.pick(['==', '!=', '<', '>', '<=', '>='])} {two}",
            f"{one} {self.pick(['is', 'is not'])} {self.pick(['None', 'True', self.pick(names)])}",
            f"{one} {self.pick(['in', 'not in'])} {two}",
            f"not {one}",
            f"isinstance({one}, {self.pick(CLASSES)})",
            f"{self.pick(names)}.{self._name()}({two})",
            f"{self._name()}({one})",
        ]
        if depth > 0:
            other = self.condition(*names, depth=depth - 1)
            forms.append(f"{self.pick(forms)} {self.pick(['and', 'or'])} {other}")
        return self.pick(forms)

    def _leaf(self, names: Sequence[str]) -> str:
        return self.pick([self.pick(names), self.pick(names), str(self.number()), f'"{self.phrase()}"', "None"])

    def _name(self) -> str:
        return f"{self.pick(VERBS)}_{self.pick(NOUNS)}" if self.chance(0.6) else self.pick([*VERBS, *CLASSES])

    def _bound(self) -> str:
        return self.pick(["", str(self.number()), str(-self.number())])

    def test(self, name: str) -> str:
        """A condition on a number."""
        return f"{name} {self.pick(['<', '>', '<=', '>='])} {self.number()}"

    def _fresh(self, made: Callable[[], str]) -> str:
        while (name := made()) in self._used:
            continue
        self._used.add(name)
        return name
