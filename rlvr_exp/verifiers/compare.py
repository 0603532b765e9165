"""Whether a candidate's value, or a program's output, is the expected one. Runs in the trusted parent, over data alone.

Values: a bool is never a number; a tuple is a list, and an int equals a float, only if the problem is not strict; floats may differ by `atol + rtol * abs(expected)`, as in `numpy.allclose`, two ints never; 0.0
equals -0.0; infinities equal themselves alone; an expected NaN equals NaN, and nothing else; a dict's order
does not count; keys of dicts and members of sets follow the same rules, without the tolerances.
Output: white space at the ends of lines and empty lines at the end do not count, everything else does; strict counts
every character. With a tolerance lines are compared word by word, and two numbers may differ by it unless both are ints.
"""

import cmath
import re
import reprlib
from dataclasses import replace
from typing import Any

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.wire import Bag, Pairs
from rlvr_exp.tasks.calls import Approx

_NUMBERS = (int, float, complex)
_INTEGER = re.compile(r"([+-]?)0*([0-9]+)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?", re.ASCII)


def equal(got: Any, expected: Any, strict: bool = False, atol: float = 0.0, rtol: float = 0.0) -> bool:
    """`got`: as decoded by `wire.decode`, or native; `expected`: native plain data, whose shape bounds the work."""
    kind = type(expected)
    if kind in _NUMBERS:
        return _numbers_equal(got, expected, strict, atol, rtol)
    if kind in (list, tuple):
        alike = type(got) is kind or (not strict and type(got) in (list, tuple))
        if not alike or len(got) != len(expected):
            return False
        return all(equal(one, other, strict, atol, rtol) for one, other in zip(got, expected, strict=True))
    if kind is dict:
        return _dicts_equal(got, expected, strict, atol, rtol)
    if kind in (set, frozenset):
        return _sets_equal(got, expected, strict)
    return type(got) is kind and got == expected


def near(got: Any, expected: Approx) -> bool:
    """Whether a value is about what `pytest.approx` expects: numbers within the tolerance, in the same structure."""
    wanted = expected.value
    if isinstance(wanted, (list, tuple)):
        alike = type(got) in (list, tuple) and len(got) == len(wanted)
        return alike and all(near(one, replace(expected, value=other)) for one, other in zip(got, wanted, strict=True))
    if isinstance(wanted, dict):
        alike = type(got) is dict and got.keys() == wanted.keys()
        return alike and all(near(got[key], replace(expected, value=other)) for key, other in wanted.items())
    return type(got) in _NUMBERS and (got == wanted or _within(got, wanted, expected.tolerance(wanted), 0.0))


