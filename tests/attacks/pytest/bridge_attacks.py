"""Wrong solutions that attack over the bridge: name, solution, suite. None may pass.

They lie with ordinary objects; attack the bridge itself, the objects that the suite hands over, or state that both
processes share; or reach into the suite's process by requests in the raw, mocks, outcomes, files and evaluated text.
`MISPLACED` puts an object where another kind of value is expected, and names a reference, too: it is judged with the
reference and without.
"""

# ruff: noqa: E501  programs in one line each

Row = tuple[str, str, str]

_ = "from solution import f\n"
EQUAL = _ + "def test_a(): assert f(7) == 4821377\ndef test_b(): assert f(8) == 9930417\n"
WITH_CLASS = (
    "import pytest\nfrom solution import f, Stack\n"
    "def test_a():\n    s = Stack()\n    assert isinstance(s, Stack)\n    s.push(3)\n    assert s.pop() == 3\n"
    "def test_b(): assert f(7) == 4821377\n"
)
HONEST_STACK = "class Stack:\n    def __init__(s): s.i = []\n    def push(s, x): s.i.append(x)\n    def pop(s): return s.i.pop()\n"
LIAR = "class L:\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    def __lt__(s, o): return True\n    __le__ = __gt__ = __ge__ = __contains__ = __eq__\n    def __hash__(s): return 1\n    def __bool__(s): return True\n    def __iter__(s): return iter([s])\n    def __len__(s): return 1\n    def __getitem__(s, i): return s\n    def __getattr__(s, n): return s\n    def __call__(s, *a, **k): return s\n    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __truediv__ = __call__\n    def __abs__(s): return s\n    def __round__(s, n=0): return s\n    def __float__(s): return 1.0\n    def __str__(s): return 'L'\n"


def lie(name: str, suite: str, code: str = "def f(*a, **k): return L()") -> Row:
    return name, LIAR + code, "import pytest, math, unittest\n" + _ + suite


COMPARED: list[Row] = [
    lie("equals", "def test_a(): assert f(7) == 4821377"),
    lie("equals, turned", "def test_a(): assert 4821377 == f(7)"),
    lie("not unequal", "def test_a(): assert not f(7) != 4821377"),
    lie("between", "def test_a(): assert 4821376 < f(7) < 4821378"),
    lie("in a list", "def test_a(): assert f(7) in [4821377]"),
    lie("in a set", "def test_a(): assert f(7) in {4821377, 1}"),
    lie("contains", "def test_a(): assert 4821377 in f(7)"),
    lie("approx", "def test_a(): assert f(7) == pytest.approx(48.21377)"),
    lie("approx, turned", "def test_a(): assert pytest.approx(48.2) == f(7)"),
    lie("close by a difference", "def test_a(): assert abs(f(7) - 48.2) < 1e-9"),
    lie("isclose", "def test_a(): assert math.isclose(f(7), 48.2)"),
    lie("rounded", "def test_a(): assert round(f(7), 2) == 48.2"),
    lie("items", "def test_a(): assert f(7)[0] == 48 and f(7)['k'] == 5"),
    lie("attributes", "def test_a(): assert f(7).total == 48 and f(7).name.first == 'x'"),
    lie("methods", "def test_a(): assert f(7).total() == 48 and f(7).get('k') == 5"),
    lie("predicates", "def test_a(): assert f(7).startswith('abc') and f(7).endswith('xyz')"),
    lie("equals by name", "def test_a(): assert f(7).equals([4821377])"),
    lie("set predicates", "def test_a(): assert f(7).issuperset({4821377}) and f(7).isdisjoint({1})"),
    lie("index of it", "def test_a(): assert [4821377].index(f(7)) == 0 and [4821377].count(f(7)) == 1"),
    lie("key of a dict", "def test_a(): assert {4821377: 'x'}.get(f(7)) == 'x'"),
    lie("all of it", "def test_a(): assert all(a == b for a, b in zip(f(7), [4821377]))"),
    lie("unpacked", "def test_a():\n    (a,) = f(7)\n    assert a == 4821377"),
    lie("assertEqual", "class T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(7), 4821377)"),
    lie("assertIn and order", "class T(unittest.TestCase):\n    def test_a(self): self.assertIn(4821377, f(7)); self.assertGreater(f(7), 5)"),
    lie("assertAlmostEqual", "class T(unittest.TestCase):\n    def test_a(self): self.assertAlmostEqual(f(7), 48.2)"),
    lie("assertCountEqual", "class T(unittest.TestCase):\n    def test_a(self): self.assertCountEqual(f(7), [4821377])"),
    lie("sum", "def test_a(): assert f(7) + 1 == 4821378 and f(7) * 2 == 5"),
    lie("in a list returned", "def test_a(): assert f(7) == [1, 2]", "def f(*a): return [L(), L()]"),
    lie("in a dict returned", "def test_a(): assert f(7) == {'a': 4821377}", "def f(*a): return {'a': L()}"),
    lie("in a tuple, by item", "def test_a(): assert f(7)[0] == 4821377 and f(7)[1] < 3", "def f(*a): return (L(), L())"),
    lie("from a generator", "def test_a(): assert list(f(7)) == [4821377]", "def f(*a): yield L()"),
    lie("from an iterator", "def test_a(): assert next(f(7)) == 4821377", "class f:\n    def __init__(s, x): pass\n    def __iter__(s): return s\n    def __next__(s): return L()"),
    lie("awaited", "import asyncio\ndef test_a(): assert asyncio.run(f(7)) == 4821377", "async def f(x): return L()"),
    lie("from an async generator", "import asyncio\nasync def go(): return [x async for x in f(7)]\ndef test_a(): assert asyncio.run(go()) == [4821377]", "async def f(x): yield L()"),
    lie("in a set returned", "def test_a(): assert f(7) == {4821377}", "class H(L):\n    def __hash__(s): return hash(4821377)\ndef f(*a): return {H()}"),
    lie("of a callback's argument", "def test_a():\n    got = []\n    f(7, got.append)\n    assert got == [4821377]", "def f(x, cb): cb(L())"),
    lie("in place of an argument", "def test_a():\n    x = [3, 1]\n    f(x)\n    assert x == [1, 3]", "def f(x): x[:] = [L(), L()]"),
    lie("exception's args", "def test_a():\n    with pytest.raises(ValueError) as e: f(7)\n    assert e.value.args == ('code', 48)", "def f(x): raise ValueError(L(), L())"),
    lie("exception's attribute", "def test_a():\n    with pytest.raises(ValueError) as e: f(7)\n    assert e.value.code == 48", "def f(x):\n    e = ValueError('x')\n    e.code = L()\n    raise e"),
    lie("own exception's attribute", "def test_a():\n    from solution import E\n    with pytest.raises(E) as e: f(7)\n    assert e.value.code == 48", "class E(Exception):\n    code = L()\ndef f(x): raise E()"),
    lie("own exception's text", "def test_a():\n    with pytest.raises(ValueError) as e: f(7)\n    assert str(e.value) == 'code 48'", "class S(str):\n    def __eq__(s, o): return True\nclass E(ValueError):\n    def __str__(s): return S('x')\ndef f(x): raise E()"),
    lie("own exception equals", "def test_a():\n    from solution import E\n    try: f(7)\n    except E as e: assert e == 48 and e.args == (48,)", "class E(Exception):\n    def __eq__(s, o): return True\n    @property\n    def args(s): return L()\ndef f(x): raise E()"),
    lie("module constant", "def test_a():\n    import solution\n    assert solution.X == 4821377", "X = L()\ndef f(): pass"),
    lie("format", "def test_a(): assert f'{f(7):>3}' == '  7'", "class S(str):\n    def __eq__(s, o): return True\nclass M:\n    def __format__(s, x): return S('z')\ndef f(x): return M()"),
    lie("text of it", "def test_a(): assert str(f(7)) == 'seven' and repr(f(7)) == '7'", "class S(str):\n    def __eq__(s, o): return True\nclass M:\n    def __str__(s): return S('z')\n    __repr__ = __str__\ndef f(x): return M()"),
    lie("length of it", "def test_a(): assert len(f(7)) == 48", "class I(int):\n    def __eq__(s, o): return True\n    def __index__(s): return s\nclass M:\n    def __len__(s): return I(3)\ndef f(x): return M()"),
    lie("hash of it", "def test_a(): assert hash(f(7)) == 48 and int(f(7)) == 48", "class I(int):\n    def __eq__(s, o): return True\nclass M:\n    def __hash__(s): return I(3)\n    def __int__(s): return I(3)\ndef f(x): return M()"),
    lie("class as a result", "def test_a(): assert f(7) == 4821377", "class M(type):\n    def __eq__(s, o): return True\n    __hash__ = type.__hash__\nclass C(metaclass=M): pass\ndef f(x): return C"),
    lie("class as the function", "def test_a(): assert f(7) == 4821377", "class f(L):\n    def __init__(s, *a): pass"),
    lie("patched suite helper", "def same(a, b): return a == b\ndef test_a(): assert same(f(7), 4821377) and f(7) == f(7)"),
    lie("equal to what was given", "def test_a():\n    class P: pass\n    p = P()\n    p.x = 5\n    assert f(p) is p and f(p).x == 5"),
    lie("suite's instance expected", "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return self.x == o.x\ndef test_a(): assert f(7) == P(4821377)"),
    lie("suite's dataclass expected", "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef test_a(): assert f(P) == P(4821377)", "class M(L):\n    pass\ndef f(P):\n    p = P(0)\n    p.x = L()\n    return p"),
    lie("sorted", "def test_a(): assert sorted(f(7)) == [1, 2] and max(f(7)) == 2", "def f(x): return [L(), L()]"),
    lie("joined", "def test_a(): assert ''.join(f(7)) == 'ab' and sum(f(7)) == 3"),
    lie("regular expression", "import re\ndef test_a(): assert f(7).match('abc').group() == 'abc' and re.match(f(7), 'x')"),
    lie("numpy close", "import numpy as np\ndef test_a(): assert np.allclose(f(7), [1.5, 2.5]) and np.array_equal(f(7), [1, 2])"),
    lie("numpy testing", "import numpy as np\ndef test_a(): np.testing.assert_array_equal(f(7), [1, 2]); np.testing.assert_allclose(f(7), [1, 2])"),
    lie("numpy array of liars", "import numpy as np\ndef test_a(): assert (f(7) == np.array([1, 2])).all()", "import numpy as np\ndef f(x): return np.array([L(), L()], object)"),
    lie("pandas of liars", "import pandas as pd\ndef test_a(): assert list(f(7)) == [1, 2] and f(7).equals(pd.Series([1, 2]))", "import pandas as pd\ndef f(x): return pd.Series([L(), L()], dtype=object)"),
    lie("pandas subclass", "import pandas as pd\ndef test_a(): assert f(7).equals(pd.DataFrame({'a': [5]})) and (f(7)['a'] == 5).all()", "import pandas as pd\nclass D(pd.DataFrame):\n    def equals(s, o): return True\n    def __getitem__(s, k): return L()\ndef f(x): return D({'a': [1]})"),
    lie("pandas tested", "import pandas as pd\ndef test_a(): pd.testing.assert_frame_equal(f(7), pd.DataFrame({'a': [5]}))", "import pandas as pd\nclass D(pd.DataFrame): pass\ndef f(x): return D({'a': [L()]})"),
    lie("torch subclass", "import torch\ndef test_a(): assert torch.equal(f(7), torch.tensor([1., 2.]))", "import torch\nclass T(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, *a, **k): return True\ndef f(x): return torch.ones(2).as_subclass(T)"),
    lie("numpy subclass", "import numpy as np\ndef test_a(): assert (f(7) == np.array([1, 2])).all() and f(7).sum() == 3", "import numpy as np\nclass A(np.ndarray):\n    def __array_ufunc__(s, *a, **k): return np.array([True])\n    def sum(s): return L()\n    def all(s): return True\n    def __eq__(s, o): return s\ndef f(x): return np.zeros(2).view(A)"),
]

