"""Containers that both processes hold: a list that a call fills, an attribute that a test appends to.

A list, dict, set or array that crosses by itself (an argument, a result, an attribute) keeps its identity:
each end keeps its own copy as long as anything else holds it, and sends its changes with its next message. The content
of a container is data; it keeps its identity if the update finds the same kind at the same place. A container that is,
or has inside, a part of another one is so on the other side, too. A view of a dict shows that dict. Standard library only.
"""

import gc
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest.values import CHANGING, Unbridgeable, Values, is_data

_VIEWS = {"keys": dict.keys, "values": dict.values, "items": dict.items, "proxy": types.MappingProxyType}
_VIEW_NAMES = {type(view({})): name for name, view in _VIEWS.items()}
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
        self._undone: list[tuple[list[Any], Any]] = []

    def code(self, value: Any, label: str = "") -> Any:
        """A value that crosses by itself. `label`: how, for `apply`. Raises Unbridgeable."""
        kind = type(value)
        if kind in _VIEW_NAMES:
            (source,) = gc.get_referents(value)
            if type(source) is dict:
                return {"w": [_VIEW_NAMES[kind], self.code(source, label)]}
        if (kind not in CHANGING and not _is_array(value)) or (
            kind is types.SimpleNamespace and not is_data(vars(value))
        ):
            return self._values.code(value)
        number = self._numbers.get(id(value))
        if number is not None:
            return {"@": [number]}
        coded = self._values.code(value)
        number, self._next = self._next, self._next + 2
        self._hold(number, value, coded, (label,))
        return {"@": [number, *self._same_parts(number), coded]}

    def value(self, coded: Any, label: str = "") -> Any:
        """The reverse. Raises ValueError, TypeError."""
        if type(coded) is dict and "w" in coded:
            name, source = coded["w"]
            return _VIEWS[name](self.value(source, label))
        if type(coded) is not dict or "@" not in coded:
            return self._values.value(coded)
        number, *content = coded["@"]
        if content:
            *same, coded = content
            value, labels = self._values.value(coded), (label,)
            entry = self._held[number] = [value, coded, labels, set()]
            for place, *origin in _triples(same):
                own = self._own_part(*origin)
                if own is None or self._values.code(own) != self._values.code(_at(value, place)):
                    continue  # it was changed on one side
                if not place:
                    entry[0], entry[2] = own, (label, *self._held[origin[0]][2])
                elif type(_at(value, place[:-1])) is not tuple:
                    _put_at(value, place, own)
                    entry[3].add(id(own))
            self._hold(number, *entry)
        elif number not in self._held:
            raise ValueError(f"no container {number}")
        return self._held[number][0]

    def _same_parts(self, number: int) -> list[int]:
        """Place, number, place there of each container in one that is also in another one, or there at an earlier place: for
        `_triples`, each place behind its length. Numbers alone: `moments` leaves them out of a request."""
        places = [*_parts(self._held[number][0])]
        wanted, origins = {id(part) for _, part in places}, {}
        for other, entry in self._held.items():
            for place, part in _parts(entry[0]):
                if id(part) in wanted:
                    origins.setdefault(id(part), [other, place])
        same = ((place, *origins[id(part)]) for place, part in places if origins[id(part)] != [number, place])
        return [at for place, other, there in same for at in (len(place), *place, other, len(there), *there)]

    def _own_part(self, number: int, place: list[int]) -> Any:
        """None if there is none, or if it is about to be undone."""
        entry = self._held.get(number)
        part = None if entry is None or any(entry is one for one, _ in self._undone) else _at(entry[0], place)
        return part if type(part) in CHANGING else None

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

    def apply(self, changes: list[Any], stays: Callable[[str, Any], bool]) -> None:
        """Apply the other end's changes. Those that do not stay, by label and new content, last until `settle`. Raises
        ValueError, TypeError."""
        for number, *content in changes:
            entry = self._held.get(number)
            if entry is None:
                continue
            if not content:
                self._forget(number)
                continue
            new = self._values.value(content[0])
            kept = [stays(label, new) for label in entry[2]]
            if not all(kept):
                self._undone.append((entry, entry[1]))
            put(entry[0], new, partial(self._is_replaced, entry[3]))
            entry[1] = content[0]

    def _is_replaced(self, others: set[int], old: Any, new: Any) -> bool:
        """A part of another container changes only with that one."""
        return id(old) in others and self._values.code(old) != self._values.code(new)

    def settle(self) -> None:
        """Undo the changes that do not stay. The other end's own copy remains changed."""
        while self._undone:
            entry, before = self._undone.pop()
            put(entry[0], self._values.value(before), partial(self._is_replaced, entry[3]))
            entry[1] = before

    def _hold(
        self, number: int, value: Any, coded: Any, labels: tuple[str, ...], others: set[int] = frozenset()
    ) -> None:
        self._held[number] = [value, coded, labels, others]
        self._numbers[id(value)] = number
        if len(self._held) > _MOST:
            oldest = next(iter(self._held))
            self._forget(oldest)
            self._dropped.append(oldest)

    def _forget(self, number: int) -> None:
        value = self._held.pop(number)[0]
        if self._numbers.get(id(value)) == number:
            del self._numbers[id(value)]


