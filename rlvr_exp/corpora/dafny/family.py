"""Families: drawn methods with their specification and the forms of their body, and the registry of all families.

`plain` bodies are the shortest solutions; `winded` bodies reach the same result by more steps, variables or loops, as a
novice would. Both are written in the notation of layout.py. Nothing here proves anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rlvr_exp.corpora.dafny.draw import Draw

FAMILIES: dict[str, "ProgramFamily"] = {}


@dataclass(frozen=True)
class Method:
    """One drawn method: names and constants are fixed, the order of clauses and the form of the body are not."""

    params: str
    returns: str
    ensures: Sequence[str]
    plain: Sequence[str]
    winded: Sequence[str] = ()
    requires: Sequence[str] = ()
    modifies: str = ""
    before: str = ""
    """Functions, lemmas and methods that it uses."""
    ordered: bool = False
    """Whether a later `ensures` makes sense only after an earlier one."""


@dataclass(frozen=True)
class ProgramFamily:
    """Methods that differ in names, constants and wording. `names`: possible names of such a method."""

    name: str
    kind: str
    draw: Callable[[Draw], Method]
    names: Sequence[str] = field(default_factory=tuple)


def family(*names: str) -> Callable[[Callable[[Draw], Method]], Callable[[Draw], Method]]:
    """Register a family whose function draws a method; it is named as the function, its kind as the function's file."""

    def register(draw: Callable[[Draw], Method]) -> Callable[[Draw], Method]:
        if draw.__name__ in FAMILIES:
            raise ValueError(f"corpus family {draw.__name__!r} is registered twice; rename one")
        FAMILIES[draw.__name__] = ProgramFamily(draw.__name__, draw.__module__.rpartition(".")[2], draw, names)
        return draw

    return register


def function(name: str, params: str, result: str, value: str, *clauses: str, kind: str = "function") -> str:
    """A function's declaration, for the text before the method."""
    return f"{kind} {name}({params}): {result}\n" + "".join(f"  {one}\n" for one in clauses) + f"{{\n  {value}\n}}\n"


def lemma(name: str, params: str, *clauses: str, proof: str = "") -> str:
    """A lemma's declaration; an empty proof is found by the automatic induction."""
    inside = f"{{\n  {proof}\n}}\n" if proof else "{\n}\n"
    return f"lemma {name}({params})\n" + "".join(f"  {one}\n" for one in clauses) + inside