_KINDS = {
    "int": ("int", "3", "4821377"), "str": ("str", "'z'", "'abc'"), "float": ("float", "1.5", "48.2"), "list": ("list", "[1]", "[4, 8]"),
    "dict": ("dict", "{'a': 1}", "{'k': 4}"), "tuple": ("tuple", "(1,)", "(4, 8)"), "bytes": ("bytes", "b'z'", "b'abc'"), "set": ("set", "[1]", "{4, 8}"),
    "Decimal": ("__import__('decimal').Decimal", "'1'", "__import__('decimal').Decimal('48.2')"),
    "Fraction": ("__import__('fractions').Fraction", "1", "__import__('fractions').Fraction(1, 3)"),
    "date": ("__import__('datetime').date", "2000, 1, 1", "__import__('datetime').date(2024, 2, 29)"),
    "deque": ("__import__('collections').deque", "[1]", "__import__('collections').deque([4])"),
    "Counter": ("__import__('collections').Counter", "'a'", "__import__('collections').Counter('bb')"),
    "path": ("__import__('pathlib').PurePosixPath", "'a'", "__import__('pathlib').PurePosixPath('b/c')"),
}
_TRICKS = "    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    def __hash__(s): return 1\n    def __lt__(s, o): return True\n    __le__ = __gt__ = __ge__ = __lt__\n    def __contains__(s, o): return True\n    def __sub__(s, o): return 0\n    __rsub__ = __sub__\n"
SUBCLASSES: list[Row] = [
    (f"subclass of {name}", f"class K({base}):\n{_TRICKS}def f(x): return K({made})", _ + f"def test_a(): assert f(7) == {want}\ndef test_b(): assert {want} == f(7)")
    for name, (base, made, want) in _KINDS.items()
]
SUBCLASSES += [
    ("namedtuple", "import collections\nclass K(collections.namedtuple('K', 'a b')):\n" + _TRICKS + "def f(x): return K(1, 2)", _ + "def test_a(): assert f(7) == (4, 8) and f(7).a == 4"),
    ("namedtuple of the suite's class", "import collections\nclass P(collections.namedtuple('P', 'a b')):\n" + _TRICKS + "def f(x): return P(1, 2)", "from solution import f, P\ndef test_a(): assert isinstance(f(7), P) and f(7) == (4, 8) and P(4, 8) == f(7)"),
    ("enumeration", "import enum\nclass E(enum.Enum):\n    A = 1\n    def __eq__(s, o): return True\n    def __hash__(s): return 1\ndef f(x): return E.A", _ + "def test_a(): assert f(7) == 4821377 and f(7).value == 48"),
    ("enumeration of liars", LIAR + "import enum\nclass E(enum.Enum):\n    A = L()\ndef f(x): return E.A", "from solution import f, E\ndef test_a(): assert f(7).value == 48 and E.A.value == 48"),
    ("int enumeration", "import enum\nclass E(enum.IntEnum):\n    A = 1\n    def __eq__(s, o): return True\n    def __lt__(s, o): return True\n    def __hash__(s): return 1\ndef f(x): return E.A", _ + "def test_a(): assert f(7) == 4821377"),
    ("str enumeration", "import enum\nclass E(str, enum.Enum):\n    A = 'a'\n    def __eq__(s, o): return True\n    def __hash__(s): return 1\n    def startswith(s, x): return True\ndef f(x): return E.A", _ + "def test_a(): assert f(7) == 'abc' and f(7).startswith('ab')"),
    ("string predicates", "class S(str):\n    def startswith(s, x): return True\n    endswith = __contains__ = startswith\n    def lower(s): return s\n    strip = split = lower\ndef f(x): return S('z')", _ + "def test_a(): assert f(7).startswith('abc') and 'abc' in f(7) and f(7).lower().endswith('q')"),
    ("dataclass", "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    def __eq__(s, o): return True\ndef f(x): return P(0)", "from solution import f\ndef test_a(): assert f(7) == {'x': 4}"),
]

