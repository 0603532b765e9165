"""Plain data as bytes: the messages between a candidate's process and the trusted parent.

Owns one encoding, tagged JSON, that keeps None, bool, int, float, complex, str, bytes, list, tuple, dict, set and
frozenset apart. Decoding builds data and nothing else: no code, no classes, no pickle. A forged message
can hold other data, never code. Deep nesting, huge integers, NaN and size are bounded or encoded explicitly.
Standard library only: a sandbox worker imports this.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 100
"""Deepest nesting that is encoded; far above any answer, far below a C stack's end."""
_BIG = 1 << 62


class NotPlain(ValueError):
    """The value is not plain data, or nests too deep."""


class TooLarge(ValueError):
    """The value needs more bytes than allowed."""


@dataclass(frozen=True)
class Pairs:
    """A dict received from a candidate, its keys not yet hashed: chosen keys could make the parent's dict slow."""

    items: tuple[tuple[Any, Any], ...]

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {item!r}" for key, item in self.items) + "}"


@dataclass(frozen=True)
class Bag:
    """A set or frozenset received from a candidate, its members not yet hashed."""

    frozen: bool
    items: tuple[Any, ...]

    def __repr__(self) -> str:
        return ("frozenset({%s})" if self.frozen else "set({%s})") % ", ".join(map(repr, self.items))


def encode(value: Any, limit: int = 1 << 30) -> bytes:
    """ASCII bytes of plain data. A subclass of a plain type is sent as its base's content: its methods stay behind.

    Raises:
        NotPlain: something else than plain data, or nested deeper than MAX_DEPTH (a cycle, too).
        TooLarge: more than `limit` bytes.
    """
    text = _dumps(_tagged(value, 0, [limit]))
    if len(text) > limit:
        raise TooLarge(f"{len(text)} bytes, allowed {limit}")
    return text.encode("ascii")


def decode(data: bytes) -> Any:
    """Decode on the trusted side: dicts and sets become Pairs and Bag.

    Raises:
        ValueError: not one encoded value.
    """
    return _loads(data, _UNTRUSTED)


def decode_native(data: bytes) -> Any:
    """Decode data of a trusted sender: dicts and sets stay dicts and sets. Raises ValueError."""
    return _loads(data, _NATIVE)


# Built here once: a candidate that patches json.dumps does not reach it.
_dumps = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=False).encode


def _tagged(value: Any, depth: int, budget: list[int]) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        raise TooLarge("more values than bytes allowed")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        budget[0] -= len(value)
        return value if value.isascii() else _text(value)
    if kind is int:
        if -_BIG < value < _BIG:
            return value
        budget[0] -= value.bit_length() // 4
        return {"i": hex(value)} if budget[0] >= 0 else _tagged(None, 0, budget)
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if depth >= MAX_DEPTH:
        raise NotPlain(f"nested deeper than {MAX_DEPTH}")
    return _tagged_composite(value, kind, depth + 1, budget)


def _text(value: str) -> Any:
    """Two halves of a surrogate pair stay two characters: JSON alone would merge them into one character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"u": value.encode("utf-8", "surrogatepass").hex()}
    return value


def _tagged_composite(value: Any, kind: type, depth: int, budget: list[int]) -> Any:
    if kind is list:
        return [_tagged(item, depth, budget) for item in value]
    if kind is tuple:
        return {"t": [_tagged(item, depth, budget) for item in value]}
    if kind is dict or kind is Pairs:
        items = value.items() if kind is dict else value.items
        return {"d": [[_tagged(key, depth, budget), _tagged(item, depth, budget)] for key, item in items]}
    if kind in (set, frozenset, Bag):
        frozen, items = (value.frozen, value.items) if kind is Bag else (kind is frozenset, value)
        return {"z" if frozen else "s": sorted((_tagged(item, depth, budget) for item in items), key=_dumps)}
    if kind is bytes:
        budget[0] -= 2 * len(value)
        return {"b": value.hex()} if budget[0] >= 0 else _tagged(None, 0, budget)
    if kind is complex:
        return {"c": [_tagged(value.real, depth, budget), _tagged(value.imag, depth, budget)]}
    return _tagged(_base_content(value, kind), depth, budget)


BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (list, list.copy),
    (dict, dict.copy),
    (set, set.copy),
    (frozenset, frozenset.copy),
)
"""Plain types, and how to get the content of an instance of a derived class, by the plain type's own method."""


def _base_content(value: Any, kind: type) -> Any:
    for base, content in BASES:
        if issubclass(kind, base):
            plain = content(value)
            if type(plain) is base:
                return plain
    raise NotPlain(f"a {kind.__name__} is not plain data")


def _loads(data: bytes, scan: Callable[[str, int], tuple[Any, int]]) -> Any:
    try:
        text = data.decode("ascii")
        value, end = scan(text, 0)
    except StopIteration as fault:
        raise ValueError(f"not an encoded value: nothing at {fault.value}") from fault
    except (RecursionError, TypeError, AttributeError, OverflowError) as fault:
        raise ValueError(f"not an encoded value: {fault}") from fault
    if end != len(text):
        raise ValueError(f"not an encoded value: more of it at {end}")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"bare {name}")


def _items(value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise ValueError("a tag without its list")
    return tuple(value)


def _pairs(value: Any) -> tuple[tuple[Any, Any], ...]:
    pairs = _items(value)
    if any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise ValueError("a dict without its pairs")
    return tuple((key, item) for key, item in pairs)


def _special_float(value: Any) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise ValueError("unknown float")
    return float(value)


def _complex(value: Any) -> complex:
    real, imaginary = _items(value)
    if type(real) is not float or type(imaginary) is not float:
        raise ValueError("a complex without its floats")
    return complex(real, imaginary)


_COMMON: dict[str, Callable[[Any], Any]] = {
    "i": lambda value: int(value, 16),
    "f": _special_float,
    "c": _complex,
    "b": bytes.fromhex,
    "u": lambda value: bytes.fromhex(value).decode("utf-8", "surrogatepass"),
    "t": _items,
}


def _scanner(builders: dict[str, Callable[[Any], Any]]) -> Callable[[str, int], tuple[Any, int]]:
    """(value, end) of the value at an index. Built once: a decoder per text costs more than the text."""

    def untag(pairs: list[tuple[str, Any]]) -> Any:
        if len(pairs) != 1 or pairs[0][0] not in builders:
            raise ValueError("unknown tag")
        return builders[pairs[0][0]](pairs[0][1])

    return json.JSONDecoder(object_pairs_hook=untag, parse_constant=_refuse).scan_once


_UNTRUSTED = _scanner(
    _COMMON
    | {
        "d": lambda value: Pairs(_pairs(value)),
        "s": lambda value: Bag(False, _items(value)),
        "z": lambda value: Bag(True, _items(value)),
    }
)
_NATIVE = _scanner(
    _COMMON
    | {
        "d": lambda value: dict(_pairs(value)),
        "s": lambda value: set(_items(value)),
        "z": lambda value: frozenset(_items(value)),
    }
)
