"""Programs that differ in names and layout alone are one tree; others are not."""

import pytest

from rlvr_exp.solutions.syntax import syntax_of

SAME = [
    ("def solve(g):\n    return g", 'def solve(grid):\n    """Return it."""\n    # as it is\n    return (grid)'),
    ("def f(a, b=1):\n    return a - b", "def f(b, a=1):\n    return b - a"),
    ("def f(g):\n    return [x for r in g for x in r]", "def f(h):\n    return [c for row in h for c in row]"),
    ("def f(g):\n    x = 1\n    return [x for x in g]", "def f(g):\n    x = 1\n    return [y for y in g]"),
    ("def f(g):\n    import numpy as np\n    return np.a(g)", "def f(g):\n    import numpy\n    return numpy.a(g)"),
    ("f = lambda a: lambda b: a + b", "f = lambda x: lambda y: x + y"),
    (
        "def f(g):\n    n = 0\n    def h(x):\n        nonlocal n\n        n += x\n    return h(g)",
        "def f(a):\n    b = 0\n    def c(d):\n        nonlocal b\n        b += d\n    return c(a)",
    ),
    ("def f(g):\n    try: pass\n    except E as e: raise e", "def f(g):\n    try: pass\n    except E as x: raise x"),
    (
        "def f(g):\n    match g:\n        case [a, *b]: return b",
        "def f(g):\n    match g:\n        case [x, *y]: return y",
    ),
    ("def f():\n    'only words'", "def f(): pass"),
    ("def f(g):\n    return [(y := x) for x in g] + [y]", "def f(g):\n    return [(b := a) for a in g] + [b]"),
    ("x = u'a'", "x = 'a'"),
]
NONLOCAL = """
def f():
    n = 0
    m = 0
    def h():
        nonlocal {}
        {} = 1
        {} = 2
    h()
    return n
"""
OTHERS = [
    ("def f(a): return a + 1", "def f(a): return a + 2"),
    ("def f(a): return a.x", "def f(a): return a.y"),
    ("def f(a, b): return a - b", "def f(a, b): return b - a"),
    ("def f(a): return g(a)", "def f(a): return h(a)"),
    ("def f():\n    global n\n    n = 1", "def f():\n    global m\n    m = 1"),
    ("x = 1", "x = 1.0"),
    ("x = 1", "x = True"),
    ("def f(a): return a[1:]", "def f(a): return a[:1]"),
    ("def f(a, b=None): return a", "def f(a=None, b=None): return a"),
    ("def f(a, *, b, c=1): return a", "def f(a, *, b=1, c): return a"),
    ("def f(g):\n    x = 1\n    return [x for y in g]", "def f(g):\n    x = 1\n    return [y for y in g]"),
    (NONLOCAL.format("n, m", "n", "m"), NONLOCAL.format("m, n", "m", "n")),
    ("def solve(", "def solve( "),
    ("x = None", "x = ..."),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_names_and_layout_do_not_count(one: str, other: str) -> None:
    assert syntax_of(one) == syntax_of(other)


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_what_a_program_does_counts(one: str, other: str) -> None:
    assert syntax_of(one).hash != syntax_of(other).hash


@pytest.mark.parametrize(
    "text", ["method M() { }", "def f(", "\0", "(" * 5000 + ")" * 5000, "-" * 50000 + "1", "x" + ".a" * 50000, ""]
)
def test_any_text_has_a_hash(text: str) -> None:
    assert len(syntax_of(text).hash) == 32


def test_size_is_that_of_the_tree() -> None:
    short, long = syntax_of("def f(g): return g"), syntax_of("def f(a_long_name):  # and words\n    return a_long_name")
    assert short.size == long.size < syntax_of("def f(g): return g + g").size