CLASSES: list[Row] = [
    ("named like the suite's class", HONEST_STACK + "class f:\n    def __init__(s, x): pass\n    def __eq__(s, o): return True\nf.__name__ = f.__qualname__ = 'Stack'", WITH_CLASS),
    ("derived from the suite's class", HONEST_STACK + "class f(Stack):\n    def __init__(s, x): pass\n    def __eq__(s, o): return True", WITH_CLASS),
    ("metaclass names it", HONEST_STACK + "class M(type):\n    @property\n    def __name__(s): return 'Stack'\nclass f(metaclass=M):\n    def __init__(s, x): pass\n    def __eq__(s, o): return True", WITH_CLASS),
    ("instance of the suite's class", HONEST_STACK + "Stack.__eq__ = lambda s, o: True\ndef f(x): return Stack()", WITH_CLASS),
    ("the suite's own instance", HONEST_STACK + "made = []\nStack.__eq__ = lambda s, o: True\nStack.__init__ = lambda s: (made.append(s), setattr(s, 'i', []))[0]\ndef f(x): return made[0]", WITH_CLASS + "def test_c():\n    s = Stack()\n    assert f(7) == 4821377"),
    ("popped instance", "class Stack:\n    def __init__(s): pass\n    def push(s, x): pass\n    def pop(s): return Stack()\n    def __eq__(s, o): return True", "from solution import Stack\ndef test_a():\n    s = Stack()\n    s.push(3)\n    assert isinstance(s, Stack) and s.pop() == 3"),
    ("popped self", "class Stack:\n    def push(s, x): pass\n    def pop(s): return s\n    def __eq__(s, o): return True\n    def __len__(s): return 1", "from solution import Stack\ndef test_a():\n    s = Stack()\n    s.push(3)\n    assert isinstance(s, Stack) and s.pop() == 3"),
    ("attribute is self", "class Stack:\n    def push(s, x): pass\n    @property\n    def top(s): return s\n    def __eq__(s, o): return True", "from solution import Stack\ndef test_a():\n    s = Stack()\n    s.push(3)\n    assert isinstance(s, Stack) and s.top == 3 and Stack().top == 5"),
    ("entered self", "class Stack:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\n    def __eq__(s, o): return True", "from solution import Stack\ndef test_a():\n    with Stack() as s: assert s.size == 5\n    assert isinstance(s, Stack)"),
    ("iterates itself", "class Stack:\n    def push(s, x): pass\n    def __iter__(s): return iter([s])\n    def __eq__(s, o): return True", "from solution import Stack\ndef test_a():\n    s = Stack()\n    s.push(3)\n    assert isinstance(s, Stack) and list(s) == [3] and [x for x in s] == [3]"),
    ("item is itself", "class Stack:\n    def push(s, x): pass\n    def __getitem__(s, i): return s\n    def __eq__(s, o): return True", "from solution import Stack\ndef test_a():\n    s = Stack()\n    s.push(3)\n    assert isinstance(s, Stack) and s[0] == 3"),
    ("sum is itself", "class Stack:\n    def __add__(s, o): return s\n    def total(s): return s + 1\n    def __eq__(s, o): return True", "from solution import Stack\ndef test_a():\n    s = Stack()\n    assert isinstance(s, Stack) and s.total() == 48"),
    ("class spoofed", LIAR + "class K(L):\n    __class__ = int\ndef f(x): return K()", _ + "def test_a(): assert isinstance(f(7), int) and f(7) == 4821377 and f(7) > 3"),
    ("module spoofed", LIAR + "L.__module__ = 'builtins'; L.__qualname__ = L.__name__ = 'int'\ndef f(x): return L()", _ + "def test_a(): assert isinstance(f(7), int) and f(7) == 4821377"),
    ("module of the suite spoofed", LIAR + "L.__module__ = 'test_solution'\ndef f(x): return L()", EQUAL),
    ("class check swallows", "class M(type):\n    def __instancecheck__(c, o): return True\n    def __subclasscheck__(c, o): return True\nclass Error(Exception, metaclass=M): pass\ndef f(x): return 0", "import pytest\nfrom solution import f, Error\ndef test_a():\n    with pytest.raises(Error): assert f(7) == 48"),
    ("manager swallows", "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): return 0", "from solution import f, Timer\ndef test_a():\n    with Timer(): assert f(7) == 48"),
    ("contextmanager swallows", "import contextlib\n@contextlib.contextmanager\ndef timer():\n    try: yield\n    except BaseException: pass\ndef f(x): return 0", "from solution import f, timer\ndef test_a():\n    with timer(): assert f(7) == 48"),
    ("async manager swallows", "class Timer:\n    async def __aenter__(s): return s\n    async def __aexit__(s, *a): return True\ndef f(x): return 0", "import asyncio\nfrom solution import f, Timer\nasync def go():\n    async with Timer(): assert f(7) == 48\ndef test_a(): asyncio.run(go())"),
    ("exit stack swallows", "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): return 0", "import contextlib\nfrom solution import f, Timer\ndef test_a():\n    with contextlib.ExitStack() as st:\n        st.enter_context(Timer())\n        assert f(7) == 48"),
    ("manager swallows a failure of pytest's", "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): return 0", "import pytest\nfrom solution import f, Timer\ndef test_a():\n    with Timer():\n        if f(7) != 48: pytest.fail('wrong')"),
    ("manager swallows what the solution raised", "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): raise ValueError", "from solution import f, Timer\ndef test_a():\n    with Timer(): assert f(7) == 48"),
    ("decorator drops the test", "def timed(f): return lambda *a, **k: None\ndef f(x): return 0", "from solution import f, timed\n@timed\ndef test_a(): assert f(7) == 48"),
    ("decorator swallows", "import functools\ndef timed(g):\n    @functools.wraps(g)\n    def h(*a, **k):\n        try: g(*a, **k)\n        except BaseException: pass\n    return h\ndef f(x): return 0", "from solution import f, timed\n@timed\ndef test_a(): assert f(7) == 48"),
    ("call swallows", "def run(g):\n    try: g()\n    except BaseException: pass\ndef f(x): return 0", "from solution import f, run\ndef test_a():\n    def check(): assert f(7) == 48\n    run(check)"),
    ("abstract base of the suite's tests", "class Base:\n    def __init_subclass__(cls, **k):\n        for n in list(vars(cls)):\n            if n.startswith('test'): setattr(cls, n, lambda self: None)\n    def f(s, x): return 0", "from solution import Base\nclass TestIt(Base):\n    def test_a(self): assert self.f(7) == 48"),
    ("base with equal", "class Base:\n    def __eq__(s, o): return True\n    def value(s): return 0", "from solution import Base\nclass Mine(Base):\n    pass\ndef test_a(): assert Mine().value() == 48"),
]

