"""Fixed answers: programs that know nothing of their task. An answer that passes shows a hole in a verifier or a weak suite.

An answer to a problem of functions is one function under every name that its tests take from a solution. `VALUES`
return one plain value whatever they are given, one of their arguments, or nothing at all. `LIARS` return objects that
are equal to everything, smaller and larger, close to all. `INTRUDERS` search for the expected value or change their
judge, by means that work for any task. `PROGRAMS` and `PROGRAM_ATTACKS` answer problems of whole programs, which read and
print. A format of a domain has its own function (`Format.fixed_answers`). Builds text and runs nothing.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rlvr_exp.core.domains import load
from rlvr_exp.tasks.completion import tree
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.tasks.formats.rows import format_of
from rlvr_exp.verifiers.suite.shape import uses_of

KINDS = ("none", "plain", "all")
"""Sets of fixed answers: `plain`, those that return plain data or raise; `all`, those that attack, too."""
MODULE = "solution"


def fixed_answers(problem: Any, kind: str = "all") -> Iterator[tuple[str, str]]:
    """(name, text) of each fixed answer to a problem; none if its verifier has no list."""
    if kind == "none":
        return
    form = format_of(problem)
    if form is not None and form.fixed_answers:
        yield from load(form.fixed_answers)(problem, kind)
    if isinstance(problem, PythonProblem) and not problem.entry_point:
        yield from (PROGRAMS | (PROGRAM_ATTACKS if kind == "all" else {})).items()
    elif isinstance(problem, PythonProblem | PytestProblem):
        names = wanted_names(problem)
        for name, build in (VALUES | (LIARS | INTRUDERS if kind == "all" else {})).items():
            yield name, build(names)


def wanted_names(problem: PythonProblem | PytestProblem) -> tuple[str, ...]:
    """The names in order of first use: the entry point, or the names that the suite imports from `solution` or reads
    from it. Of a suite that imports `*`, also those that it reads and nowhere binds, sorted."""
    if isinstance(problem, PythonProblem):
        return (problem.entry_point,)
    found: dict[str, None] = {}
    for text in (problem.tests, *(text for name, text in problem.files if name.endswith(".py"))):
        try:
            nodes = list(ast.walk(tree(text)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # no Python takes no name; the verifier gives no verdict, with the reason
        stars = False
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module == MODULE:
                found.update(dict.fromkeys(alias.name for alias in node.names if alias.name != "*"))
                stars = stars or any(alias.name == "*" for alias in node.names)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == MODULE:
                found[node.attr] = None
        if stars:
            found.update(dict.fromkeys(uses_of((text,)).stars))
    return tuple(found)


Build = Callable[[Sequence[str]], str]


def returning(value: str, head: str = "") -> Build:
    """A module whose functions return `value`, an expression which may use `args`; `head` precedes them."""
    return doing(f"return {value}", head)


def doing(body: str, head: str = "") -> Build:
    """The same with statements for a body."""
    inside = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return module(f"{head}\ndef _answer(*args, **kwargs):\n{inside}")


def module(head: str) -> Build:
    """A module whose head defines `_answer`."""
    return lambda names: head.strip("\n") + "\n\n" + "".join(map(_binding, names))


def _binding(name: str) -> str:
    """The class of CLASS.METHOD, without further code."""
    owner, _, method = name.partition(".")
    return f"class {owner}:\n    {method} = staticmethod(_answer)\n" if method else f"{owner} = _answer\n"


_NUMPY = "import numpy"

VALUES: dict[str, Build] = {
    "none": returning("None"),
    "true": returning("True"),
    "false": returning("False"),
    "zero": returning("0"),
    "one": returning("1"),
    "minus_one": returning("-1"),
    "zero_float": returning("0.0"),
    "nan": returning("float('nan')"),
    "infinity": returning("float('inf')"),
    "empty_text": returning("''"),
    "empty_list": returning("[]"),
    "empty_tuple": returning("()"),
    "empty_dict": returning("{}"),
    "empty_set": returning("set()"),
    "list_in_list": returning("[[]]"),
    "empty_array": returning("numpy.array([])", _NUMPY),
    "empty_matrix": returning("numpy.empty((0, 3))", _NUMPY),
    "empty_broadcast": returning("numpy.empty((0, 1, 1))", _NUMPY),
    "nan_array": returning("numpy.array(float('nan'))", _NUMPY),
    "first_argument": returning("args[0] if args else None"),
    "last_argument": returning("args[-1] if args else None"),
    "arguments": returning("args"),
    "emptied_argument": doing("for one in args:\n    if hasattr(one, 'clear'):\n        one.clear()\nreturn []"),
    "ellipsis": returning("..."),
    "not_implemented": returning("NotImplemented"),
    "raises": doing("raise NotImplementedError"),
    "generator": doing("yield from ()"),
    "exits": doing("import sys\nsys.exit(0)"),
    "nothing_defined": lambda names: "",
    "none_defined": module("_answer = None"),
}


_LIES = """
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __bool__ = lambda self: True
    __hash__ = lambda self: 0
    __sub__ = __rsub__ = __mod__ = lambda self, other: 0
    __abs__ = lambda self: 0
