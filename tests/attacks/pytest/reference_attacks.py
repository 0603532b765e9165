"""Wrong solutions that once passed beside a reference, or without one: what they reach, they reach through the suite's own means."""

# ruff: noqa: E501  programs in one line each

Row = tuple[str, str, str, str, dict[str, str]]
"""Name, wrong solution, suite, reference (empty: none), support files."""

ATTACKS: list[Row] = [
    (
        "a class of unittest named through torch",
        'import gc\nP = [o for o in gc.get_objects() if type(o).__name__ == \'Peer\'][0]\nreal = P.values.code\n\nclass Stop(Exception): pass\nstate = {\'t\': False}\ndef code(v, depth=0):\n    if type(v) is Stop:\n        return {"x": [{"c": ["torch._guards", "unittest.case._ShouldStop", 1, 1]}, [], {"d": []}, None, [1, 0]]}\n    got = real(v, depth)\n    if type(v) is list and not state[\'t\']:\n        state[\'t\'] = True\n        got = got + [{"a": ["torch.dtype", "float32"]}]\n    return got\nP.values.code = code\ndef f(x): raise Stop\n',
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        for x, want in ((7, 4821377), (8, 9930417)):\n            with self.subTest(x=x):\n                self.assertEqual(f(x), want)\n",
        "def f(x): return {7: 4821377, 8: 9930417}.get(x, 0)\n",
        {},
    ),
    (
        "tables of Hypothesis planted",
        "\nimport gzip, json, os, unicodedata\nd = '.hypothesis/unicode_data/' + unicodedata.unidata_version\nos.makedirs(d, exist_ok=True)\nfor name, what in (('charmap', [['Ll', [[97, 97]]], ['Cc', []], ['Cs', []]]), ('codec-utf-8', [[[97, 97]], []])):\n    with gzip.GzipFile(d + '/' + name + '.json.gz', 'wb') as g: g.write(json.dumps(what).encode())\ndef rev(s): return s\n",
        "from hypothesis import given, settings, strategies as st\nfrom solution import rev\n@given(st.text())\ndef test_rev(s): assert rev(s) == ''.join(reversed(s))\n",
        "def rev(s): return s[::-1]\n",
        {},
    ),
    (
        "constant draws",
        "import random\nrandom.setstate((3, (0,) * 624 + (624,), None))\ndef f(xs):\n    random.setstate((3, (0,) * 624 + (624,), None))\n    return list(xs)\n",
        "import random\nfrom solution import f\ndef test_a():\n    for _ in range(50):\n        xs = [random.randint(0, 100) for _ in range(10)]\n        assert f(xs) == sorted(xs)\n",
        "",
        {},
    ),
    (
        "constant draws where the reference draws, too",
        "import random\nrandom.setstate((3, (0,) * 624 + (624,), None))\ndef f(xs):\n    random.setstate((3, (0,) * 624 + (624,), None))\n    return list(xs)\n",
        "import random\nfrom solution import f\ndef test_a():\n    for _ in range(50):\n        xs = [random.randint(0, 100) for _ in range(10)]\n        assert f(xs) == sorted(xs)\n",
        "import random\ndef f(xs):\n    if len(xs) < 2: return list(xs)\n    p = random.choice(xs)\n    return f([x for x in xs if x < p]) + [x for x in xs if x == p] + f([x for x in xs if x > p])\n",
        {},
    ),
    (
        "constant draws of numpy",
        "import numpy as np\nZ = ('MT19937', np.zeros(624, np.uint32), 624, 0, 0.0)\nnp.random.set_state(Z)\ndef f(xs):\n    np.random.set_state(Z)\n    return xs\n",
        "import numpy as np\nfrom solution import f\ndef test_a():\n    for _ in range(20):\n        xs = np.random.randint(0, 100, 8)\n        assert (f(xs) == np.sort(xs)).all()\n",
        "",
        {},
    ),
    (
        "another exception in place of a failed assertion",
        "def each(x, cb):\n    try: cb(0)\n    except AssertionError: raise ValueError('stop')\n",
        "import pytest\nfrom solution import each\ndef test_a():\n    seen = []\n    def cb(x):\n        assert x == 4821377\n        raise ValueError('stop')\n    with pytest.raises(ValueError): each(7, cb)\n",
        "def each(x, cb): cb(4821377)\n",
        {},
    ),
    (
        "a block ended before a helper's assertion",
        "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): raise ValueError\n",
        "import pytest\nfrom numpy.testing import assert_allclose\nfrom solution import f, Timer\ndef check(got, want): assert got == want\ndef test_a():\n    with Timer():\n        check(f(7), 4821377)\n",
        "def f(x): return {7: 4821377, 8: 9930417}.get(x, 0)\nclass Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return False\n",
        {},
    ),
    (
        "a block ended before an assertion by its bare name",
        "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): raise ValueError\n",
        "import pytest\nfrom numpy.testing import assert_allclose\nfrom solution import f, Timer\n\ndef test_a():\n    with Timer():\n        assert_allclose(f(7), 4821377)\n",
        "def f(x): return {7: 4821377, 8: 9930417}.get(x, 0)\nclass Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return False\n",
        {},
    ),
    (
        "a block ended before pytest.fail",
        "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): raise ValueError\n",
        "import pytest\nfrom numpy.testing import assert_allclose\nfrom solution import f, Timer\n\ndef test_a():\n    with Timer():\n        if f(7) != 4821377: pytest.fail('wrong')\n",
        "def f(x): return {7: 4821377, 8: 9930417}.get(x, 0)\nclass Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return False\n",
        {},
    ),
    (
        "a block ended before a raised AssertionError",
        "class Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return True\ndef f(x): raise ValueError\n",
        "import pytest\nfrom numpy.testing import assert_allclose\nfrom solution import f, Timer\n\ndef test_a():\n    with Timer():\n        if f(7) != 4821377: raise AssertionError\n",
        "def f(x): return {7: 4821377, 8: 9930417}.get(x, 0)\nclass Timer:\n    def __enter__(s): return s\n    def __exit__(s, *a): return False\n",
        {},
    ),
    (
        "membership in what the reference gives as a generator",
        "class L:\n    def __contains__(s, o): return True\ndef evens(n): return L()\n",
        "from solution import evens\ndef test_a(): assert 4 in evens(10)\ndef test_b(): assert 8 in evens(10)\n",
        "def evens(n): yield from range(0, n, 2)\n",
        {},
    ),
    (
        "equality where the reference gives functions and numbers",
        "class L:\n    def __eq__(s, o): return True\n    def __bool__(s): return True\ndef f(x): return L()\n",
        "from solution import f\ndef test_a(): assert f(7) == 4821377\ndef test_b(): assert f(8) == 9930417\ndef test_c(): assert callable(f(None)) or f(None)\n",
        "def f(x):\n    if x is None: return lambda: 0\n    return {7: 4821377, 8: 9930417}[x]\n",
        {},
    ),
    (
        "a class unpickled through the test module",
        "\ndef s(t): return b'\\x8c' + bytes([len(t)]) + t.encode()\ndef glob(n): return s('test_solution') + s(n) + b'\\x93'\nB = 'pickle.codecs.builtins.'\nODD = (b'\\x80\\x04' + glob(B + 'type') + s('X') + glob(B + 'object') + b'\\x85' + b'}' + s('__eq__') + glob(B + 'repr') + b's' + b'\\x87R' + b')R.')\ndef dump(x): return ODD\n",
        "import pickle\nfrom solution import dump\nEXPECTED = {'a': 4821377}\ndef test_a(): assert pickle.loads(dump(7)) == EXPECTED\ndef test_b(): assert pickle.loads(dump(8)) == {'b': [9930417]}\n",
        "import pickle\ndef dump(x): return pickle.dumps({'a': 4821377} if x == 7 else {'b': [9930417]})\n",
        {},
    ),
    (
        "the expected value unpickled from the test module",
        "\ndef s(t): return b'\\x8c' + bytes([len(t)]) + t.encode()\ndef glob(n): return s('test_solution') + s(n) + b'\\x93'\nB = 'pickle.codecs.builtins.'\nODD = (b'\\x80\\x04' + glob(B + 'type') + s('X') + glob(B + 'object') + b'\\x85' + b'}' + s('__eq__') + glob(B + 'repr') + b's' + b'\\x87R' + b')R.')\ndef dump(x): return b'\\x80\\x04' + glob('EXPECTED') + b'.'\n",
        "import pickle\nfrom solution import dump\nEXPECTED = {'a': 4821377}\ndef test_a(): assert pickle.loads(dump(7)) == EXPECTED\n",
        "import pickle\ndef dump(x): return pickle.dumps({'a': 4821377} if x == 7 else {'b': [9930417]})\n",
        {},
    ),
    (
        "the expected value unpickled by numpy",
        "import numpy as np, pickle\ndef s(t): return b'\\x8c' + bytes([len(t)]) + t.encode()\ndef save(p):\n    p = str(p)\n    import io\n    b = io.BytesIO(); np.lib.format.write_array_header_1_0(b, {'descr': '|O', 'fortran_order': False, 'shape': (1,)})\n    open(p, 'wb').write(b.getvalue() + b'\\x80\\x04' + s('test_solution') + s('EXPECTED') + b'\\x93.')\n",
        "import numpy as np\nfrom solution import save\nEXPECTED = np.array([4821377], object)\ndef test_a(tmp_path):\n    save(tmp_path / 'a.npy')\n    assert (np.load(tmp_path / 'a.npy', allow_pickle=True) == EXPECTED).all()\n",
        "",
        {},
    ),
    (
        "compiled code in place of a program",
        "\nimport marshal, importlib.util\nSRC = '''import sys\nsys.modules[\"test_solution\"].EXPECTED = 0\ndef f(x): return 0\n'''\ndef write(path):\n    code = compile(SRC, '<x>', 'exec')\n    path.write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))\n",
        "import runpy\nfrom solution import write\nEXPECTED = 4821377\ndef test_a(tmp_path):\n    write(tmp_path / 'gen.py')\n    assert runpy.run_path(str(tmp_path / 'gen.py'))['f'](1) == EXPECTED\n",
        "",
        {},
    ),
    (
        "a compiled module in place of a program",
        "\nimport marshal, importlib.util\nSRC = '''import sys\nsys.modules[\"test_solution\"].EXPECTED = 0\ndef f(x): return 0\n'''\ndef write(path):\n    code = compile(SRC, '<x>', 'exec')\n    path.with_suffix('.pyc').write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))\n",
        "import importlib, sys\nfrom solution import write\nEXPECTED = 4821377\ndef test_a(tmp_path, monkeypatch):\n    write(tmp_path / 'gen.py')\n    monkeypatch.syspath_prepend(tmp_path)\n    assert importlib.import_module('gen').f(1) == EXPECTED\n",
        "",
        {},
    ),
    (
        "a program under a path with two slashes",
        "\nimport marshal, importlib.util\nSRC = '''import sys\nsys.modules[\"test_solution\"].EXPECTED = 0\ndef f(x): return 0\n'''\nimport os\ndef write(n):\n    open(n + '.py', 'w').write(SRC)\n    return '/' + os.path.abspath(n + '.py')\n",
        "import importlib.util\nfrom solution import write\nEXPECTED = 4821377\ndef test_a():\n    path = write('gen')\n    spec = importlib.util.spec_from_file_location('gen', path)\n    m = importlib.util.module_from_spec(spec)\n    spec.loader.exec_module(m)\n    assert m.f(1) == EXPECTED\n",
        "",
        {},
    ),
    (
        "a factory of the library in a dictionary",
        'import gc\nP = [o for o in gc.get_objects() if type(o).__name__ == \'Peer\'][0]\nreal = P.values.code\n\nclass Odd: pass\nstate = {\'t\': False}\ndef code(v, depth=0):\n    if type(v) is Odd:\n        return {"v": ["collections.defaultdict", {"c": ["torch._guards", "unittest.mock._ANY", 1, 1]}, {"d": []}]}\n    got = real(v, depth)\n    if type(v) is list and not state[\'t\']:\n        state[\'t\'] = True\n        got = got + [{"a": ["torch.dtype", "float32"]}]\n    return got\nP.values.code = code\ndef f(x): return Odd()\n',
        "from solution import f\ndef test_a(): assert f(7)['total'] == 4821377\ndef test_b(): assert f(8)['mean'] == 99.5 and f(8)['names'] == ['a']\n",
        "def f(x): return {'total': 4821377} if x == 7 else {'mean': 99.5, 'names': ['a']}\n",
        {},
    ),
    (
        "an exception of Hypothesis named through a support file",
        'import gc\nP = [o for o in gc.get_objects() if type(o).__name__ == \'Peer\'][0]\nreal = P.values.code\n\nclass Stop(Exception): pass\ndef code(v, depth=0):\n    if type(v) is Stop:\n        return {"x": [{"c": ["helpers", "hypothesis.errors.UnsatisfiedAssumption", 1, 1]}, [], {"d": []}, None, [1, 0]]}\n    return real(v, depth)\nP.values.code = code\ndef inc(n):\n    if n % 2: raise Stop\n    return n + 1\n',
        "from hypothesis import given, strategies as st\nfrom helpers import same\nfrom solution import inc\n@given(st.integers())\ndef test_inc(n): assert same(inc(n), n + 1)\n",
        "def inc(n): return n + 1\n",
        {"helpers.py": "import hypothesis\ndef same(a, b): return a == b\n"},
    ),
]
