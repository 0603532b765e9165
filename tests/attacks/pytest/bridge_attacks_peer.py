"""Wrong solutions that attack the bridge itself, the objects that the suite hands over, or state that both processes
share."""

# ruff: noqa: E501  programs in one line each

from bridge_attacks import EQUAL, HONEST_STACK, LIAR, WITH_CLASS, Row

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

ATTACKS: list[Row] = [*REQUESTS, *FORGED, *LINE]
