"""Why an action cannot be used: a single type with three kinds, for all readers of actions (the verifier, a similarity
reward)."""

import difflib
from collections.abc import Iterable
from typing import Literal

Kind = Literal["parse", "resolve", "rejected"]


class ActionFault(ValueError):
    """`parse`: not an action; `resolve`: an action that names what does not exist; `rejected`: an action that reaches
    for what no edit needs (files, programs, tags), with `rule`, the guard's name."""

    def __init__(self, message: str, kind: Kind = "parse", rule: str | None = None):
        super().__init__(message)
        self.kind, self.rule = kind, rule


def cheat(rule: str, message: str) -> ActionFault:
    return ActionFault(message, "rejected", rule)


def short(value: object) -> str:
    """A value from a hostile text, for a message."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def unknown(what: str, got: str, known: Iterable[str], kind: Kind = "parse") -> ActionFault:
    """The fault of an unknown name, with the nearest known name."""
    names = sorted(known)
    near = difflib.get_close_matches(got[:40], names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    return ActionFault(f"{what}: unknown {short(got)}; {hint}", kind)