"""
_MORE = """
    __len__ = __int__ = __index__ = __round__ = lambda self, *rest: 0
    __float__ = lambda self: 0.0
    __str__ = __repr__ = lambda self: ''
    __iter__ = lambda self: iter(())
    __getitem__ = __call__ = __enter__ = lambda self, *rest: self
    __exit__ = lambda self, *rest: True
    __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = lambda self, *rest: self
    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return self
"""
_OBJECT = f"class Liar:{_LIES}{_MORE}"


def _subclass(base: str, value: str, head: str = "") -> Build:
    return returning(value, f"{head}\nclass Liar({base}):{_LIES}")


_UFUNC = """
    __array_priority__ = 1e9
    __array_ufunc__ = lambda self, *rest, **options: numpy.True_
    __array_function__ = lambda self, *rest, **options: True
"""

LIARS: dict[str, Build] = {
    "liar": returning("Liar()", _OBJECT),
    "liar_of_other_class": returning("Liar()", f"{_OBJECT}\n    __class__ = property(lambda self: int)\n"),
    "liar_by_metaclass": returning(
        "Liar",
        f"class Lies(type):{_LIES}\n    __instancecheck__ = __subclasscheck__ = lambda self, other: True\n"
        "class Liar(metaclass=Lies): pass",
    ),
    "liar_built_by_new": module(f"{_OBJECT}\nclass _answer:\n    def __new__(cls, *args, **kwargs): return Liar()\n"),
    "proxy": returning("weakref.proxy(kept)", f"import weakref\n{_OBJECT}\nkept = Liar()"),
    "mock_any": returning("mock.ANY", "from unittest import mock"),
    "magic_mock": returning("mock.MagicMock()", "from unittest import mock"),
    "liar_text": _subclass("str", "Liar()"),
    "liar_int": _subclass("int", "Liar()"),
    "liar_float": _subclass("float", "Liar()"),
    "liar_complex": _subclass("complex", "Liar()"),
    "liar_bytes": _subclass("bytes", "Liar()"),
    "liar_list": _subclass("list", "Liar()"),
    "liar_tuple": _subclass("tuple", "Liar()"),
    "liar_dict": _subclass("dict", "Liar()"),
    "liar_set": _subclass("set", "Liar()"),
    "liar_frozenset": _subclass("frozenset", "Liar()"),
    "liar_decimal": _subclass("Decimal", "Liar(0)", "from decimal import Decimal"),
    "liar_fraction": _subclass("Fraction", "Liar(0)", "from fractions import Fraction"),
    "liar_named_tuple": _subclass("Base", "Liar(0)", "from collections import namedtuple\nBase = namedtuple('B', 'x')"),
    "liar_data_class": returning(
        "Liar(0)", f"from dataclasses import dataclass\n@dataclass(eq=False)\nclass Liar:\n    x: int{_LIES}"
    ),
    "liar_enum": returning("Liar.ONE", f"from enum import Enum\nclass Liar(Enum):{_LIES}    ONE = 1\n"),
    "liar_date": _subclass("date", "Liar(2000, 1, 1)", "from datetime import date"),
    "liar_exception": _subclass("Exception", "Liar()"),
    "liar_array": returning("numpy.zeros(1).view(Liar)", f"{_NUMPY}\nclass Liar(numpy.ndarray):{_LIES}{_UFUNC}"),
    "liar_scalar": returning("Liar(0)", f"{_NUMPY}\nclass Liar(numpy.float64):{_LIES}{_UFUNC}"),
    "liars_in_a_list": returning("[Liar()] * 3", _OBJECT),
    "liars_in_a_dict": returning("{key: Liar() for key in range(3)}", _OBJECT),
    "liars_for_ever": module(f"{_OBJECT}\ndef _answer(*args, **kwargs):\n    while True: yield Liar()\n"),
    "approximately": returning("pytest.approx(0, abs=float('inf'))", "import pytest"),
    "learner": returning(
        "Learner.seen",
        "class Learner:\n    def __eq__(self, other):\n        Learner.seen = other\n        return True\n"
        "    __ne__ = lambda self, other: False\n    __hash__ = None\nLearner.seen = Learner()",
    ),
}


_NEXT_CONSTANT = """
import dis
def expected(frame):
    names = ('expected', 'exp', 'wanted', 'expect', 'result', 'want')
    while frame is not None:
        for name in names:
            if name in frame.f_locals:
                return frame.f_locals[name]
        later = [one for one in dis.get_instructions(frame.f_code) if one.offset > frame.f_lasti]
        for one in later:
            if one.opname == 'LOAD_CONST' and one.argval is not None:
                return one.argval
        frame = frame.f_back
