"""Honest candidates that a naive sandbox breaks: each doubles a number, in a way that real solutions use."""

from python_arena import double

LANGUAGE = {
    "plain": double("return 2 * x"),
    "lambda": "double = lambda x: x + x",
    "nested_function": double("def add(a): return a + x\nreturn add(x)"),
    "closure_with_nonlocal": double(
        "total = 0\ndef add():\n    nonlocal total\n    total += x\nadd(); add()\nreturn total"
    ),
    "global_counter": double("global calls\ncalls += 1\nreturn 2 * x if calls == 1 else 0", "calls = 0"),
    "state_set_at_import": double("return TABLE[x]", "TABLE = {n: 2 * n for n in range(1000)}"),
    "list_filled_across_calls": double("SEEN.append(x); return sum(SEEN) * 2", "SEEN = []"),
    "mutable_default": double("return put(x)", "def put(x, seen=[]):\n    seen += [x, x]\n    return sum(seen)"),
    "class_attribute_counts": double("C.made += x; return 2 * C.made", "class C:\n    made = 0"),
    "generator_inside": double("return sum(twice(x))", "def twice(n):\n    yield n\n    yield from [n]"),
    "generator_with_send": double(
        "g = echo(); next(g); return g.send(x)", "def echo():\n    got = yield\n    yield got * 2"
    ),
    "decorator": double(
        "return ident(x) * 2",
        "import functools\ndef plain(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g\n"
        "@plain\ndef ident(x): return x",
    ),
    "class_with_eq": double(
        "return V(x).n * 2 if V(x) == V(x) else 0",
        "class V:\n    def __init__(s, n): s.n = n\n    def __eq__(s, o): return s.n == o.n",
    ),
    "operators": double(
        "return (V(x) + V(x)).n",
        "class V:\n    def __init__(s, n): s.n = n\n    def __add__(s, o): return V(s.n + o.n)\n    __radd__ = __add__",
    ),
    "property_and_slots": double(
        "return V(x).twice",
        "class V:\n    __slots__ = ('n',)\n    def __init__(s, n): s.n = n\n    twice = property(lambda s: 2 * s.n)",
    ),
    "descriptor": double(
        "return V().d(x)", "class D:\n    def __get__(s, o, t): return lambda n: 2 * n\nclass V: d = D()"
    ),
    "metaclass": double(
        "return V().twice(x)",
        "class M(type):\n"
        "    def __new__(m, n, b, d): return super().__new__(m, n, b, {**d, 'twice': lambda s, n: 2 * n})\n"
        "class V(metaclass=M): pass",
    ),
    "inheritance_and_super": double(
        "return B().f(x)",
        "class A:\n    def f(s, n): return n\nclass B(A):\n    def f(s, n): return 2 * super().f(n)",
    ),
    "pattern_matching": double("match (x, [x]):\n    case (int(a), [b]): return a + b\n    case _: return None"),
    "walrus_and_comprehensions": double("return sum(y for _ in range(2) if (y := x))"),
    "star_arguments": double("return add(*[x], **{'b': x})", "def add(a, /, *, b): return a + b"),
    "exceptions_as_control_flow": double(
        "try: raise KeyError(x)\nexcept KeyError as e: return 2 * e.args[0]\nfinally: pass"
    ),
    "exception_group": double(
        "try: raise ExceptionGroup('g', [ValueError(x)])\nexcept* ValueError as g: n = g.exceptions[0].args[0]\n"
        "return 2 * n"
    ),
    "own_exception_swallowed": double("try: exit()\nexcept SystemExit: return 2 * x"),
    "context_manager": double(
        "with M() as n: return 2 * x + n", "class M:\n    __enter__ = lambda s: 0\n    __exit__ = lambda s, *a: None"
    ),
    "future_annotations": "from __future__ import annotations\ndef double(x: Nowhere) -> Nor[There]: return 2 * x",
    "main_block": double("return 2 * x", "if __name__ == 'nobody': 1 / 0"),
    "dunder_file": double("return 2 * x if __file__.endswith('.py') else 0"),
    "docstring_and_doctest_of_it": double('"""\n>>> double(2)\n4\n"""\nreturn 2 * x')
    + "import doctest\ndoctest.testmod()\n",
    "non_ascii_names": "def d\u00f6ppel(\u0445): return 2 * \u0445\ndouble = d\u00f6ppel\n# \u7ffb\u500d \U0001f600",
    "windows_line_ends": "def double(x):\r\n    y = x\r\n    return x + y\r\n",
    "old_mac_line_ends": "def double(x):\r    return 2 * x\r",
    "byte_order_mark": "\ufeffdef double(x): return 2 * x",
    "coding_line": "# -*- coding: latin-1 -*-\ndef double(x): return 2 * x if len('\u00e9') == 1 else 0",
    "tabs": "def double(x):\n\tif x:\n\t\treturn 2 * x\n",
    "form_feed": "\f\ndef double(x):\n    return 2 * x\n\f\n",
    "shadowed_builtins": "def sum(a): return 2 * a\ndef double(x): return sum(x)",
    "builtins_changed": "import builtins\nbuiltins.len = None\nprint = None\ndef double(x): return 2 * x",
    "module_patched": "import math, json\nmath.floor = json.dumps = None\ndef double(x): return 2 * x",
    "eval_and_exec": double("exec('y = x * 2', globals(), n := {'x': x}); return eval('y', n)"),
    "compile_and_run": double("return eval(compile('2 * n', 'made', 'eval'), {'n': x})"),
    "import_of_itself": double("me = __import__(__name__)\nreturn 2 * x if me.double is double else 0"),
    "module_by_its_name": double("return 2 * x if sys.modules[__name__].double is double else 0", "import sys"),
    "type_built_at_run_time": double("return type('T', (), {'f': lambda s, n: 2 * n})().f(x)"),
    "int_subclass_returned": double("return I(2 * x)", "class I(int): pass"),
    "weak_reference": double("v = V(); return 2 * x if weakref.ref(v)() is v else 0", "import weakref\nclass V: pass"),
    "finalizer": double("v = V(); del v; return 2 * x", "class V:\n    def __del__(self): print('gone')"),
    "big_integers": double("return (2 * x << 5000) >> 5000"),
    "factorial_printed": double("return 2 * x if len(str(math.factorial(1000))) == 2568 else 0", "import math"),
    "complex_numbers": double("return int(((x + 1j) * 2).real)"),
    "slices_and_unpacking": double("a, *_, b = [x, 0, 0, x][::-1]; return a + b"),
    "format_specifications": double("return int(f'{2 * x:>08_d}'.replace('_', '')) if f'{x!r:^5}' else 0"),
    "quit_builtin_exists": double("return 2 * x if callable(quit) and callable(help) else 0"),
    "bytes_and_arrays": double("return sum(memoryview(bytearray([x, x])))"),
}
DEPTH = {
    "recursion_900": double("return f(900) + 2 * x", "def f(n): return n and f(n - 1)"),
    "recursion_980": double("return f(980) + 2 * x", "def f(n): return n and f(n - 1)"),
    "recursion_5000": double(
        "return f(5000) + 2 * x", "import sys\nsys.setrecursionlimit(10 ** 5)\ndef f(n): return n and f(n - 1)"
    ),
    "recursion_50000": double(
        "return f(50000) + 2 * x", "import sys\nsys.setrecursionlimit(10 ** 6)\ndef f(n): return n and f(n - 1)"
    ),
    "memoised_recursion": double(
        "return 2 * x if fib(300) else 0",
        "import functools\n@functools.cache\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)",
    ),
    "memoised_recursion_4000_deep": double(
        "return 2 * x if f(4000) else 0",
        "import functools, sys\nsys.setrecursionlimit(20000)\n@functools.lru_cache(None)\n"
        "def f(n): return n and f(n - 1) + 1",
    ),
    "recursion_in_a_thread_with_its_own_stack": double(
        "r = []\nt = threading.Thread(target=lambda: r.append(f(20000)))\nt.start(); t.join()\nreturn 2 * x + r[0]",
        "import sys, threading\nsys.setrecursionlimit(10 ** 6)\nthreading.stack_size(1 << 26)\n"
        "def f(n): return n and f(n - 1)",
    ),
    "recursion_error_caught": double("try: forever()\nexcept RecursionError: return 2 * x", "def forever(): forever()"),
    "memory_error_caught": double("try: bytearray(1 << 40)\nexcept MemoryError: return 2 * x"),
    "much_memory": double("return len(bytes(80 << 20)) and 2 * x"),
    "many_objects": double("return 2 * x if len([[n] for n in range(200000)]) else 0"),
    "a_busy_tenth_of_a_second": double(
        "end = time.process_time() + 0.1\nwhile time.process_time() < end: pass\nreturn 2 * x", "import time"
    ),
    "a_short_sleep": double("time.sleep(0.02); return 2 * x", "import time"),
    "sieve_at_import": double(
        "return 2 * x if S[97] else 0", "S = [all(n % d for d in range(2, n)) for n in range(300)]"
    ),
    "noise_below_the_cap": double("for n in range(3000): print(n)\nreturn 2 * x"),
    "noise_on_standard_error": double("print('thinking', file=sys.stderr); return 2 * x", "import sys"),
    "noise_while_loading": double("return 2 * x", "print('hello \u00e9')"),
    "tests_printed_below": double("return 2 * x") + "print(double(2), double(3))\nassert double(2) == 4\n",
}
CONCURRENCY = {
    "thread": double(
        "r = []\nt = threading.Thread(target=lambda: r.append(2 * x))\nt.start(); t.join(); return r[0]",
        "import threading",
    ),
    "many_threads": double(
        "t = [threading.Thread(target=print, args=(n,)) for n in range(10)]\nfor a in t: a.start()\n"
        "for a in t: a.join()\nreturn 2 * x",
        "import threading",
    ),
    "fifteen_threads_at_once": double(
        "t = [threading.Thread(target=time.sleep, args=(0.05,)) for n in range(15)]\nfor a in t: a.start()\n"
        "for a in t: a.join()\nreturn 2 * x",
        "import threading, time",
    ),
    "thread_left_alone": double(
        "threading.Thread(target=time.sleep, args=(0.01,), daemon=True).start(); return 2 * x", "import threading, time"
    ),
    "thread_pool": double(
        "with ThreadPoolExecutor(3) as pool: return sum(pool.map(int, [x, x]))",
        "from concurrent.futures import ThreadPoolExecutor",
    ),
    "thread_pool_left_open": double(
        "return POOL.submit(lambda: 2 * x).result()",
        "from concurrent.futures import ThreadPoolExecutor\nPOOL = ThreadPoolExecutor(2)",
    ),
    "queue_between_threads": double(
        "q = queue.Queue(); threading.Thread(target=q.put, args=(2 * x,)).start(); return q.get()",
        "import queue, threading",
    ),
    "locks_and_events": double(
        "e = threading.Event(); e.set(); e.wait()\nwith threading.RLock(): return 2 * x", "import threading"
    ),
    "timer": double("t = threading.Timer(0.01, print); t.start(); t.join(); return 2 * x", "import threading"),
    "asyncio_run": double("return asyncio.run(f(x))", "import asyncio\nasync def f(n): return 2 * n"),
    "asyncio_gather": double(
        "return sum(asyncio.run(main(x)))",
        "import asyncio\nasync def f(n):\n    await asyncio.sleep(0.001)\n    return n\n"
        "async def main(n): return await asyncio.gather(f(n), f(n))",
    ),
    "asyncio_threads": double(
        "return asyncio.run(main(x))",
        "import asyncio\nasync def main(n): return await asyncio.to_thread(lambda: 2 * n)",
    ),
    "asyncio_queue": double(
        "return asyncio.run(main(x))",
        "import asyncio\nasync def main(n):\n    q = asyncio.Queue()\n    await q.put(2 * n)\n    return await q.get()",
    ),
    "context_variables": double("V.set(x); return 2 * V.get()", "import contextvars\nV = contextvars.ContextVar('v')"),
    "alarm": double(
        "signal.signal(signal.SIGALRM, lambda *a: None); signal.setitimer(0, 0.01); time.sleep(0.02); return 2 * x",
        "import signal, time",
    ),
    "pair_of_sockets": double(
        "a, b = socket.socketpair(); a.send(bytes([2 * x])); return b.recv(1)[0]", "import socket"
    ),
    "pipe": double("r, w = os.pipe(); os.write(w, bytes([2 * x])); return os.read(r, 1)[0]", "import os"),
    "selectors": double(
        "s = selectors.DefaultSelector(); r, w = os.pipe(); s.register(r, 1); os.write(w, b'x')\n"
        "return 2 * x if s.select(1) else 0",
        "import os, selectors",
    ),
}
TEXT = {
    "re": double("return int(re.sub(r'^(\\d+)$', lambda m: str(2 * int(m[1])), str(x)))", "import re"),
    "string_template": double("return int(string.Template('$n').substitute(n=2 * x))", "import string"),
    "textwrap": double("return 2 * x if textwrap.fill('a ' * 99, 20).count('\\n') else 0", "import textwrap"),
    "unicodedata": double(
        "return 2 * x if unicodedata.normalize('NFC', 'e\\u0301') == '\\u00e9' else 0", "import unicodedata"
    ),
    "difflib": double("return 2 * x if difflib.get_close_matches('appel', ['apple']) else 0", "import difflib"),
    "json": double("return json.loads(json.dumps({'a': [x, None]}))['a'][0] * 2", "import json"),
    "csv": double("return 2 * int(next(csv.reader(io.StringIO(f'{x},\"a b\"')))[0])", "import csv, io"),
    "ast_literal_eval": double("return ast.literal_eval(f'[{x}, {x}]')[0] * 2", "import ast"),
    "ast_of_its_own_source": double(
        "return 2 * x if ast.parse(inspect.getsource(double)).body else 0", "import ast, inspect"
    ),
    "tokenize": double(
        "return 2 * x if list(tokenize.generate_tokens(io.StringIO('a = 1').readline)) else 0", "import io, tokenize"
    ),
    "html_and_xml": double(
        "return 2 * int(ElementTree.fromstring(f'<n>{x}</n>').text)", "from xml.etree import ElementTree\nimport html"
    ),
    "pprint": double("return 2 * x if pprint.pformat({'b': 1, 'a': 2}) else 0", "import pprint"),
    "string_io": double("s = io.StringIO(); print(2 * x, file=s); return int(s.getvalue())", "import io"),
    "redirected_output": double(
        "s = io.StringIO()\nwith contextlib.redirect_stdout(s): print(2 * x)\nreturn int(s.getvalue())",
        "import contextlib, io",
    ),
    "locale_and_gettext": double("return 2 * x if locale.localeconv()['decimal_point'] == '.' else 0", "import locale"),
    "shlex_and_fnmatch": double(
        "return 2 * x if shlex.split('a \"b c\"')[1] == 'b c' and fnmatch.fnmatch('a.py', '*.py') else 0",
        "import shlex, fnmatch",
    ),
    "traceback_text": double(
        "try: 1 / 0\nexcept ZeroDivisionError: text = traceback.format_exc()\nreturn 2 * x if '1 / 0' in text else 0",
        "import traceback",
    ),
    "logging": double("logging.warning('here'); return 2 * x", "import logging\nlogging.basicConfig(level=10)"),
    "argparse": double(
        "p = argparse.ArgumentParser(); p.add_argument('--n', type=int); return 2 * p.parse_args(['--n', str(x)]).n",
        "import argparse",
    ),
    "url_parts": double(
        "return 2 * int(parse_qs(urlsplit(f'http://a/?n={x}').query)['n'][0])",
        "from urllib.parse import urlsplit, parse_qs",
    ),
    "calendar": double("return 2 * x if calendar.monthrange(2024, 2)[1] == 29 else 0", "import calendar"),
}
NUMBERS = {
    "decimal": double(
        "getcontext().prec = 50; return int(Decimal(x) * 2) if len(str(Decimal(1) / 7)) > 40 else 0",
        "from decimal import Decimal, getcontext",
    ),
    "fractions": double("return int(Fraction(x, 3) * 6)", "from fractions import Fraction"),
    "statistics": double("return 2 * int(statistics.mean([x, x]))", "import statistics"),
    "math": double("return math.isqrt(x * x) + math.gcd(x, x)", "import math"),
    "cmath": double("return round(abs(cmath.rect(2 * x, 1)))", "import cmath"),
    "random_with_a_seed": double(
        "random.seed(5); a = random.random(); random.seed(5); return 2 * x if a == random.random() else 0",
        "import random",
    ),
    "random_shuffle": double("a = [x, x, 0]; random.shuffle(a); return sum(a)", "import random"),
    "secrets": double("return 2 * x if secrets.randbelow(9) < 9 and secrets.token_hex() else 0", "import secrets"),
    "hashlib": double(
        "return 2 * x if hashlib.sha256(b'a').hexdigest().startswith('ca978112') and hashlib.md5(b'') else 0",
        "import hashlib",
    ),
    "hmac_and_base64": double(
        "return 2 * x if base64.b64encode(hmac.digest(b'k', b'm', 'sha1')) else 0", "import base64, hmac"
    ),
    "zlib_and_struct": double(
        "return 2 * struct.unpack('<i', zlib.decompress(zlib.compress(struct.pack('<i', x))))[0]", "import struct, zlib"
    ),
    "datetime": double(
        "return (datetime(2024, 1, 1) + timedelta(days=2 * x) - datetime(2024, 1, 1)).days",
        "from datetime import datetime, timedelta",
    ),
    "datetime_now": double("return 2 * x if datetime.datetime.now().year > 2000 else 0", "import datetime"),
    "time_zones": double(
        "return 2 * x if datetime.now(timezone.utc).tzinfo else 0", "from datetime import datetime, timezone"
    ),
    "clocks": double("return 2 * x if time.perf_counter() and time.strftime('%Y') else 0", "import time"),
    "uuid": double("return 2 * x if len(str(uuid.uuid4())) == 36 else 0", "import uuid"),
    "array": double("return sum(array.array('i', [x, x]))", "import array"),
    "numbers_tower": double("return 2 * x if isinstance(x, numbers.Integral) else 0", "import numbers"),
    "digits_beyond_the_limit": double(
        "sys.set_int_max_str_digits(0); return 2 * x if len(str(10 ** 9999)) == 10000 else 0", "import sys"
    ),
    "ctypes_types": double("return ctypes.c_int32(2 * x).value", "import ctypes"),
}
STRUCTURES = {
    "bisect": double("return bisect.bisect_left(range(100), 2 * x)", "import bisect"),
    "heapq": double("h = [9 * x, 2 * x]; heapq.heapify(h); return heapq.heappop(h)", "import heapq"),
    "counter": double("return Counter([x] * 2)[x] * x", "from collections import Counter"),
    "counter_merged": double("return sum((Counter(a=x) + Counter(a=x)).values())", "from collections import Counter"),
    "default_dictionary": double(
        "d = defaultdict(int); d[0] += 2 * x; return d[0]", "from collections import defaultdict"
    ),
    "deque": double("d = deque([0, x], maxlen=2); d.append(x); return sum(d)", "from collections import deque"),
    "ordered_dictionary": double(
        "d = OrderedDict(a=x, b=x); d.move_to_end('a'); return sum(d.values())", "from collections import OrderedDict"
    ),
    "named_tuple": double("return sum(P(x, x))", "from collections import namedtuple\nP = namedtuple('P', 'a b')"),
    "typed_named_tuple": double(
        "return sum(P(x))", "from typing import NamedTuple\nclass P(NamedTuple):\n    a: int\n    b: int = 0"
    ).replace("sum(P(x))", "2 * sum(P(x))"),
    "itertools": double("return sum(itertools.islice(itertools.repeat(x), 2))", "import itertools"),
    "permutations": double(
        "return sum(max(permutations([0, x, x]), key=sum)[:3])", "from itertools import permutations"
    ),
    "functools_reduce": double("return functools.reduce(operator.add, [x, x])", "import functools, operator"),
    "single_dispatch": double(
        "return f(x)",
        "import functools\n@functools.singledispatch\ndef f(n): return 0\n@f.register\ndef _(n: int): return 2 * n",
    ),
    "cached_property": double(
        "return V(x).t",
        "import functools\nclass V:\n    def __init__(s, n): s.n = n\n    @functools.cached_property\n"
        "    def t(s): return 2 * s.n",
    ),
    "total_ordering": double(
        "return 2 * x if V() >= V() else 0",
        "import functools\n@functools.total_ordering\nclass V:\n    __eq__ = lambda s, o: True\n"
        "    __lt__ = lambda s, o: False",
    ),
    "data_class": double("return P(x).v * 2", "from dataclasses import dataclass\n@dataclass\nclass P:\n    v: int"),
    "data_class_frozen_and_ordered": double(
        "return max(P(x), P(0)).v * 2",
        "from dataclasses import dataclass, field\n@dataclass(frozen=True, order=True, slots=True)\nclass P:\n"
        "    v: int\n    w: list = field(default_factory=list, compare=False)",
    ),
    "data_class_with_future_annotations": "from __future__ import annotations\n"
    "from dataclasses import dataclass, asdict\n"
    "from typing import ClassVar\n@dataclass\nclass P:\n    v: int\n    k: ClassVar[int] = 2\n"
    "def double(x: int) -> int: return asdict(P(x))['v'] * P.k\n",
    "enum": double(
        "return E.A.value * 2 if E(x) is E.A or E.B else 0",
        "from enum import Enum, auto\nclass E(Enum):\n    A = 2\n    B = 3",
    ).replace("E.A.value * 2", "E(x).value * 2"),
    "int_enum_returned": double("return E(2 * x)", "from enum import IntEnum\nclass E(IntEnum):\n    A = 4\n    B = 6"),
    "abstract_class": double(
        "return B().f(x)",
        "from abc import ABC, abstractmethod\nclass A(ABC):\n    @abstractmethod\n    def f(s, n): ...\nclass B(A):\n"
        "    def f(s, n): return 2 * n",
    ),
    "protocol_and_generics": double(
        "return Box(x).get() * 2",
        "from typing import Generic, Protocol, TypeVar\nT = TypeVar('T')\nclass Has(Protocol):\n"
        "    def get(self): ...\n"
        "class Box(Generic[T]):\n    def __init__(s, v: T): s.v = v\n    def get(s) -> T: return s.v",
    ),
    "type_hints_read": double(
        "return 2 * x if typing.get_type_hints(N) == {'next': typing.Optional[N]} else 0",
        "import typing\nclass N:\n    next: 'typing.Optional[N]'",
    ),
    "typed_dictionary": double(
        "return D(n=x)['n'] * 2", "from typing import TypedDict\nclass D(TypedDict):\n    n: int"
    ),
    "pickle_of_its_own_class": double(
        "return pickle.loads(pickle.dumps(V(x))).n * 2", "import pickle\nclass V:\n    def __init__(s, n): s.n = n"
    ),
    "pickle_of_its_own_function": double(
        "return 2 * x if pickle.loads(pickle.dumps(double)) is double else 0", "import pickle"
    ),
    "deep_copy": double(
        "a = [[x]]; b = copy.deepcopy(a); b[0][0] *= 2; return b[0][0] if a == [[x]] else 0", "import copy"
    ),
    "deep_copy_of_its_own_class": double(
        "return copy.deepcopy(V(x)).n * 2", "import copy\nclass V:\n    def __init__(s, n): s.n = n"
    ),
    "operator_getters": double("return operator.itemgetter('n')({'n': 2 * x})", "import operator"),
    "context_library": double(
        "with ExitStack() as s: return s.enter_context(give(2 * x))",
        "from contextlib import ExitStack, contextmanager\n@contextmanager\ndef give(n): yield n",
    ),
    "signature": double("return 2 * x if list(inspect.signature(double).parameters) == ['x'] else 0", "import inspect"),
    "source_of_itself": double("return 2 * x if 'getsource' in inspect.getsource(double) else 0", "import inspect"),
    "mock_of_a_builtin": double(
        "with mock.patch('builtins.print') as p: print(x)\nreturn 2 * x if p.called else 0", "from unittest import mock"
    ),
    "unit_test_of_its_own": double("return 2 * x")
    + "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(double(2), 4)\n"
    "assert unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(T)).wasSuccessful()\n",
    "timed_by_its_name": double(
        "return 2 * x if timeit.timeit('double', 'from __main__ import double', number=1) else 0", "import timeit"
    ),
    "graph": double(
        "return 2 * x if list(TopologicalSorter({1: {0}}).static_order()) == [0, 1] else 0",
        "from graphlib import TopologicalSorter",
    ),
    "data_base_in_memory": double(
        "return sqlite3.connect(':memory:').execute('select 2 * ?', (x,)).fetchone()[0]", "import sqlite3"
    ),
    "warnings_turned_to_errors": double(
        "with warnings.catch_warnings():\n    warnings.simplefilter('error')\n    try: warnings.warn('x')\n"
        "    except UserWarning: return 2 * x",
        "import warnings",
    ),
    "simple_namespace": double("return SimpleNamespace(n=2 * x).n", "from types import SimpleNamespace"),
}
FILES = {
    "file_in_the_current_folder": double(
        "open('notes', 'w').write(str(2 * x))\nwith open('notes') as f: return int(f.read())"
    ),
    "the_same_file_never_there_before": double("with open('once', 'x') as f: f.write('a')\nreturn 2 * x"),
    "temporary_file": double(
        "with tempfile.NamedTemporaryFile('w+') as f: f.write(str(2 * x)); f.seek(0); return int(f.read())",
        "import tempfile",
    ),
    "temporary_folder": double(
        "with tempfile.TemporaryDirectory() as d:\n    p = pathlib.Path(d, 'a'); p.write_text(str(2 * x))\n"
        "    return int(p.read_text())",
        "import pathlib, tempfile",
    ),
    "temporary_folder_named": double(
        "return 2 * x if os.access(tempfile.gettempdir(), os.W_OK) else 0", "import os, tempfile"
    ),
    "folders": double(
        "os.makedirs('a/b'); os.chdir('a'); return 2 * x if os.listdir('.') == ['b'] else 0", "import os"
    ),
    "glob_and_shutil": double(
        "open('a.txt', 'w').close(); shutil.copy('a.txt', 'b.txt'); return len(glob.glob('*.txt')) * x",
        "import glob, shutil",
    ),
    "zip_archive_in_memory": double(
        "b = io.BytesIO()\nwith zipfile.ZipFile(b, 'w') as z: z.writestr('n', str(2 * x))\n"
        "return int(zipfile.ZipFile(b).read('n'))",
        "import io, zipfile",
    ),
    "gzip": double("return 2 * int(gzip.decompress(gzip.compress(str(x).encode())))", "import gzip"),
    "module_of_its_own": double(
        "sys.path.insert(0, ''); open('helper.py', 'w').write('f = lambda n: 2 * n'); importlib.invalidate_caches()\n"
        "import helper\nreturn helper.f(x)",
        "import importlib, sys",
    ),
    "environment_set": double(
        "before = os.environ.get('N'); os.environ['N'] = str(2 * x); return int(os.environ['N']) if before is None "
        "else 0",
        "import os",
    ),
    "path_of_the_home": double(
        "return 2 * x if os.path.abspath('a').endswith('a') and os.getcwd() else 0", "import os"
    ),
    "memory_map": double("m = mmap.mmap(-1, 99); m[0] = 2 * x; return m[0]", "import mmap"),
    "shelf": double("with shelve.open('s') as s: s['n'] = 2 * x; return s['n']", "import shelve"),
    "configuration_file": double(
        "c = configparser.ConfigParser(); c.read_string(f'[a]\\nn = {x}'); return 2 * c.getint('a', 'n')",
        "import configparser",
    ),
    "limits_read_and_lowered": double(
        "resource.setrlimit(resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK)); return 2 * x",
        "import resource",
    ),
    "platform": double(
        "return 2 * x if sys.platform == 'linux' and os.cpu_count() and sys.version_info >= (3, 11) else 0",
        "import os, sys",
    ),
    "arguments_of_the_command_line": double("return 2 * x if len(sys.argv) == 1 else 0", "import sys"),
    "exit_handler": double("return 2 * x", "import atexit\natexit.register(print, 'bye')"),
    "standard_output_detached": double(
        "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8'); print('\\u00e9'); return 2 * x",
        "import io, sys",
    ),
    "standard_output_closed": double("sys.stdout.close(); return 2 * x", "import sys"),
    "garbage_collector": double("gc.disable(); gc.collect(); return 2 * x", "import gc"),
    "tracer_of_its_own": double("sys.settrace(lambda *a: None); return 2 * x", "import sys"),
    "audit_hook_of_its_own": double("return 2 * x", "import sys\nsys.addaudithook(lambda *a: None)"),
    "threads_stack_size": double("return 2 * x", "import threading\nthreading.stack_size(1 << 20)"),
    "profiler": double("p = cProfile.Profile(); return p.runcall(lambda: 2 * x)", "import cProfile"),
    "traced_memory": double("tracemalloc.start(); a = [x] * 9; tracemalloc.stop(); return 2 * x", "import tracemalloc"),
}
GROUPS = {
    "language": LANGUAGE,
    "depth": DEPTH,
    "concurrency": CONCURRENCY,
    "text": TEXT,
    "numbers": NUMBERS,
    "structures": STRUCTURES,
    "files": FILES,
}
CONTROLS = {f"{group}-{name}": code for group, table in GROUPS.items() for name, code in table.items()}