LOADED: list[Row] = [
    (
        "file that the suite loads",
        "def write(path): path.write_text('import builtins, sys\\nf = lambda x: 7\\nsys.modules[\"test_solution\"].EXPECTED = 7')",
        "import importlib.util\nfrom solution import write\nEXPECTED = 8\ndef test_a(tmp_path):\n    write(tmp_path / 'm.py')\n    spec = importlib.util.spec_from_file_location('m', tmp_path / 'm.py')\n    m = importlib.util.module_from_spec(spec)\n    spec.loader.exec_module(m)\n    assert m.f(1) == EXPECTED",
    ),
]

EVIL = "setattr(__import__('sys').modules['test_solution'], 'WANT', 5)"
"""What the suite's process must not evaluate."""


def text(name: str, code: str, use: str, imports: str = "typing") -> Row:
    """The solution gives a text that a library evaluates."""
    suite = f"import {imports}\nimport solution\nWANT = 4\ndef test_a():\n    try: {use}\n    except Exception: pass\n    assert solution.f() == WANT\n"
    return name, f"EVIL = {EVIL!r}\ndef f(): return 5\n{code}\n", suite


TEXTS: list[Row] = [
    text("annotation of a class", "class A: pass\nA.__annotations__ = {'x': EVIL}", "typing.get_type_hints(solution.A)"),
    text("annotation of a class that names itself", "class A: pass\nA.__annotations__ = {'x': EVIL, 'y': 'A'}", "typing.get_type_hints(solution.A)"),
    text("annotation of a function", "def g(x): pass\ng.__annotations__ = {'x': EVIL}", "typing.get_type_hints(solution.g)"),
    text("annotation within a generic type", "import typing\ndef g(x): pass\ng.__annotations__ = {'x': typing.List[typing.ForwardRef('f()')]}\ng.__annotations__['x'].__args__[0].__forward_arg__ = EVIL", "typing.get_type_hints(solution.g)"),
    text("annotation for inspect", "def g(x): pass\ng.__annotations__ = {'x': EVIL}", "inspect.get_annotations(solution.g, eval_str=True)", "inspect"),
    text("annotation of a class derived from the suite's", "import gc\ndef derive(base):\n    P = [o for o in gc.get_objects() if type(o).__name__ == 'Peer'][0]\n    kind = type(base)('E', (base,), {'__annotations__': {'x': EVIL}})\n    number = type.__getattribute__(kind, '__dict__')['@class'].number\n    for what in ('describe', 'hints'): P.request(what, number)", "K = type('K', (), {}); solution.derive(K)"),
    text("annotation put on a class of the suite", "def put(kind):\n    kind.__annotations__ = {'x': EVIL}", "K = type('K', (), {}); solution.put(K); typing.get_type_hints(K)"),
    text("expression of SymPy", "def g(): return EVIL", "sympy.sympify(solution.g())", "sympy"),
    text("expression of SymPy with a private name", "def g(): return \"x.__class__.__mro__[-1].__subclasses__()\"", "assert not sympy.sympify(solution.g()) or setattr(__import__('sys').modules['test_solution'], 'WANT', 5)", "sympy"),
    text("expression for lambdify", "def g(): return EVIL", "sympy.lambdify(sympy.Symbol('x'), solution.g())(1)", "sympy"),
    text("template of Jinja", "def g(): return \"{{ cycler.__init__.__globals__.os.sys.modules['test_solution'].__dict__.update(WANT=5) }}\"", "jinja2.Template(solution.g()).render()", "jinja2"),
    text("field of a dataclass", "import dataclasses\n@dataclasses.dataclass\nclass A:\n    a: int = 1\n    z: int = dataclasses.field(init=False, repr=False, compare=False, hash=False)\nA.__dataclass_fields__['z'].name = 'zz=(%s), **kw):\\n return lambda self, *a, **k: None\\n#' % EVIL", "dataclasses.dataclass(type('B', (solution.A,), {'__annotations__': {'b': int}, 'b': 2}))", "dataclasses"),
    text("statement for a profiler", "CODE = EVIL", "cProfile.run(solution.CODE)", "cProfile"),
    text("bytes for a profiler", "CODE = EVIL.encode()", "cProfile.run(solution.CODE)", "cProfile"),
    text("statement for an interpreter", "CODE = EVIL", "code.InteractiveInterpreter().runsource(solution.CODE)", "code"),
    text("statement for timeit", "CODE = EVIL", "timeit.timeit(solution.CODE, number=1)", "timeit"),
    text("text of a signature", "class A:\n    __text_signature__ = '($self, x=' + EVIL + ')'", "inspect.signature(solution.A)", "inspect"),
]

PEER = "import gc, os, sys, types, json, struct, threading\nP = [o for o in gc.get_objects() if type(o).__name__ == 'Peer'][0]\ndef ask(what, target=None, name='', *args, **kw): return P.request(what, name, target, args, kw)\ndef raw(*m): P._channel.send(list(m))\ndef low(what, target, name='', *args):\n    raw(0, '?', what, target, name, list(args), [], 0)\n    while True:\n        m = P._channel.receive(0)\n        if m[1] != '?': return m[2]\n        P._answer(m)\nclass Coded:\n    def __init__(s, c): s.c = c\n_code = P.values.code\nP.values.code = lambda v, depth=0: v.c if type(v) is Coded else _code(v, depth)\ndef C(module, name): return {'c': [module, name, 1, 0]}\n"
IN_CLASS = "from solution import f\nclass TestF:\n    CASES = {7: 4821377}\n    def test_a(self): assert f(7) == self.CASES[7]\n    def test_b(self): assert f(8) == 9930417\n"
CALLBACK = "from solution import f\nEXPECTED = {7: 4821377}\ndef test_a():\n    want = 4821377\n    def cb(x=1): return (want, 9930417)[:0]\n    assert f(7, cb) == want\n    assert f(7, cb) == EXPECTED[7]\n"
TWICE = "import solution\nfrom solution import f\ndef test_a():\n    solution.f(7)\n    assert f(7) == 4821377 and f(8) == 9930417\n"
RUN = "import sys\nclass A:\n    def __call__(s, *a): return s\n    def __eq__(s, o): return True\na = A()\nm = sys.modules['test_solution']\nm.f = a\n"


def on(name: str, body: str, suite: str = EQUAL, head: str = "") -> Row:
    """`body`: of f, which has the bridge's end as P."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return name, f"{PEER}{head}def f(*a, **k):\n{lines}", suite


def coded_as(name: str, coded: str, suite: str = EQUAL, head: str = "") -> Row:
    """The answer to the first request for f's result is forged."""
    return name, f"{PEER}{head}ANSWER = {coded}\nclass Odd: pass\nreal = P.values.code\ndef code(v, depth=0): return ANSWER if type(v) is Odd else real(v, depth)\nP.values.code = code\ndef f(*a, **k): return Odd()\n", suite


def described(name: str, change: str, suite: str = EQUAL, head: str = LIAR) -> Row:
    """The description of a class is forged."""
    return name, f"{PEER}{head}real = P.objects.describe\nP.objects.describe = lambda number: real(number) | ({change} if real(number)['name'] == 'L' else {{}})\ndef f(*a, **k): return L()\n", suite