def _parts(value: Any, place: tuple[int, ...] = ()) -> Iterator[tuple[list[int], Any]]:
    """Containers inside one, by their indices on the way, itself first."""
    if type(value) in CHANGING:
        yield [*place], value
    inner = value.values() if isinstance(value, dict) else value if type(value) in (list, tuple) else ()
    for at, item in enumerate(inner):
        if type(item) in CHANGING or type(item) is tuple:
            yield from _parts(item, (*place, at))


def _triples(numbers: list[int]) -> Iterator[tuple[list[int], int, list[int]]]:
    given = iter(numbers)
    for count in given:
        place, other = [*itertools.islice(given, count)], next(given)
        yield place, other, [*itertools.islice(given, next(given))]


def _at(value: Any, place: Iterable[int]) -> Any:
    for at in place:
        value = next(itertools.islice(value.values(), at, None)) if isinstance(value, dict) else value[at]
    return value


def _put_at(value: Any, place: list[int], part: Any) -> None:
    target = _at(value, place[:-1])
    target[next(itertools.islice(target, place[-1], None)) if isinstance(target, dict) else place[-1]] = part


def put(target: Any, content: Any, is_replaced: Callable[[Any, Any], bool] = lambda old, new: False) -> None:
    """Make one container equal to another of its kind, in place.

    Args:
        is_replaced: whether a container inside is replaced, and not itself made equal.
    """
    if type(target) is not type(content) or target is content:
        return
    if isinstance(target, dict):
        merged = {
            key: _kept(target[key], item, is_replaced) if key in target else item for key, item in content.items()
        }
        target.clear()
        target.update(merged)
    elif isinstance(target, set):
        target.clear()
        target.update(content)
    elif type(target) is list:
        target[:] = [
            _kept(target[at], item, is_replaced) if at < len(target) else item for at, item in enumerate(content)
        ]
    elif isinstance(target, types.SimpleNamespace):
        vars(target).clear()
        vars(target).update(vars(content))
    elif hasattr(target, "maxlen"):
        target.clear()
        target.extend(content)
    elif hasattr(target, "iloc"):
        target._update_inplace(content)
    elif not _is_array(target):
        target[:] = content
    elif target.shape == content.shape and target.dtype == content.dtype and target.flags.writeable:
        target[...] = content


def _kept(old: Any, new: Any, is_replaced: Callable[[Any, Any], bool]) -> Any:
    if type(old) is type(new) and type(old) in CHANGING and not is_replaced(old, new):
        put(old, new, is_replaced)
        return old
    return new


def _is_array(value: Any) -> bool:
    kind = type(value)
    if kind.__name__ not in ("ndarray", "DataFrame", "Series"):
        return False
    return str(kind.__module__).partition(".")[0] in ("numpy", "pandas")
