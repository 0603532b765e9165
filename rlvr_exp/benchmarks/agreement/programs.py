"""Random functions `f(a, b)`, and random plain data for their arguments as Python expressions.

Each step of a function computes a value from the previous value, by common constructs. Data are nested, with the values that
comparing easily gets wrong.
"""

import random
from collections.abc import Callable
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


HEAD = """
import collections, contextlib, dataclasses, functools, itertools, math
from math import inf, nan

SEEN = []

class Box:
    count = 0
    def __init__(self, held, more=2):
        Box.count += 1
        self.held, self.more = held, more
    def __len__(self): return self.more
    def __iter__(self): return iter([self.held] * self.more)
    @property
    def both(self): return (self.held, self.more)

@dataclasses.dataclass
class Point:
    x: object
    y: int = 3

Pair = collections.namedtuple('Pair', 'one other')

@functools.lru_cache(maxsize=None)
def steps(n):
    return 1 if n < 2 else steps(n - 1) + steps(n - 2)

def parts(of):
    if isinstance(of, (list, tuple)):
        for one in of:
            yield from parts(one)
    else:
        yield of

@contextlib.contextmanager
def noted(of):
    SEEN.append(1)
    try:
        yield of
    finally:
        SEEN.append(2)
"""
Step = Callable[[random.Random], str]


def _literal(draw: random.Random) -> str:
    return written(value(draw, 1))


def _small(draw: random.Random) -> str:
    return str(draw.randint(0, 5))


STEPS: tuple[Step, ...] = (
    lambda draw: f"v = [v, {_literal(draw)}]",
    lambda draw: f"v = (v,) * {_small(draw)}",
    lambda draw: f"v = {{'k': v, {draw.randint(0, 9)}: {_literal(draw)}}}",
    lambda draw: f"v = list(parts([v, {_literal(draw)}]))",
    lambda draw: f"v = Box(v, {_small(draw)}).both",
    lambda draw: f"v = list(Box(v, {_small(draw)}))",
    lambda draw: f"v = (len(Box(v, {_small(draw)})), Box.count)",
    lambda draw: f"v = Pair(v, {_literal(draw)})",
    lambda draw: f"v = dataclasses.astuple(Point(v, {_small(draw)}))",
    lambda draw: f"v = [v, steps({draw.randint(1, 20)})]",
    lambda draw: f"v = [v, {draw.randint(2, 9)} ** {draw.randint(0, 90)}]",
    lambda draw: f"if isinstance(v, (int, float)): v = v + {_small(draw)}",
    lambda draw: f"if isinstance(v, (int, float)) and v > {_small(draw)}: v = v * 2 - 1",
    lambda draw: f"if isinstance(a, list): a.append({_literal(draw)}); v = [a, v]",
    lambda draw: "if isinstance(b, dict): b.clear(); v = [b, v]",
    lambda draw: (
        f"try:\n    v = v[{_small(draw)}]\nexcept (TypeError, KeyError, IndexError):\n    v = [v, {_literal(draw)}]"
    ),
    lambda draw: f"with noted(v) as held: v = [held, len(SEEN)]\nif len(SEEN) > {_small(draw)}: SEEN.clear()",
    lambda draw: f"for n in range({_small(draw)}): v = [n, v] if n % 2 else (v, n)",
    lambda draw: f"v = sum(1 for part in parts(v) if isinstance(part, (int, str))) + {_small(draw)}",
    lambda draw: "v = collections.Counter(type(part).__name__ for part in parts(v))",
    lambda draw: "v = ''.join(part for part in parts([v, a, b]) if isinstance(part, str))",
    lambda draw: f"v = v[{_small(draw)}:] if isinstance(v, (str, bytes, list, tuple)) else v",
    lambda draw: "v = v.encode('utf-8', 'surrogatepass') if isinstance(v, str) else v",
    lambda draw: f"v = {{part for part in parts(v) if isinstance(part, int)}} | {{{_small(draw)}}}",
    lambda draw: "v = len(v) if hasattr(v, '__len__') else v",
    lambda draw: f"print('step', {_small(draw)}, type(v))",
    lambda draw: f"assert v != {_literal(draw)}",
    lambda draw: f"if v == {_literal(draw)}: raise ValueError(v)",
    lambda draw: "v = (one for one in [v])" if draw.random() < 0.1 else "v = next(one for one in [v])",
    lambda draw: "v = Box(v)" if draw.random() < 0.1 else "v = Box(v).held",
    lambda draw: f"v = functools.reduce(lambda one, other: [one, other], [v] * {draw.randint(1, 4)})",
    lambda draw: "v = [*itertools.chain([v], [a])]",
    lambda draw: f"v = math.floor(v) if isinstance(v, float) and math.isfinite(v) else [v, {_literal(draw)}]",
    lambda draw: "globals()['LAST'] = v\nv = [LAST]",
    lambda draw: (
        f"match v:\n    case [one, *_]: v = one\n    case {{'k': one}}: v = (one, {_small(draw)})\n    case int(): v = 1"
    ),
)


def function(draw: random.Random) -> str:
    """The text of a function `f` of two arguments, to be put below HEAD."""
    steps = [draw.choice(STEPS)(draw) for _ in range(draw.randint(1, 5))]
    body = "\n".join([f"v = {draw.choice(['a', 'b', '[a, b]', '(a, b)'])}", *steps, "return v"])
    inside = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"def f(a, b):\n{inside}"