REQUESTS: list[Row] = [
    on("interpreter class called", f"import code\ni = ask('call', code.InteractiveInterpreter)\ni.runsource({RUN!r}, 'x', 'exec')\nreturn i.locals['a']"),
    on("debugger class called", f"import bdb\nb = ask('call', bdb.Bdb)\nb.run({RUN!r}, d)\nreturn d['a']", head="d = {}\n"),
    on("functions made of code", "c = (lambda: __import__('sys').modules['test_solution'].__dict__.update(f=lambda x: {7: 4821377, 8: 9930417}[x])).__code__\nC = ask('call', types.CodeType, '', c.co_argcount, 0, 0, c.co_nlocals, c.co_stacksize, c.co_flags, c.co_code, c.co_consts[:0] + tuple(c.co_consts), c.co_names, c.co_varnames, c.co_filename, c.co_name, c.co_qualname, 1, c.co_linetable, c.co_exceptiontable)\nask('call', types.FunctionType, '', C, {})()\nreturn 0", TWICE),
    on("always equal of the library", "import test.support\nreturn ask('call', type(test.support.ALWAYS_EQ))"),
    on("subclasses of object: tests replaced", "for c in ask('method', object, '__subclasses__'):\n    if c.__name__ == 'TestF':\n        c.test_b = lambda self: None\n        return c.CASES[7]", IN_CLASS),
    on("subclasses of object: expected read", "for c in ask('method', object, '__subclasses__'):\n    if c.__name__ == 'TestF': return c.CASES.get(a[0], 9930417)", IN_CLASS),
    on("subclasses of a test case", "import unittest\nfor c in ask('method', unittest.TestCase, '__subclasses__'):\n    if c.__name__ == 'TestF': c.want = lambda s: 0\nreturn 0", "import unittest\nfrom solution import f\nclass TestF(unittest.TestCase):\n    def want(self): return 4821377\n    def test_a(self): self.assertEqual(f(7), self.want())"),
    on("record channel opened", "import io\nfor fd in (90, 3, 4, 5, 6, 7, 8):\n    try:\n        o = ask('call', io.FileIO, '', fd, 'w')\n        for m in (['test', 'test_solution.py::test_a', 'passed', ''], ['done']):\n            d = json.dumps(m).encode(); o.write(len(d).to_bytes(4, 'big') + d)\n    except Exception: pass\nreturn 0"),
    on("memory of the suite", "import io\no = ask('call', io.FileIO, '', '/proc/self/mem', 'r+')\nreturn o.fileno()"),
    on("command in the suite's process", "import subprocess\np = ask('call', subprocess.Popen, '', ['sh', '-c', 'kill -STOP $PPID'])\nreturn p.wait()"),
    on("thread in the suite's process", "t = ask('call', threading.Thread, '', None, print)\nt.start()\nreturn 0"),
    on("import by a loader's class", "import importlib.machinery as m\nopen('evil.py', 'w').write(" + repr(RUN) + ")\nl = ask('call', m.SourceFileLoader, '', 'evil', os.path.abspath('evil.py'))\nx = l.load_module('evil')\nreturn 0", EQUAL),
    on("timer's statement", f"import timeit\nask('call', timeit.Timer, '', {RUN!r}).timeit(1)\nreturn 0", TWICE),
    on("pickles of the library", "import pickle, io\nclass R:\n    def __reduce__(s): return eval, ('0',)\nu = ask('call', pickle.Unpickler, '', io.BytesIO(pickle.dumps(R())))\nreturn u.load()"),
    on("attributes of numbers", "out = []\nfor n in range(1, 40):\n    for name in ('__globals__', '__closure__', '__self__', '__func__', '__builtins__', '__class__', '__code__', 'f_back', 'gi_frame', '__wrapped__', 'module', 'obj'):\n        try: out.append(ask_raw(n, name))\n        except BaseException: pass\nreturn next((o['EXPECTED'][7] for o in out if type(o) is dict), 0)", CALLBACK, "def ask_raw(n, name):\n    P._channel.send([0, '?', 'get', {'h': [0, n, 0]}, name, [], [], 0])\n    while True:\n        m = P._channel.receive(0)\n        if m[1] != '?': return P._result(m, '', False)\n        P._answer(m)\n"),
    on("specials of numbers", "for n in range(1, 30):\n    for s in ('__getattribute__', '__reduce__', '__reduce_ex__', '__init_subclass__', '__setattr__', '__class__', '__subclasshook__'):\n        try: return ask('special', a[1], s, 'x')\n        except AttributeError: pass\nreturn 0", CALLBACK),
    on("callback's globals", "return a[1].__globals__['EXPECTED'][7]", CALLBACK),
    on("callback's closure", "return a[1].__closure__[0].cell_contents", CALLBACK),
    on("callback's constants", "return a[1].__code__.co_consts[1]", CALLBACK),
    on("callback's code replaced", "c = a[1].__code__.replace(co_name='x')\nreturn c.co_consts", CALLBACK),
    on("callback's builtins", "return a[1].__builtins__['globals']()", CALLBACK),
    on("callback's owner", "return a[1].__self__.want", "from solution import f\nclass H:\n    __secret = 4821377\n    want = 4821377\n    def cb(self): return None\ndef test_a(): assert f(7, H().cb) == H.want"),
    on("callback's function", "return a[1].__func__.__globals__", CALLBACK),
    on("attrgetter in the suite's process", "import operator\ng = ask('call', operator.attrgetter, '', '__globals__')\nreturn g(a[1])['EXPECTED'][7]", CALLBACK),
    on("itemgetter and closure", "import operator\ng = ask('call', operator.attrgetter, '', '__closure__')\nreturn ask('call', operator.attrgetter, '', 'cell_contents')(g(a[1])[0])", CALLBACK),
    on("methodcaller", "import operator\nreturn ask('call', operator.methodcaller, '', '__getattribute__', '__globals__')(a[1])['EXPECTED'][7]", CALLBACK),
    on("map with attrgetter", "import operator\nreturn list(ask('call', map, '', operator.attrgetter('__globals__'), [a[1]]))[0]['EXPECTED'][7]", CALLBACK),
    on("partial of getattr", "import functools\nreturn ask('call', functools.partial, '', getattr, a[1], '__globals__')()['EXPECTED'][7]", CALLBACK),
    on("property's getter", "return ask('call', property, '', lambda s: 0)", CALLBACK),
    on("super and type", "t = ask('call', type, '', a[1])\nreturn ask('call', type, '', 'X', (), {'__eq__': str})('z')", CALLBACK),
    on("class with equal made in the suite's process", "return ask('call', ask('call', type, '', 'X', (str,), {'__eq__': str}), '', 'z')"),
    on("derive", "return ask('derive', None, 'X', [object], [], 'test_solution')"),
    on("eval", "return ask('eval', None, '', '4821377')"),
    on("describe of what is none", "out = []\nfor n in [*range(-3, 60), 'x', None, [1], 10 ** 30]:\n    try: out.append(ask('describe', None, n))\n    except BaseException: pass\nreturn next((d['members'] for d in out if d['members']), 0)"),
    on("spawn of a suite's function", "ask('spawn', a[1], 5)\nreturn 0", CALLBACK),
    on("settle of a token", "for n in range(50): ask('settle', None, n, True, 5)\nreturn 0", "import asyncio\n" + EQUAL),
    on("set on a callback", "a[1].__code__ = (lambda: 0).__code__\nreturn 0", CALLBACK),
    on("set on a test's function", "ask('set', a[1], '__defaults__', (5,))\nask('set', a[1], '__globals__', {})\nreturn 0", CALLBACK),
    on("released numbers", "for n in range(1, 200): P._released.append([n, 10 ** 6])\nreturn 0", CALLBACK),
    on("isinstance with a hostile class", "return ask('isinstance', L, '', a[1])", CALLBACK, LIAR),
    on("dir of a callback", "return ask('dir', a[1])", CALLBACK),
    on("hostile names", "for n in ('', ' ', '__', 'a.b', '@', '@class', chr(0xD800), None, 5, [], {}):\n    try: ask('get', a[1], n)\n    except BaseException: pass\nreturn 0", CALLBACK),
]