def lines_of(text: str) -> list[str]:
    """The lines that count: without white space at their ends, without empty ones at the end."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def same_output(got: str, expected: str, strict: bool = False, atol: float = 0.0, rtol: float = 0.0) -> bool:
    """`got`: the text that a program wrote; both of any size, compared in one pass."""
    if strict or got == expected:
        return got == expected
    lines, wanted = lines_of(got), lines_of(expected)
    return len(lines) == len(wanted) and all(same_line(*pair, atol, rtol) for pair in zip(lines, wanted, strict=True))


def same_line(got: str, expected: str, atol: float = 0.0, rtol: float = 0.0) -> bool:
    """Whether two lines from `lines_of` are equal."""
    if got == expected or not (atol or rtol):
        return got == expected
    words, wanted = got.split(), expected.split()
    return len(words) == len(wanted) and all(_same_word(*pair, atol, rtol) for pair in zip(words, wanted, strict=True))


def _same_word(got: str, expected: str, atol: float, rtol: float) -> bool:
    if got == expected:
        return True
    whole, wanted = _INTEGER.fullmatch(got), _INTEGER.fullmatch(expected)
    if whole and wanted:  # As text, since Python takes long to read a long one.
        signs = {one[1] == "-" for one in (whole, wanted) if one[2] != "0"}
        return whole[2] == wanted[2] and len(signs) < 2
    if not (_DECIMAL.fullmatch(got) and _DECIMAL.fullmatch(expected)):
        return False
    return _within(float(got), float(expected), atol, rtol)


def _numbers_equal(got: Any, expected: Any, strict: bool, atol: float = 0.0, rtol: float = 0.0) -> bool:
    if type(got) not in _NUMBERS or (strict and type(got) is not type(expected)):
        return False
    if got == expected or (_has_nan(got) and _has_nan(expected) and _same_nan(got, expected, strict)):
        return True
    if not (atol or rtol) or (type(got) is int and type(expected) is int):
        return False
    return _within(got, expected, atol, rtol)


def _within(got: Any, expected: Any, atol: float, rtol: float) -> bool:
    """Whether two numbers differ by no more than the tolerances; nothing is near an infinity."""
    try:
        return cmath.isfinite(expected) and abs(got - expected) <= atol + rtol * abs(expected)
    except OverflowError:  # an int beyond every float
        return False


def _has_nan(number: Any) -> bool:
    return type(number) is not int and cmath.isnan(number)


def _same_nan(got: Any, expected: Any, strict: bool) -> bool:
    """For two values that contain NaN: whether it is at the same place, and the other part is equal."""
    if type(got) is float and type(expected) is float:
        return True
    got, expected = complex(got), complex(expected)
    return _numbers_equal(got.real, expected.real, strict) and _numbers_equal(got.imag, expected.imag, strict)


def _dicts_equal(got: Any, expected: dict[Any, Any], strict: bool, atol: float, rtol: float) -> bool:
    if type(got) not in (dict, Pairs):
        return False
    pairs = tuple(got.items()) if type(got) is dict else got.items
    if len(pairs) != len(expected):
        return False
    deepest = max(map(_depth, expected), default=0)
    found = {_name(key, strict, deepest): value for key, value in pairs}
    wanted = {_name(key, strict, deepest): value for key, value in expected.items()}
    return found.keys() == wanted.keys() and all(equal(found[key], wanted[key], strict, atol, rtol) for key in wanted)


def _sets_equal(got: Any, expected: set[Any] | frozenset[Any], strict: bool) -> bool:
    if type(got) is Bag:
        if got.frozen != (type(expected) is frozenset):
            return False
        members = got.items
    elif type(got) is type(expected):
        members = tuple(got)
    else:
        return False
    if len(members) != len(expected):
        return False
    deepest = max(map(_depth, expected), default=0)
    return {_name(one, strict, deepest) for one in members} == {_name(one, strict, deepest) for one in expected}


def _name(value: Any, strict: bool, deepest: int) -> bytes:
    """A key that is equal for equal values and for no others; it hashes safely, whoever chose the value.

    Args:
        deepest: of the expected values. One that is deeper equals none of them, and would cost a pass over it a level.
    """
    try:
        return wire.encode(_canonical(value, strict, deepest))
    except wire.NotPlain:
        return b""


def _depth(value: Any) -> int:
    parts = value.items if type(value) is Bag else value if type(value) in (tuple, frozenset) else ()
    return 1 + max(map(_depth, parts), default=0) if type(value) in (tuple, frozenset, Bag) else 0


def _canonical(value: Any, strict: bool, left: int) -> Any:
    """A canonical value, shared by all values that are equal to it. Raises wire.NotPlain: it is more than `left` deep."""
    kind = type(value)
    if left < 0 or (left == 0 and kind in (tuple, frozenset, Bag)):
        raise wire.NotPlain("too deep")
    if kind is complex and not strict and value.imag == 0:
        kind, value = float, value.real
    if kind is float:
        return int(value) if not strict and value.is_integer() else value + 0.0
    if kind is complex:
        return complex(value.real + 0.0, value.imag + 0.0)
    if kind is tuple:
        return tuple(_canonical(item, strict, left - 1) for item in value)
    if kind in (Bag, frozenset):
        frozen, items = (value.frozen, value.items) if kind is Bag else (True, value)
        return Bag(frozen, tuple(_canonical(one, strict, left - 1) for one in items))
    return value


_SHORT, _AROUND, _LINE = 120, 24, 100
_VISITS = 300
_BITS = 10_000
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

    def repr_int(self, value: int, level: int) -> str:
        """Python takes long to write a long one."""
        return (
            super().repr_int(value, level) if value.bit_length() < _BITS else f"<an int of {value.bit_length()} bits>"
        )

    def repr_Pairs(self, value: Pairs, level: int) -> str:
        pairs = (f"{self.repr1(key, level - 1)}: {self.repr1(item, level - 1)}" for key, item in value.items[:60])
        return f"{{{', '.join(pairs)}}}" if level > 0 else "{...}"

    def repr_Bag(self, value: Bag, level: int) -> str:
        items = ", ".join(self.repr1(item, level - 1) for item in value.items[:60]) if level > 0 else "..."
        return ("frozenset({%s})" if value.frozen else "{%s}") % items if items else "set()"


def short(value: Any) -> str:
    """A value's repr, with the middle left out if it is long."""
    try:
        text = _Brief().repr(value)
    except RecursionError:  # forged depth
        return "<too large to show>"
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= _SHORT else f"{text[:60]} ... {text[-50:]}"


def differing_value(got: Any, expected: Any, strict: bool, atol: float, rtol: float = 0.0) -> str:
    """Both values, or, if they are too long to show, the first place at which they differ."""
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
    """One step down to the difference; None if the two differ as wholes."""
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
    """Two values as they are shown; with their types if they look alike, unless `typed` is false."""

    def __init__(self, got: Any, expected: Any, typed: bool = True):
        self.got, self.expected = short(got), short(expected)
        alike = self.got == self.expected or (type(got) is not type(expected) and got == expected)
        names = [type(value).__name__ for value in (got, expected)]
        self._types = f" (a {names[0]}, expected a {names[1]})" if typed and alike and names[0] != names[1] else ""

    def __str__(self) -> str:
        return f"{self.got}, expected {self.expected}{self._types}"
