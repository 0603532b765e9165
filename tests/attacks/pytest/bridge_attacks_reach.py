"""Wrong solutions that reach into the suite's process: by requests in the raw, mocks, outcomes, files and evaluated text."""

# ruff: noqa: E501  programs in one line each

from bridge_attacks import EQUAL, Row
from bridge_attacks_peer import CALLBACK, IN_CLASS, RUN, TWICE, on

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

ATTACKS: list[Row] = LOW
