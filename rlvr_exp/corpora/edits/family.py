"""Families of edits: a function that drafts one edit, and the registry of all families."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlvr_exp.corpora.edits.draw import Draw

Rule = Mapping[str, Any]
"""A form of an ast-grep action (rlvr_exp.tasks.edits.action)."""
_VARIABLE = re.compile(r"\$+([A-Z]+)")
FAMILIES: dict[str, Callable[[Draw], "Draft"]] = {}


@dataclass(frozen=True)
class Draft:
    """One edit of a part of a program. Nothing here is proved."""

    before: str
    """The part that changes, at the margin, without a last line end."""
    after: str
    descriptive: str
    lazy: str
    rules: tuple[Rule, ...]
    """Steps that make the edit, one after the other."""
    tests: str = ""
    """Lines that hold after the edit and not before; empty where behaviour stays."""
    head: str = ""
    """Lines at the program's top, the same before and after."""
    replaces: tuple[str, str] = ("", "")
    """The code of one line that its rule matches here, and what it makes of that; empty where it is more."""


def family(draft: Callable[[Draw], Draft]) -> Callable[[Draw], Draft]:
    """Register a family; it is named as the function."""
    if draft.__name__ in FAMILIES:
        raise ValueError(f"family {draft.__name__!r} is registered twice; rename one")
    FAMILIES[draft.__name__] = draft
    return draft


def swap(pattern: str, rewrite: str) -> Rule:
    """A rule that replaces what a pattern matches."""
    return {"pattern": pattern, "rewrite": rewrite}


def filled(template: str, values: Mapping[str, str]) -> str:
    """A pattern or a rewrite with its variables replaced: an example of what it matches or makes."""
    return _VARIABLE.sub(lambda found: values[found[1]], template)


def rewritten(
    pattern: str, rewrite: str, descriptive: str, lazy: str, tests: str = "", head: str = "", **values: str
) -> Draft:
    """A draft of one rule, which holds for everything of its form. `values`: what its variables stand for here."""
    # The first line of a value stands where its variable does.
    values = {name: value.lstrip(" ") for name, value in values.items()}
    code = filled(pattern, values), filled(rewrite, values)
    one_line = not any("\n" in text for text in code)
    return Draft(*code, descriptive, lazy, (swap(pattern, rewrite),), tests, head, code if one_line else ("", ""))


def quoted(draft: Draft) -> Draft:
    """The same edit by an instruction that quotes the code before and after; its rule replaces that code and no other."""
    old, new = draft.replaces
    return replace(draft, descriptive=f"Replace `{old}` by `{new}`.", lazy=f"{old} -> {new}", rules=(swap(old, new),))


def inside(function: str, match: Rule, fix: str) -> Rule:
    """A rule that holds inside one function."""
    where = {"kind": "function_definition", "has": {"field": "name", "regex": f"^{function}$"}, "stopBy": "end"}
    return {"rule": {**match, "inside": where}, "fix": fix}


def indented(lines: str, by: int = 4) -> str:
    return "\n".join(" " * by + line if line else line for line in lines.split("\n"))
