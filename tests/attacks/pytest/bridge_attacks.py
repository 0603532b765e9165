"""Wrong solutions that lie over the bridge with ordinary objects: name, solution, suite. None may pass."""

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

ATTACKS: list[Row] = [*COMPARED, *SUBCLASSES, *CLASSES, *LOADED]
