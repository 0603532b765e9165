"""Whether code can have side effects in its process is decided conservatively."""

import pytest

from rlvr_exp.sandbox.harnesses.python.calls import has_side_effects

PURE = {
    "transpose": "def f(g): return [list(row) for row in zip(*g)]",
    "nested": "def f(g):\n    def turn(r): return r[::-1]\n    return [turn(r) for r in g]",
    "methods of data": "def f(s):\n    out = []\n    for c in s: out.append(c.upper())\n    return ''.join(out)",
    "raising": "def f(x):\n    if x < 0: raise ValueError('no')\n    return x",
    "generator": "def f(n): return sum(i * i for i in range(n) if i % 2)",
    "own memory": "seen = {}\ndef f(x):\n    seen[x] = seen.get(x, 0) + 1\n    return seen[x]",
    "print": "def f(x):\n    print(x)\n    return x",
}
LEAVING = {
    "import": "import math\ndef f(x): return math.sqrt(x)",
    "import inside": "def f(x):\n    from os import environ\n    environ['A'] = '1'",
    "attribute": "def f(x): f.count = x",
    "global": "def f(x):\n    global y\n    y = x",
    "class": "class A: pass",
    "dunder": "def f(x): return x.__class__",
    "exec": "exec('import os')",
    "getattr in a lambda": "f = lambda x: getattr(x, 'y')",
    "open": "def f(x): return open('a', 'w')",
    "input": "print(input())",
    "comprehension": "f = [globals() for _ in range(2)]",
    "deletion": "def f(x): del x.y",
}


@pytest.mark.parametrize("source", PURE.values(), ids=PURE)
def test_code_that_computes_leaves_nothing(source):
    assert not has_side_effects(compile(source, "candidate", "exec"))


@pytest.mark.parametrize("source", LEAVING.values(), ids=LEAVING)
def test_code_that_could_leave_something_is_cleaned_after(source):
    assert has_side_effects(compile(source, "candidate", "exec"))
