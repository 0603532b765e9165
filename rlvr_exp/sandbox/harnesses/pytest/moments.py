"""What the reference's run did to the suite's process, moment by moment: a candidate may do no more.

A moment is one request of the suite's process: the test, the suite's line, the operation, its plain arguments, and how often
that occurred before. The suite's text decides all of these, so that a candidate cannot choose the moment of an effect. An effect
is a change of something that the suite holds: a container that it passed, an object of its own, the environment, a generator of
random numbers. Standard library only.
"""

import copy
import hashlib
import re
import sys
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rlvr_exp.sandbox.harnesses.pytest import containers, values

_SPOTS, _MOMENTS = 4000, 20_000
"""Spots and moments of a reference's run that are kept."""
_NUMBERS = re.compile(r'("[@hbkcmxn]":\[)[\d,]*')
"""Numbers of objects and containers in coded arguments: they depend on what the solution asked for before."""


class Moment(NamedTuple):
    """`spot`: test, line and operation; `key`: the arguments and how often they occurred at the spot, empty if no effect depends
    on them."""

    spot: str = ""
    key: str = ""


class Moments:
    """
    Args:
        known: what `recorded` returned of the reference's run; None without a reference.
        recording: this is the reference's own run.
        paths: files of the suite.
    """

    def __init__(self, known: dict[str, Any] | None, recording: bool, paths: frozenset[str] = frozenset()):
        self._known, self.recording, self.paths = known or {}, recording, paths
        self._uneven = {
            spot for spot, effects in self._known.items() if effects and any(map(_is_uneven, effects.values()))
        }
        self.bound = known is not None and not recording
        """Whether a candidate is bound to what the reference did."""
        self.random = False
        """Whether the suite draws random numbers: the arguments differ from run to run, and so does the order."""
        self.test, self.drawn = "", False
        """The current test, and whether its arguments differ from run to run."""
        self._seen: dict[str, Counter[str]] = defaultdict(Counter)
        self._effects: dict[str, dict[str, Any]] = defaultdict(dict)
        self._count = 0

    def begins(self, test: str, drawn: bool) -> None:
        """A test begins. `drawn`: Hypothesis draws its arguments."""
        self.test, self.drawn = test, drawn or self.random

    def spot(self, operation: str) -> str:
        """Where a request is about to be sent; empty if nothing depends on it."""
        return f"{operation} at {self._line()} in {self.test or 'the suite'}" if self.recording or self.bound else ""

    def now(self, spot: str, arguments: Any, encode: Callable[[Any], str]) -> Moment:
        """The moment of a request there.

        Args:
            arguments: coded for the other process.
            encode: to text.
        """
        if not self.recording and spot not in self._uneven:
            return Moment(spot)
        text = _NUMBERS.sub(r"\1", encode(arguments))
        digest = hashlib.blake2b(text.encode("ascii"), digest_size=6).hexdigest()
        self._seen[spot][digest] += 1
        return Moment(spot, f"{digest} {self._seen[spot][digest]}")

    def _line(self) -> str:
        frame: types.FrameType | None = sys._getframe(3)
        while frame is not None:
            if frame.f_code.co_filename in self.paths:
                return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
            frame = frame.f_back
        return "?"

    def record(self, moment: Moment, effect: str, value: Any = 1) -> None:
        """The reference had this effect."""
        if self._count < _MOMENTS:
            self._count += 1
            self._effects[moment.spot].setdefault(effect, {})[moment.key] = value

    def of_reference(self, moment: Moment, effect: str) -> Any:
        """What was recorded of an effect at this moment; None if nothing was."""
        found = (self._known.get(moment.spot) or {}).get(effect)
        if not _is_uneven(found):
            return found
        if self.drawn:
            digest = moment.key.partition(" ")[0]
            same = [value for key, value in found.items() if key.partition(" ")[0] == digest]
            return (same or [*found.values()])[0]
        return found.get(moment.key)

    def effects_of_reference(self, moment: Moment, prefix: str) -> list[str]:
        """The effects that were recorded at this moment, of those that begin so."""
        known = (self._known.get(moment.spot) or {}).items()
        return [
            effect for effect, at in known if effect.startswith(prefix) and (not _is_uneven(at) or moment.key in at)
        ]

    def knows(self, moment: Moment) -> bool:
        """Whether the reference's run had this moment."""
        return moment.spot in self._known

    def recorded(self) -> dict[str, Any]:
        """The effects by spot. An effect that all moments of a spot had with the same value is that value alone."""
        found: dict[str, Any] = {}
        for spot in [*dict.fromkeys((*self._seen, *self._effects))][:_SPOTS]:
            count, effects = self._seen[spot].total(), self._effects.get(spot, {})
            found[spot] = {effect: _merged(at, count) for effect, at in effects.items()}
        return found


def _merged(at: dict[str, Any], count: int) -> Any:
    values = [*at.values()]
    return values[0] if len(at) == count and all(value == values[0] for value in values) else at


def _is_uneven(found: Any) -> bool:
    return isinstance(found, dict)


class Snapshot:
    """The state of an object or a class: attributes that are plain data by their content, all others by identity."""

    def __init__(self, target: Any):
        self._target = target
        self._before = {name: (value, _copied(value)) for name, value in self._attributes()}

    def _attributes(self) -> list[tuple[str, Any]]:
        target = self._target
        slots = (name for kind in type(target).__mro__ for name in vars(kind).get("__slots__", ()) if type(name) is str)
        found = [(name, getattr(target, name)) for name in slots if name != "__dict__" and hasattr(target, name)]
        return found + [*getattr(target, "__dict__", {}).items()]

    def changed(self) -> list[str]:
        """Names of the attributes that differ now."""
        now, before = dict(self._attributes()), self._before
        differing = (
            name
            for name, (value, copied) in before.items()
            if now.get(name, self) is not value or _print(value) != _print(copied)
        )
        return [*differing, *(name for name in now if name not in before)]

    def restore(self, changed: Iterable[str]) -> None:
        """Give these attributes their former values."""
        put = type.__setattr__ if isinstance(self._target, type) else object.__setattr__
        take = type.__delattr__ if isinstance(self._target, type) else object.__delattr__
        for name in changed:
            if name not in self._before:
                take(self._target, name)
                continue
            value, copied = self._before[name]
            if type(value) in values.CHANGING:
                containers.put(value, copied)
            put(self._target, name, value)


def _copied(value: Any, depth: int = 0) -> Any:
    kind = type(value)
    if kind not in values.CHANGING or depth >= values.MAX_DEPTH:
        return value
    if isinstance(value, dict):
        new = copy.copy(value)
        new.update((key, _copied(item, depth + 1)) for key, item in value.items())
        return new
    if kind is list:
        return [_copied(item, depth + 1) for item in value]
    return copy.copy(value)


def _print(value: Any, depth: int = 0) -> Any:
    """Plain data by its content, everything else by its identity."""
    kind = type(value)
    if kind not in values.PLAIN or depth >= values.MAX_DEPTH:
        return kind, id(value)
    if isinstance(value, dict):
        return kind, [(_print(key, depth + 1), _print(item, depth + 1)) for key, item in value.items()]
    if kind in (list, tuple):
        return kind, [_print(item, depth + 1) for item in value]
    if kind in (set, frozenset):
        return kind, sorted(str(_print(item, depth + 1)) for item in value)
    return kind, repr(value) if kind is float else value
