"""Wrong solutions that put an object where another kind of value is expected: name, solution, suite, reference.
None may pass, judged with its reference or without."""

# ruff: noqa: E501  programs in one line each

Row = tuple[str, str, str, str]

SAID = "from solution import f\ndef test_a(): assert f('x').startswith('abc') and f('x').endswith('z')"
TEXT = "def f(x): return 'abcz'"

ATTACKS: list[Row] = [
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
