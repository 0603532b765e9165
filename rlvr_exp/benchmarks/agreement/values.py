"""Random plain data, and its text as a Python expression. Nested, with the values that comparing easily gets wrong."""

import random
from typing import Any

_ATOMS: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**64 + 1,
    -(10**40),
    0.0,
    -0.0,
    0.1 + 0.2,
    1e308,
    5e-324,
    float("inf"),
    float("nan"),
    3.0,
    1j,
    complex(0.0, float("nan")),
    "",
    "a",
    "A b\n",
    "é",
    "\U0001f600",
    "\ud83d\ude00",
    "\udc80",
    "0",
    "None",
    b"",
    b"a",
    b"\xff\x00",
)
_HASHABLE = tuple(atom for atom in _ATOMS if atom == atom)
_DEPTH = 3


def value(draw: random.Random, depth: int = 0) -> Any:
    kind = draw.random()
    if depth >= _DEPTH or kind < 0.4:
        return draw.choice(_ATOMS)
    if kind < 0.5:
        return draw.randint(-20, 20)
    if kind < 0.55:
        return round(draw.uniform(-9, 9), draw.randint(0, 3))
    items = [value(draw, depth + 1) for _ in range(draw.randint(0, 3))]
    if kind < 0.75:
        return items
    if kind < 0.85:
        return tuple(items)
    keys = [draw.choice(_HASHABLE) for _ in items]
    return dict(zip(keys, items, strict=True)) if kind < 0.93 else (set(keys) if kind < 0.97 else frozenset(keys))


def written(of: Any) -> str:
    """An expression that gives the value; `inf` and `nan` are names there."""
    match of:
        case list() | tuple():
            inside = ", ".join(map(written, of))
            return f"[{inside}]" if isinstance(of, list) else f"({inside}{',' * (len(of) == 1)})"
        case dict():
            return "{" + ", ".join(f"{written(key)}: {written(part)}" for key, part in of.items()) + "}"
        case set() | frozenset():
            return f"{type(of).__name__}([{', '.join(sorted(map(written, of)))}])"
        case complex():
            return f"complex({of.real!r}, {of.imag!r})"
        case str():
            return ascii(of)
    return repr(of)
