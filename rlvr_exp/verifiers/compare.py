"""Whether a candidate's value is the expected one. Runs in the trusted parent, over data alone.

Rules: a bool is never a number; a tuple is a list only where the problem is not strict; an int equals a float only
where it is not strict; floats may differ by `atol`; NaN equals nothing; keys of dicts and members of sets compare by
exact type.
"""

from typing import Any

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.wire import Bag, Pairs

_NUMBERS = (int, float, complex)


def equal(got: Any, expected: Any, strict: bool = False, atol: float = 0.0) -> bool:
    """`got`: as decoded by `wire.decode`, or native; `expected`: native plain data, whose shape bounds the work."""
    kind = type(expected)
    if kind in _NUMBERS:
        return _numbers_equal(got, expected, strict, atol)
    if kind in (list, tuple):
        alike = type(got) is kind or (not strict and type(got) in (list, tuple))
        if not alike or len(got) != len(expected):
            return False
        return all(equal(one, other, strict, atol) for one, other in zip(got, expected, strict=True))
    if kind is dict:
        return _dicts_equal(got, expected, strict, atol)
    if kind in (set, frozenset):
        return _sets_equal(got, expected)
    return type(got) is kind and got == expected


def _numbers_equal(got: Any, expected: Any, strict: bool, atol: float) -> bool:
    if type(got) not in _NUMBERS or (strict and type(got) is not type(expected)):
        return False
    if got == expected:
        return True
    if not atol or (type(got) is int and type(expected) is int):
        return False
    try:
        return abs(got - expected) <= atol
    except OverflowError:  # an int beyond every float
        return False


def _dicts_equal(got: Any, expected: dict[Any, Any], strict: bool, atol: float) -> bool:
    if type(got) not in (dict, Pairs):
        return False
    pairs = tuple(got.items()) if type(got) is dict else got.items
    if len(pairs) != len(expected):
        return False
    found = {_name(key): value for key, value in pairs}
    wanted = {_name(key): value for key, value in expected.items()}
    return found.keys() == wanted.keys() and all(equal(found[key], wanted[key], strict, atol) for key in wanted)


def _sets_equal(got: Any, expected: set[Any] | frozenset[Any]) -> bool:
    if type(got) is Bag:
        if got.frozen != (type(expected) is frozenset):
            return False
        members = got.items
    elif type(got) is type(expected):
        members = tuple(got)
    else:
        return False
    return len(members) == len(expected) and {_name(one) for one in members} == {_name(one) for one in expected}


def _name(value: Any) -> bytes:
    """A key that tells types apart and hashes safely, whoever chose the value."""
    try:
        return wire.encode(value)
    except wire.NotPlain:  # forged, and deeper than anything that was asked for
        return b""
