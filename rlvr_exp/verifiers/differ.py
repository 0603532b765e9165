"""Where a wrong answer departs from the right answer, in a few words for a verdict's log. Decides nothing; bounded."""

import reprlib
from typing import Any

from rlvr_exp.sandbox.wire import Bag, Pairs
from rlvr_exp.verifiers.compare import equal, lines_of, same_line

_SHORT, _AROUND, _LINE = 120, 24, 100
_VISITS = 300
_SEQUENCES = (list, tuple)


class _Brief(reprlib.Repr):
    """Shows a bounded part of each container: values of megabytes are logged for every candidate that fails on them."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother, self.maxlong = 8, 2 * _SHORT, 2 * _SHORT, 2 * _SHORT
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 60
        self._left = _VISITS

    def repr1(self, value: Any, level: int) -> str:
        """Further values would not be shown in the log."""
        self._left -= 1
        return super().repr1(value, level) if self._left >= 0 else "..."

    def repr_Pairs(self, value: Pairs, level: int) -> str:
        pairs = (f"{self.repr1(key, level - 1)}: {self.repr1(item, level - 1)}" for key, item in value.items[:60])
        return f"{{{', '.join(pairs)}}}" if level > 0 else "{...}"

    def repr_Bag(self, value: Bag, level: int) -> str:
        items = ", ".join(self.repr1(item, level - 1) for item in value.items[:60]) if level > 0 else "..."
        return ("frozenset({%s})" if value.frozen else "{%s}") % items if items else "set()"


def short(value: Any) -> str:
    """A value's repr, with the middle left out where it is long."""
    try:
        text = _Brief().repr(value)
    except (RecursionError, ValueError):  # forged depth, or an int too long to print
        return "<too large to show>"
    text = text.encode("ascii", "backslashreplace").decode() if _has_surrogates(text) else text
    return text if len(text) <= _SHORT else f"{text[:60]} ... {text[-50:]}"


def differing_value(got: Any, expected: Any, strict: bool, atol: float, rtol: float = 0.0) -> str:
    """Both values, or, where they are too long to show, the first place at which they differ."""
    whole = _Pair(got, expected)
    if max(len(whole.got), len(whole.expected)) < _SHORT - 10:
        return f"gave {whole}"
    place = ""
    while True:
        inner = _first_difference(got, expected, strict, atol, rtol)
        if inner is None:
            break
        step, got, expected = inner
        place += step
    at = f" at {place}" if place else ""
    if type(got) is str and type(expected) is str:
        return f"differs{at} {_in_text(got, expected)}"
    if type(got) in _SEQUENCES and type(expected) in _SEQUENCES and len(got) != len(expected):
        return f"differs{at}: {len(got)} items, expected {len(expected)}: {_Pair(got, expected, typed=False)}"
    return f"differs{at}: gave {_Pair(got, expected) if place else whole}"


def differing_output(got: str, expected: str, strict: bool, atol: float, rtol: float = 0.0) -> str:
    """The first line that differs, as a diff of two lines."""
    if strict:
        return f"its output differs {_in_text(got, expected)}"
    lines, wanted = lines_of(got), lines_of(expected)
    at = 0
    while at < min(len(lines), len(wanted)) and same_line(lines[at], wanted[at], atol, rtol):
        at += 1
    one, other = (_line(text[at]) if at < len(text) else "<no line>" for text in (lines, wanted))
    return f"line {at + 1} of its output differs:\n- {other}\n+ {one}"


def _first_difference(got: Any, expected: Any, strict: bool, atol: float, rtol: float) -> tuple[str, Any, Any] | None:
    """One step down to what differs; None where the two differ as wholes."""
    if type(expected) in _SEQUENCES and type(got) in _SEQUENCES:
        for index, (one, other) in enumerate(zip(got, expected, strict=False)):
            if not equal(one, other, strict, atol, rtol):
                return f"[{index}]", one, other
    if type(expected) is dict and type(got) is Pairs and len(got.items) == len(expected):
        for (key, one), (wanted, other) in zip(got.items, expected.items(), strict=True):
            if equal(key, wanted, True) and not equal(one, other, strict, atol, rtol):
                return f"[{short(wanted)}]", one, other
    return None


def _in_text(got: str, expected: str) -> str:
    at = next((i for i, (one, other) in enumerate(zip(got, expected, strict=False)) if one != other), None)
    at = min(len(got), len(expected)) if at is None else at
    begin = max(0, at - _AROUND)
    around = (f"{'...' if begin else ''}{text[begin : at + _AROUND]}" for text in (got, expected))
    return f"from character {at + 1}: gave %s, expected %s" % tuple(map(short, around))


def _line(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _LINE else f"{text[:60]} ... {text[-30:]}"


class _Pair:
    """Two values as they are shown; with their types where they look alike, unless `typed` is false."""

    def __init__(self, got: Any, expected: Any, typed: bool = True):
        self.got, self.expected = short(got), short(expected)
        alike = self.got == self.expected or (type(got) is not type(expected) and got == expected)
        names = [type(value).__name__ for value in (got, expected)]
        self._types = f" (a {names[0]}, expected a {names[1]})" if typed and alike and names[0] != names[1] else ""

    def __str__(self) -> str:
        return f"{self.got}, expected {self.expected}{self._types}"


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