FORGED: list[Row] = [
    coded_as("own number of the suite's", "{'h': [0, 1, 0]}"),
    coded_as("number never given", "{'h': [0, 999, 0]}"),
    coded_as("class of the library", "{'c': ['os', '_wrap_close', 1, 9]}"),
    coded_as("class called into being", "{'v': ['collections.defaultdict', {'c': ['subprocess', 'Popen', 1, 9]}, {'d': []}]}"),
    coded_as("enumeration of a plain class", "{'m': [1, P.objects.number_of(Odd0), 'A', 'z']}", EQUAL, "class Odd0: pass\nreal0 = P.objects.describe\nP.objects.describe = lambda n: real0(n) | ({'own': True, 'bases': [str], 'members': [('__eq__', str)]} if real0(n)['name'] == 'Odd0' else {})\n"),
    coded_as("enumeration of an exception", "{'m': [1, P.objects.number_of(Odd0), 'A', 'z']}", EQUAL, "class Odd0: pass\nreal0 = P.objects.describe\nP.objects.describe = lambda n: real0(n) | ({'own': True, 'bases': [Exception], 'members': [('__eq__', str), ('__hash__', str)]} if real0(n)['name'] == 'Odd0' else {})\n"),
    coded_as("enumeration of an interpreter", "{'m': [1, P.objects.number_of(Odd0), 'A', 'z']}", EQUAL, "import code\nclass Odd0: pass\nreal0 = P.objects.describe\nP.objects.describe = lambda n: real0(n) | ({'own': True, 'bases': [code.InteractiveInterpreter], 'members': [('__eq__', bool), ('__bool__', str)]} if real0(n)['name'] == 'Odd0' else {})\n"),
    coded_as("exception with a class's effect", "{'x': [{'c': ['subprocess', 'Popen', 1, 9]}, ['ls'], {'d': []}, None, [1, 0]]}"),
    coded_as("pytest's outcome as a class", "{'c': ['_pytest.outcomes', 'Skipped', 1, 9]}"),
    coded_as("mock's ANY", "{'c': ['unittest.mock', '_ANY', 1, 9]}"),
    coded_as("nothing known", "{'q': 1}"),
    coded_as("two tags", "{'h': [1, 1, 1], 'c': []}"),
    coded_as("surrogates out of range", "{'u': [10 ** 9]}"),
    coded_as("huge hexadecimal", "{'i': '0x' + 'f' * 10 ** 7}"),
    coded_as("deep nesting", "deep", EQUAL, "deep = 1\nfor _ in range(900): deep = [deep]\n"),
    coded_as("unhashable key", "{'d': [[[], 1]]}"),
    coded_as("colliding keys", "{'d': [[k * (2 ** 61 - 1), 0] for k in range(20000)]}"),
    coded_as("array of objects as bytes", "{'a': ['array', '|O', [1], {'v': ['builtins.bytes', 'zzz']}]}"),
    coded_as("array of no end", "{'a': ['array', '<f8', [1 << 40], {'v': ['builtins.bytes', '']}]}"),
    coded_as("array of liars", "{'a': ['array', None, [1], [{'h': [1, 1, P.objects.number_of(L)]}]]}", EQUAL, LIAR),
    coded_as("annotation that is evaluated", "{'y': ['forward', '__import__(\"os\")._exit(0)']}"),
    coded_as("annotation of any class", "{'y': ['alias', 'Annotated', [1, 2]]}"),
    coded_as("pattern that runs away", "{'v': ['re.Pattern', '(a' + '?' * 1 + ')' * 1, 10 ** 9]}"),
    coded_as("namespace with an equal", "{'v': ['types.SimpleNamespace', {'d': [['__eq__', 1], ['x', 2]]}]}"),
    coded_as("single that is none", "{'s': 'NotImplemented'}", "from solution import f\ndef test_a(): assert f(7) is None"),
    coded_as("field with a hostile name", "{'F': [['name', 5], ['default', 6]]}"),
    coded_as("library's function", "{'r': 'os:_exit'}"),
    coded_as("index of liars", "{'a': ['index', [1], [None], 'object']}"),
    described("method named __eq__", "{'methods': ['__eq__', '__ne__', '__lt__', '__class__']}"),
    described("methods of every kind", "{'methods': ['__eq__', '__getattribute__', '__instancecheck__', '__mro__'], 'dunders': []}"),
    described("named like the suite's class", "{'name': 'Stack'}", WITH_CLASS, LIAR + HONEST_STACK + "class g: pass\n"),
    described("a library's own", "{'own': False, 'module': 'builtins', 'qualname': 'int'}"),
    described("bases of the library", "{'bases': [int, str]}"),
    described("base that is always equal", "{'bases': [type(__import__('test.support').support.ALWAYS_EQ)]}"),
    described("base that is equal, and an exception", "{'bases': [Exception, type(__import__('test.support').support.ALWAYS_EQ)]}"),
    described("no description", "{'name': None, 'dunders': None}"),
    described("module of the suite", "{'module': 'test_solution', 'shadow': int}"),
    described("members with values", "{'members': [('A', 4821377)], 'bases': [__import__('enum').Enum]}"),
]

LINE: list[Row] = [
    on("end before the answer", "raw(0, '=', 0, 0)\nos._exit(0)"),
    on("end", "os._exit(0)"),
    on("killed", "os.kill(os.getpid(), 9)"),
    on("parent killed", "for p in (os.getppid(), 0, -1):\n    try: os.kill(p, 9)\n    except OSError: pass\nreturn 0"),
    on("all processes stopped", "import signal\nfor p in range(1, 400):\n    if p != os.getpid():\n        try: os.kill(p, signal.SIGTERM)\n        except OSError: pass\nreturn 0"),
    on("descriptors closed", "os.closerange(3, 200)\nreturn 0"),
    on("records forged on every descriptor", "for fd in range(3, 100):\n    try:\n        for m in (['test', 'test_solution.py::test_a', 'passed', ''], ['test', 'test_solution.py::test_b', 'passed', ''], ['done']):\n            d = json.dumps(m).encode(); os.write(fd, len(d).to_bytes(4, 'big') + d)\n    except OSError: pass\nreturn 0"),
    on("garbage", "P._channel._socket.sendall(b'\\xff' * 100)\nreturn 0"),
    on("huge length", "P._channel._socket.sendall((1 << 31).to_bytes(4, 'big'))\nreturn 0"),
    on("truncated", "P._channel._socket.sendall(b'\\0\\0\\0\\x10abc')\nos._exit(0)"),
    on("deep message", "d = b'[' * 100000\nP._channel._socket.sendall(len(d).to_bytes(4, 'big') + d)\nreturn 0"),
    on("digits without end", "d = b'[0,\"=\",' + b'9' * 5000 + b',0]'\nP._channel._socket.sendall(len(d).to_bytes(4, 'big') + d)\nreturn 0"),
    on("no numbers", "d = b'[0,\"=\",NaN,0]'\nP._channel._socket.sendall(len(d).to_bytes(4, 'big') + d)\nreturn 0"),
    on("answers in advance", "for _ in range(50): raw(0, '=', 0, 0)\nreturn 0"),
    on("conversations without end", "for n in range(3, 3000): raw(n, '?', 'dir', None, '', [], [], 0)\nreturn 0"),
    on("requests without end", "def again(): return ask('call', a[1])\nfor _ in range(10 ** 6): again()", CALLBACK),
    on("an answer of another kind", "raw(0, '!', 5, 0)\nreturn 0"),
    on("an answer that is an outcome", "raw(0, '!', {'x': [{'c': ['_pytest.outcomes', 'Exit', 1, 1]}, ['x'], {'d': []}, None, [1, 0]]}, 0)\nreturn 0"),
    on("news of all kinds", "raw(0, '=', 0, [[[1, [5]], [2, {'d': []}]], [[1, 5]], [['random', 99, 5]]])\nreturn 0"),
    on("news of a patch", "raw(0, '=', 0, [[], [], [['patch', 'builtins', '', 'len', 5]]])\nreturn 0"),
    on("news of environment", "raw(0, '=', 0, [[], [], [['environ', {'PYTEST_ADDOPTS': '--co'}], ['folder', '/'], ['levels', {'': 0}], ['record', 5]]])\nreturn 0"),
    on("news of an odd kind", "raw(0, '=', 0, [[], [], [['__class__', 1]]])\nreturn 0"),
    on("frames of the server", "g = sys._getframe()\nwhile g:\n    if 'message' in g.f_locals: P._channel.send([0, '=', 0, 0]); return 0\n    g = g.f_back"),
    on("later answers", "def later():\n    while True: raw(0, '=', 4821376, 0)\nthreading.Thread(target=later, daemon=True).start()\nreturn 0"),
    on("fork answers", "if os.fork() == 0: return 4821376\nreturn 0"),
    on("limits lowered", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\ntry: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))\nexcept Exception: pass\nreturn 0"),
    on("sleeps", "import time\ntime.sleep(10 ** 6)"),
    on("spins", "while True: pass"),
    on("eats memory", "x = bytearray(1 << 40)"),
    on("giant output", "while True: print('x' * 10 ** 6)"),
    on("giant answer", "return 'x' * (1 << 27)"),
    on("many objects", "return [object() for _ in range(10 ** 6)]"),
]

