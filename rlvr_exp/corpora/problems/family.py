"""Families of coding problems: a function that drafts one problem, and the registry of all families."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from rlvr_exp.corpora.problems.draw import Draw

Args = tuple[Any, ...]
Inputs = Callable[[Random], Args]
FAMILIES: dict[str, Callable[[Draw], "Draft"]] = {}


@dataclass(frozen=True)
class Draft:
    """One problem as drawn: nothing here has been run."""

    arguments: tuple[str, ...]
    text: str
    """What the function returns, as a sentence."""
    idea: str
    """How to get there, as a sentence."""
    steps: tuple[tuple[str, str], ...]
    """Each step in words, and as a line of pseudocode."""
    holds: tuple[str, ...]
    """Expressions of the arguments and `result` that are true of every call."""
    body: tuple[str, ...]
    """The function's lines, at the margin."""
    inputs: Inputs
    """Draws arguments of a call."""
    edges: tuple[Args, ...] = ()
    """Arguments that a careful person tries first."""

    def code(self, name: str) -> str:
        lines = "".join(f"    {line}\n" for line in self.body)
        return f"def {name}({', '.join(self.arguments)}):\n{lines}"


def family(draft: Callable[[Draw], Draft]) -> Callable[[Draw], Draft]:
    """Register a family; it is named as the function."""
    if draft.__name__ in FAMILIES:
        raise ValueError(f"family {draft.__name__!r} is registered twice; rename one")
    FAMILIES[draft.__name__] = draft
    return draft


def on_list(name: str, d: Draw, near: Sequence[int], *parts: Any, least: int = 0) -> Draft:
    """A problem on one list of numbers. `near`: numbers that are worth a try; `parts`: the text, the idea, the steps, what
    holds, the body."""
    return draft([name], parts, d.list_of(near, least), [(one,) for one in d.edge_lists(near, least)])


def on_number(name: str, low: int, high: int, *parts: Any) -> Draft:
    """A problem on one whole number from a range."""
    return draft([name], parts, lambda rng: (rng.randint(low, high),), [(low + more,) for more in range(3)])


def on_text(name: str, d: Draw, letters: str, *parts: Any, words: bool = False) -> Draft:
    """A problem on one text. `letters`: characters that are worth having in it; `words`: it is words with blanks between."""
    edges = ("", letters[:1], letters[:1] * 2) if not words else ("a", "ab a")
    return draft([name], parts, d.text_of(letters, words), [(one,) for one in edges])


def draft(arguments: Sequence[str], parts: Sequence[Any], inputs: Inputs, edges: Sequence[Args]) -> Draft:
    """A draft of its parts: the text, the idea, the steps, what holds, the body."""
    text, idea, steps, holds, body = parts
    return Draft(tuple(arguments), text, idea, tuple(steps), tuple(holds), tuple(body), inputs, tuple(edges))


def loop(
    over: str, name: str, start: tuple[str, str], each: Sequence[tuple[str, str]], end: tuple[str, str]
) -> list[tuple[str, str]]:
    """The steps of a loop: how it starts, what is done for each, what is returned."""
    inner = [(words, f"  {line}") for words, line in each]
    return [start, (f"go through {over}", f"for {name} in {over}"), *inner, end]