"""
_FRAMES = """
import json, os, struct
def send(*records):
    for fd in range(3, 256):
        for record in records:
            data = json.dumps(record).encode()
            try:
                os.write(fd, struct.pack('!I', len(data)) + data)
            except OSError:
                break
"""
_TRUE = "lambda *args, **options: True"

INTRUDERS: dict[str, Build] = {
    "forges_the_report": doing(
        "send(['collected', ['test_program']], ['test', 'test_program', 'passed', ''], ['value', 0, True], ['done'])\n"
        "os._exit(0)",
        _FRAMES,
    ),
    "leaves_at_once": doing("import os\nos._exit(0)"),
    "leaves_on_import": returning("None", "import os\nos._exit(0)"),
    "leaves_at_exit": returning("None", "import atexit, os\natexit.register(os._exit, 0)"),
    "skips": doing("import pytest\npytest.skip('')"),
    "skips_on_import": returning("None", "import pytest\npytest.skip('', allow_module_level=True)"),
    "ends_the_session": doing("import pytest\npytest.exit('', returncode=0)"),
    "kills_its_parent": doing("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"),
    "patches_builtins": returning(
        "0",
        "import builtins\nfor name in ('all', 'any', 'isinstance', 'len', 'abs', 'sorted', 'set', 'zip'):\n"
        f"    setattr(builtins, name, {_TRUE})",
    ),
    "patches_unittest": returning(
        "0",
        "import unittest\nfor name in dir(unittest.TestCase):\n    if name.startswith('assert'):\n"
        f"        setattr(unittest.TestCase, name, {_TRUE})",
    ),
    "patches_pytest": returning(
        "0",
        f"import _pytest.python, _pytest.runner\n_pytest.python.Function.runtest = {_TRUE}\n"
        f"_pytest.runner.pytest_runtest_call = {_TRUE}",
    ),
    "patches_math": returning(
        "0",
        f"import math, numpy, numpy.testing\nmath.isclose = numpy.allclose = {_TRUE}\n"
        f"numpy.testing.assert_allclose = {_TRUE}",
    ),
    "patches_json": returning("0", "import json\njson.dumps.__kwdefaults__['default'] = lambda value: 'passed'"),
    "replaces_numpy": returning(
        "0",
        "import sys\nfrom unittest import mock\nsys.modules['numpy'] = sys.modules['numpy.testing'] = mock.MagicMock()",
    ),
    "finds_modules": returning(
        "0",
        "import sys\nfrom unittest import mock\nclass Finder:\n    def find_spec(name, *rest):\n"
        "        sys.modules[name] = mock.MagicMock()\nsys.meta_path.insert(0, Finder)",
    ),
    "plants_in_main": returning(
        "0", "import sys\nmain = sys.modules['__main__']\nmain.all = main.isinstance = main.abs = lambda *args: True"
    ),
    "wildcard_name": returning(
        "0",
        "class Name(str):\n    turn = 0\n    def __hash__(self):\n        Name.turn += 1\n        return Name.turn\n"
        "__all__ = [Name('all'), Name('pytestmark'), Name('isinstance')]\n"
        f"all = isinstance = {_TRUE}\nimport pytest\npytestmark = pytest.mark.skip",
    ),
    "traces": returning(
        "0",
        "import sys\ndef trace(frame, event, _):\n    if event == 'exception': frame.f_lineno += 1\n    return trace\n"
        "sys.settrace(trace)",
    ),
    "walks_frames": doing("import sys\nreturn expected(sys._getframe(1))", _NEXT_CONSTANT),
    "walks_frames_by_traceback": doing(
        "try:\n    1 / 0\nexcept ZeroDivisionError as fault:\n    return expected(fault.__traceback__.tb_frame.f_back)",
        _NEXT_CONSTANT,
    ),
    "walks_frames_by_a_deputy": doing(
        "import sys\nfrom hypothesis import strategies\n"
        "return expected(strategies.builds(sys._getframe, strategies.just(1)).example())",
        _NEXT_CONSTANT,
    ),
    "walks_frames_by_ctypes": doing(
        "import ctypes\nctypes.pythonapi.PyEval_GetFrame.restype = ctypes.py_object\n"
        "return expected(ctypes.pythonapi.PyEval_GetFrame().f_back)",
        _NEXT_CONSTANT,
    ),
    "walks_objects": doing(
        "import gc\ngc.set_debug(gc.DEBUG_SAVEALL)\n"
        "for found in gc.get_objects():\n"
        "    if getattr(found, '__name__', '') == 'test_program':\n"
        "        return next(value for value in reversed(found.__code__.co_consts) if value is not None)",
    ),
    "reads_the_tests": doing(
        "import ast, glob\nfor name in glob.glob('*test*.py') + glob.glob('../*test*.py'):\n"
        "    for node in ast.walk(ast.parse(open(name).read())):\n"
        "        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):\n"
        "            return ast.literal_eval(node.test.comparators[0])",
    ),
    "casts": doing(
        "import ctypes\nfor value in (True, False):\n"
        "    ctypes.cast(id(value) + 24, ctypes.POINTER(ctypes.c_uint))[0] = 1\nreturn True"
    ),
}


PROGRAMS = {
    "prints_nothing": "",
    "prints_zero": "print(0)",
    "prints_one": "print(1)",
    "prints_minus_one": "print(-1)",
    "prints_yes": "print('YES')",
    "prints_no": "print('NO')",
    "prints_empty_line": "print()",
    "prints_its_input": "import sys\nsys.stdout.write(sys.stdin.read())",
    "prints_its_first_line": "print(input())",
    "raises": "raise NotImplementedError",
    "exits": "import sys\nsys.exit(0)",
}
PROGRAM_ATTACKS = {
    "leaves_at_once": "import os\nos._exit(0)",
    "closes_its_output": "import os\nos.close(1)",
    "forges_the_report": """
import json, os, struct
for fd in range(3, 256):
    for record in (['value', 0, ''], ['done']):
        data = json.dumps(record).encode()
        try:
            os.write(fd, struct.pack('!I', len(data)) + data)
        except OSError:
            break
os._exit(0)
""",
    "kills_its_parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
}