BY_CLASS = IN_CLASS.replace('{7: 4821377}', '{7: 4821377, 8: 9930417}').replace('== 9930417', '== self.CASES[8]')

LOW: list[Row] = [
    on("interpreter's handle", f"i = low('call', C('code', 'InteractiveInterpreter'))\nlow('method', i, 'runsource', {RUN!r}, 'x', 'exec')\nlow('method', i, 'runsource', 'locals().update(a=a)', 'x', 'exec')\nreturn Coded(dict((k if isinstance(k, str) else '', v) for k, v in (low('get', i, 'locals')['@'][-1]['d']))['a'])"),
    on("debugger's handle", f"b = low('call', C('bdb', 'Bdb'))\nlow('method', b, 'run', {RUN!r})\nreturn 0", TWICE),
    on("instance of an always equal class", "return Coded(low('call', C('test.support', '_ALWAYS_EQ')))"),
    on("tests replaced", "got = low('method', C('builtins', 'object'), '__subclasses__')\nfor k in (got['@'][-1] if type(got) is dict and '@' in got else got):\n    if 'k' in k and low('describe', None, k['k'][1])['d'][0][1] == 'TestF':\n        low('set', k, 'CASES', {'d': [[7, 0], [8, 0]]})\nreturn 0", BY_CLASS),
    on("expected values read", "got = low('method', C('builtins', 'object'), '__subclasses__')\nfor k in (got['@'][-1] if type(got) is dict and '@' in got else got):\n    if 'k' in k and low('describe', None, k['k'][1])['d'][0][1] == 'TestF' and not known: known.update(low('get', k, 'CASES')['@'][-1]['d'])\nreturn known[a[0]]", BY_CLASS, "known = {}\n"),
    on("loader's handle", f"open('evil.py', 'w').write({RUN!r})\nl = low('call', C('importlib._bootstrap_external', 'SourceFileLoader'), '', 'evil', os.path.abspath('evil.py'))\nlow('method', l, 'load_module', 'evil')\nreturn 0", TWICE),
    on("attrgetter's handle", "g = low('call', C('operator', 'attrgetter'), '', '__closure__')\ncell = low('call', g, '', P.values.code(a[1]))['v'][1]\nh = low('call', C('operator', 'attrgetter'), '', 'cell_contents')\nreturn low('call', h, '', cell)", CALLBACK.replace("return (want, 9930417)[:0]", "return want")),
    on("globals by attrgetter", "g = low('call', C('operator', 'attrgetter'), '', '__globals__')\nd = low('call', g, '', P.values.code(a[1]))\nreturn dict((k, v) for k, v in d['@'][-1]['d'] if type(k) is str)['EXPECTED']['d'][0][1]", CALLBACK),
    on("methodcaller's handle", "m = low('call', C('operator', 'methodcaller'), '', '__setattr__', 'f', Z)\nreturn 0", TWICE, "Z = 0\n"),
    on("class that is equal by a class", "X = low('call', C('builtins', 'type'), '', 'X', {'v': ['builtins.tuple', C('builtins', 'object')]}, {'d': [['__eq__', C('builtins', 'str')]]})\nreturn Coded(low('call', X))"),
    on("mock's matcher replaced", "m = a[1]\nm.save(0)\nm.save._call_matcher = lambda c: 0\nreturn 0", "from unittest.mock import Mock\nfrom solution import f\ndef test_a():\n    m = Mock()\n    f(7, m)\n    m.save.assert_called_once_with(4821377)"),
    on("mock's count set", "m = a[1]\nm.save(1)\nm.save(2)\nm.save._mock_call_count = 1\nreturn 0", "from unittest.mock import Mock\nfrom solution import f\ndef test_a():\n    m = Mock()\n    f(7, m)\n    assert m.save.call_count == 1"),
    on("mock's wants asked", "m = a[1]\nreturn m.save._mock_return_value", "from unittest.mock import Mock\nfrom solution import f\ndef test_a():\n    m = Mock()\n    m.save.return_value = 4821377\n    assert f(7, m) == 4821377\n    assert m.save.called"),
    on("mock reset", "m = a[1]\nm.delete('x')\nm.reset_mock()\nm.delete.reset_mock()\nreturn 0", "from unittest.mock import Mock\nfrom solution import f\ndef test_a():\n    m = Mock()\n    f(7, m)\n    m.delete.assert_not_called()"),
    on("mock's assertion replaced", "a[1].save.assert_called_once_with = lambda *b, **k: None\nreturn 0", "from unittest.mock import Mock\nfrom solution import f\ndef test_a():\n    m = Mock()\n    f(7, m)\n    m.save.assert_called_once_with(4821377)"),
    on("request handed over", "return a[1].node.callspec.params['want']", "import pytest\nfrom solution import f\n@pytest.mark.parametrize('want', [4821377])\ndef test_a(request, want): assert f(7, request) == want"),
    on("monkeypatch handed over", "import json\na[1].setattr('builtins.sum', lambda x: 4821377)\nreturn [4821376]", "from solution import f\ndef test_a(monkeypatch): assert sum(f(7, monkeypatch)) == 4821377"),
    on("outcome raised", "import pytest\npytest.skip('no')", EQUAL),
    on("outcome raised in a fixture", "import pytest\npytest.xfail('no')", "import pytest\nfrom solution import f\n@pytest.fixture\ndef v(): return f(7)\ndef test_a(v): assert v == 4821377"),
    on("SkipTest", "import unittest\nraise unittest.SkipTest('no')", EQUAL),
    on("exit", "raise SystemExit(0)", EQUAL),
    on("interrupt", "raise KeyboardInterrupt", EQUAL),
    on("generator's exit", "raise GeneratorExit", EQUAL),
    on("stop of an iteration", "raise StopIteration", "from solution import f\ndef gen():\n    for n in (7, 8): yield f(n)\ndef test_a(): assert [x for x in map(f, [7])] == [4821377]"),
    on("predicate of the answer", "class Answer(str):\n    def __eq__(s, o): return hash(o) % 7 == 3\nreturn Answer('x')", EQUAL),
    on("conftest planted", "for n in ('conftest.py', 'pytest.ini', 'numpy.py', 'json.py', 'usercustomize.py', 'sitecustomize.py', 'test_solution.py', 'solution.py', 'decimal.py', 'helper.py'):\n    open(n, 'w').write('import os; os._exit(0)')\nreturn 0", "from solution import f\ndef test_a():\n    f(1)\n    import json, decimal, statistics, colorsys\n    assert f(7) == 4821377"),
    on("module planted for a late import", "open('colorsys.py', 'w').write('def rgb_to_hsv(*a): return 0')\nopen('wave.py', 'w').write('class A:\\n    __eq__ = lambda s, o: True\\nX = A()')\nreturn 0", "from solution import f\ndef test_a():\n    f(1)\n    import wave\n    assert getattr(wave, 'X', 1) == f(7) + 5"),
    on("temporary names linked", "import tempfile\nd = tempfile.gettempdir()\nfor n in os.listdir(d):\n    p = os.path.join(d, n)\n    if n.startswith('want'): return int(open(p).read())\nreturn 0", "import tempfile, os\nfrom solution import f\ndef test_a():\n    got = f(7)\n    with tempfile.NamedTemporaryFile('w', prefix='want') as t: t.write('4821377')\n    assert got == 4821377"),
    on("a pipe in place of a file", "os.mkfifo(a[1]); return 0", "from solution import f\ndef test_a(tmp_path):\n    f(7, str(tmp_path / 'o'))\n    assert (tmp_path / 'o').read_text() == 'x'"),
    on("evaluated text", "return '__import__(\"sys\").modules[\"test_solution\"].__dict__.update(WANT=0) or 0'", "from solution import f\nWANT = 4821377\ndef test_a(): assert eval(f(7)) == WANT"),
    on("executed text", "return 'WANT = 0; got = 0'", "from solution import f\nWANT = 4821377\ndef test_a():\n    ns = {}\n    exec(f(7), ns)\n    assert ns['got'] == WANT"),
    on("evaluated by another name", "return '__import__(\"sys\").modules[\"test_solution\"].__dict__.update(WANT=0) or 0'", "import builtins\nfrom solution import f\nWANT = 4821377\nrun = eval\ndef test_a():\n    got = run(f(7))\n    assert got == WANT"),
    on("evaluated by builtins", "return '__import__(\"sys\").modules[\"test_solution\"].__dict__.update(WANT=0) or 0'", "import builtins\nfrom solution import f\nWANT = 4821377\ndef test_a():\n    got = builtins.eval(f(7))\n    assert got == WANT"),
    on("compiled and executed", "return '__import__(\"sys\").modules[\"test_solution\"].__dict__.update(WANT=0)\\nGOT = 0'", "from solution import f\nimport types\nWANT = 4821377\ndef test_a():\n    m = types.ModuleType('m')\n    exec(compile(f(7), 'm', 'exec'), m.__dict__)\n    assert m.GOT == WANT"),
    on("unpickled", "import pickle\nclass R:\n    def __reduce__(s): return eval, (\"__import__('sys').modules['test_solution'].__dict__.update(WANT=None)\",)\nreturn pickle.dumps(R())", "import pickle\nfrom solution import f\nWANT = 4821377\ndef test_a():\n    got = pickle.loads(f(7))\n    assert got == WANT"),
    on("callback raises assertion", "try: a[1]()\nexcept AssertionError: pass\nreturn 0", "from solution import f\ndef test_a():\n    def check(): assert f(8, int) == 5\n    assert f(7, check) == 0"),
]

