"""Containers that both processes hold: a list that a call fills, an attribute that a test appends to.

A list, dict, set or array that crosses by itself (an argument, a result, an attribute) keeps its identity: each end
keeps its own copy as long as anything else holds it, and sends its changes with its next message. The content of a
container is data; it keeps its identity where the update finds the same kind at the same place. Standard
library only.
"""

import sys
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest.values import CHANGING, Unbridgeable, Values

_MOST = 256
"""Containers tracked at a time; above it, the oldest is a plain copy from then on."""
_UNHELD = 3
"""Below it only the table and the check itself hold a container."""


class Shared:
    """One end's containers, by number. `side` keeps the numbers of the two apart."""

    def __init__(self, side: int, values: Values):
        self._values, self._next = values, side + 1
        self._held: dict[int, list[Any]] = {}
        self._numbers: dict[int, int] = {}
        self._dropped: list[int] = []

    def code(self, value: Any) -> Any:
        """A value that crosses by itself. Raises Unbridgeable."""
        if type(value) not in CHANGING and not _is_array(value):
            return self._values.code(value)
        number = self._numbers.get(id(value))
        if number is not None:
            return {"@": [number]}
        coded = self._values.code(value)
        number, self._next = self._next, self._next + 2
        self._hold(number, value, coded)
        return {"@": [number, coded]}

    def value(self, coded: Any) -> Any:
        """The reverse. Raises ValueError, TypeError."""
        if type(coded) is not dict or "@" not in coded:
            return self._values.value(coded)
        number, *content = coded["@"]
        if content:
            value = self._values.value(content[0])
            self._hold(number, value, content[0])
        elif number not in self._held:
            raise ValueError(f"no container {number}")
        return self._held[number][0]

    def changes(self) -> list[Any]:
        """[number, content] of containers changed since they crossed, [number] of those not held here any more."""
        sent: list[Any] = [[number] for number in self._dropped]
        self._dropped.clear()
        for number, entry in list(self._held.items()):
            try:
                coded = self._values.code(entry[0])
            except Unbridgeable:
                coded = entry[1]  # its new content stays here
            if coded != entry[1]:
                entry[1] = coded
                sent.append([number, coded])
            if sys.getrefcount(entry[0]) < _UNHELD:
                self._forget(number)
                sent.append([number])
        return sent

    def apply(self, changes: list[Any]) -> None:
        """Apply the other end's changes. Raises ValueError, TypeError."""
        for number, *content in changes:
            entry = self._held.get(number)
            if entry is None:
                continue
            if content:
                put(entry[0], self._values.value(content[0]))
                entry[1] = content[0]
            else:
                self._forget(number)

    def _hold(self, number: int, value: Any, coded: Any) -> None:
        self._held[number] = [value, coded]
        self._numbers[id(value)] = number
        if len(self._held) > _MOST:
            oldest = next(iter(self._held))
            self._forget(oldest)
            self._dropped.append(oldest)

    def _forget(self, number: int) -> None:
        del self._numbers[id(self._held.pop(number)[0])]


def put(target: Any, content: Any) -> None:
    """Make one container equal to another of its kind, in place."""
    if type(target) is not type(content):
        return
    if isinstance(target, dict):
        merged = {key: _kept(target[key], item) if key in target else item for key, item in content.items()}
        target.clear()
        target.update(merged)
    elif isinstance(target, set):
        target.clear()
        target.update(content)
    elif type(target) is list:
        target[:] = [_kept(target[at], item) if at < len(target) else item for at, item in enumerate(content)]
    elif hasattr(target, "maxlen"):
        target.clear()
        target.extend(content)
    elif hasattr(target, "iloc"):
        target._update_inplace(content)
    elif not _is_array(target):
        target[:] = content
    elif target.shape == content.shape and target.dtype == content.dtype and target.flags.writeable:
        target[...] = content


def _kept(old: Any, new: Any) -> Any:
    if type(old) is type(new) and type(old) in CHANGING:
        put(old, new)
        return old
    return new


def _is_array(value: Any) -> bool:
    kind = type(value)
    if kind.__name__ not in ("ndarray", "DataFrame", "Series"):
        return False
    return str(kind.__module__).partition(".")[0] in ("numpy", "pandas")
