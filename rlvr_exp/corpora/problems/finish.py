"""A last step after a problem's own: its list sorted or summed up, its text in upper case, its number changed."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from rlvr_exp.corpora.problems.draw import Change, Draw
from rlvr_exp.corpora.problems.family import Draft
from rlvr_exp.corpora.problems.running import function_of

LIST = (
    Change("reversed", "list(reversed({x}))"),
    Change("sorted", "sorted({x})"),
    Change("counted", "len({x})"),
    Change("without the last", "{x}[:-1]"),
)
NUMBERS = (*LIST, Change("summed up", "sum({x})"), Change("reduced to the largest, or 0", "max({x}, default=0)"))
TEXT = (
    Change("in upper case", "{x}.upper()"),
    Change("reversed", "{x}[::-1]"),
    Change("counted", "len({x})"),
    Change("twice", "{x} * 2"),
)
UNORDERED = re.compile(r"^(all\(|len\(result\) ==|sorted\(result\) ==|set\(result\) ==)")
"""What stays true of a list in another order."""


def finished(d: Draw, draft: Draft) -> Draft:
    """The draft with a last step, where it has one return; else as it is."""
    *first, last = draft.body
    if not last.startswith("return ") or any("return " in line for line in first):
        return draft
    changes = _changes(d, draft)
    if not changes:
        return draft
    change = d.pick(changes)
    value = last.removeprefix("return ")
    name = value if value.isidentifier() else "out"
    *steps, (words, line) = draft.steps
    if name != value:
        steps.append((words.replace("return", "take", 1), line.replace("return", "out =", 1)))
    return replace(
        draft,
        text=f"{draft.text}, in the end {change.words}",
        idea=f"{draft.idea} In the end, take it {change.words}.",
        steps=(*steps, (f"return it {change.words}", f"return {change.of(name)}")),
        holds=_holds(draft, change),
        body=(*first, *([] if name == value else [f"{name} = {value}"]), f"return {change.of(name)}"),
    )


def _changes(d: Draw, draft: Draft) -> Sequence[Change]:
    results = _results(draft)
    if all(isinstance(one, str) for one in results):
        return TEXT
    if all(isinstance(one, list) for one in results):
        return NUMBERS if all(type(item) is int for one in results for item in one) else LIST
    return [d.change()] if all(type(one) is int for one in results) else ()


def _results(draft: Draft) -> list[Any]:
    run: Callable[..., Any] = function_of(draft.code("f"), "f")
    rng = Random(0)
    return [run(*draft.inputs(rng)) for _ in range(12)]


def _holds(draft: Draft, change: Change) -> tuple[str, ...]:
    if change.words == "counted":
        return ("result >= 0",)
    if change.words in ("reversed", "sorted"):
        more = ["result == sorted(result)"] if change.words == "sorted" else []
        return (*filter(UNORDERED.match, draft.holds), *more) or ("type(result) in (list, str)",)
    if change.words == "in upper case":
        return ("result == result.upper()",)
    if change.words == "twice":
        return ("len(result) % 2 == 0",)
    kind = "list" if change.words == "without the last" else "int"
    return (f"type(result) is {kind}",)