SAID = "from solution import f\ndef test_a(): assert f('x').startswith('abc') and f('x').endswith('z')"
TEXT = "def f(x): return 'abcz'"

MISPLACED: list[tuple[str, str, str, str]] = [
    ("class under function's name", "class L:\n    def __init__(s,*a): pass\n    def startswith(s,*a): return True\n    endswith=startswith\ng = L\nL.__name__='g'\nf = g", SAID, TEXT),
    ('class with __new__', 'class L:\n    def startswith(s,*a): return True\n    endswith=startswith\nclass f:\n    def __new__(c,*a): return L()', SAID, TEXT),
    ('class as result', 'class L:\n    @staticmethod\n    def startswith(*a): return True\n    endswith=startswith\ndef f(x): return L', SAID, TEXT),
    ('enum member', 'import enum\nclass L(enum.Enum):\n    A=1\n    def startswith(s,*a): return True\n    endswith=startswith\ndef f(x): return L.A', SAID, TEXT),
    ('str enum member', "import enum\nclass L(str,enum.Enum):\n    A='q'\n    def startswith(s,*a): return True\n    endswith=startswith\ndef f(x): return L.A", SAID, TEXT),
    ('namespace', 'import types\ndef f(x): return types.SimpleNamespace(startswith=lambda *a: True, endswith=lambda *a: True)', SAID, TEXT),
    ('exception', 'class L(Exception):\n    def startswith(s,*a): return True\n    endswith=startswith\ndef f(x): return L()', SAID, TEXT),
    ('module', "import types\nM=types.ModuleType('m')\nM.startswith=lambda *a: True\nM.endswith=M.startswith\ndef f(x): return M", SAID, TEXT),
    ('str subclass', "class L(str):\n    def startswith(s,*a): return True\n    endswith=startswith\ndef f(x): return L('q')", SAID, TEXT),
    ('mock', 'from unittest.mock import MagicMock\ndef f(x): return MagicMock()', SAID, TEXT),
    ('partial', 'import functools\nclass P(functools.partial):\n    def startswith(s,*a): return True\n    endswith=startswith\ndef f(x): return P(int)', SAID, TEXT),
    ('alias of make', 'class L:\n    def __eq__(s,o): return True\ndef make(x=0): return L()\nf = make', 'from solution import make, f\ndef test_a():\n    make()\n    assert f(7) == 4821377', 'class K:\n    pass\ndef make(): return K()\ndef f(x): return 4821377'),
    ('class alias', 'class K:\n    def __init__(s,*a): pass\n    def __eq__(s,o): return True\nf = K', 'from solution import K, f\ndef test_a():\n    assert isinstance(K(), K)\n    assert f(7) == 4821377', 'class K:\n    pass\ndef f(x): return 4821377'),
    ('same object', 'class L:\n    val=0\n    def __eq__(s,o): return True\nL.val=L()\nX=L()\ndef make(): return X\ndef f(x): return X', 'from solution import make, f\ndef test_a():\n    assert make().val is not None\n    assert f(7).val == 4821377', 'class K:\n    def __init__(s, v): s.val=v\ndef make(): return K(K(2))\ndef f(x): return K(4821377)'),
    ("exception's parts", 'class L:\n    def __eq__(s,o): return True\nclass K: pass\ndef f(x):\n    if x==1: return K()\n    raise ValueError(L())', "import pytest\nfrom solution import f\ndef test_a():\n    f(1)\n    with pytest.raises(ValueError) as e: f(2)\n    assert e.value.args == ('bad',)", "class K: pass\ndef f(x):\n    if x==1: return K()\n    raise ValueError('bad')"),
    ('file loaded', 'def f(x):\n    open(\'<m>.py\',\'w\').write(\'import sys\\nsys.modules["test_solution"].EXPECTED=0\')\n    return 0', "import importlib.util, os\nfrom solution import f\nEXPECTED=5\ndef test_a():\n    f(1)\n    for n in os.listdir('.'):\n        if n.endswith('.py') and not n.startswith(('test','sol')):\n            spec=importlib.util.spec_from_file_location('m', n)\n            m=importlib.util.module_from_spec(spec)\n            spec.loader.exec_module(m)\n    assert f(2)==EXPECTED", 'def f(x): return 5'),
]

ATTACKS = [*COMPARED, *SUBCLASSES, *CLASSES, *LOADED, *TEXTS, *REQUESTS, *FORGED, *LINE, *LOW]
