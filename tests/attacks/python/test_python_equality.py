"""Attacks on the comparison: objects with their own comparisons, values that are almost equal, returned shapes."""

import time

import pytest
from python_arena import CASES, LIMITS, PROBLEM, double, judge

from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

pytestmark = pytest.mark.usefixtures("honest_after")

EQUAL = "def __eq__(self, other): return True\n    __ne__ = lambda self, other: False\n    __hash__ = None"
OBJECTS = {
    "plain_object": double("return Any()", f"class Any:\n    {EQUAL}"),
    **{
        f"subclass_of_{base}": double("return Any()", f"class Any({base}):\n    {EQUAL}")
        for base in ("int", "str", "list", "dict", "tuple", "float", "bytes", "complex", "set", "frozenset")
    },
    "class_that_lies": double("return Any()", "class Any:\n    __class__ = property(lambda self: int)\n    real = 4"),
    "metaclass_that_lies": double(
        "return Any()",
        "class Meta(type):\n    __instancecheck__ = __subclasscheck__ = __eq__ = lambda *a: True\n"
        "    __hash__ = None\n"
        "class Any(metaclass=Meta): pass",
    ),
    "reduce_to_the_answer": double("return Any()", "class Any:\n    def __reduce__(self): return (int, (4,))"),
    "reduce_to_a_command": double(
        "return Any()", "import os\nclass Any:\n    def __reduce__(self): return (os.system, ('true',))"
    ),
    "index_and_int": double("return Any()", "class Any:\n    __index__ = __int__ = __float__ = lambda self: 4"),
    "repr_is_the_answer": double("return Any()", "class Any:\n    __repr__ = __str__ = lambda self: '4'"),
    "int_whose_methods_lie": double(
        "return Any(5)",
        "class Any(int):\n    __int__ = __index__ = __repr__ = __hash__ = bit_length = __abs__ = lambda self: 4",
    ),
    "list_whose_items_lie": double("return L([5])", "class L(list):\n    __iter__ = lambda self: iter([4])"),
    "mock": double("return MagicMock()", "from unittest.mock import MagicMock, ANY"),
    "any_of_the_mock_module": double("return ANY", "from unittest.mock import ANY"),
    "the_class_itself": double("return int"),
    "the_function_itself": double("return double"),
    "module": double("return math", "import math"),
    "exception_returned": double("return Exception(2 * x)"),
    "generator": double("yield 2 * x"),
    "generator_returned": double("return (n for n in [2 * x])"),
    "coroutine": "async def double(x): return 2 * x",
    "endless_generator": double("while True: yield 2 * x"),
    "memory_view": double("return memoryview(bytes([2 * x]))"),
    "self_in_a_list": double("a = []; a.append(a); return a"),
    "self_in_a_dict": double("a = {}; a[0] = a; return a"),
    "deeply_nested": double("a = []\nfor _ in range(10 ** 5): a = [a]\nreturn a"),
    "huge_integer": double("return 1 << 1000000"),
    "lone_surrogates": double("return chr(0xd800) * 10"),
    "hash_that_hangs": double("return {Any()}", "class Any:\n    def __hash__(self):\n        while True: pass"),
}
SPEAKING = {
    "repr_raises": double(
        "return Any()", "class Any:\n    def __repr__(self): raise SystemExit(0)\n    __str__ = __repr__"
    ),
    "text_of_an_exception_hangs": double(
        "raise E", "class E(Exception):\n    def __str__(self):\n        while True: pass"
    ),
    "text_of_an_exception_is_huge": double("raise E", "class E(Exception):\n    __str__ = lambda self: 'x' * 10 ** 9"),
    "text_of_an_exception_raises": double("raise E", "class E(BaseException):\n    def __str__(self): raise self"),
    "text_of_an_exception_is_a_subclass": double(
        "raise E",
        "class S(str):\n    def __getitem__(self, at): raise SystemExit(0)\n    __format__ = __len__ = __getitem__\n"
        "class E(Exception):\n    __str__ = lambda self: S('x')",
    ),
    "name_of_an_exception_lies": double(
        "raise E",
        "class M(type):\n    __name__ = property(lambda self: 1 / 0)\nclass E(Exception, metaclass=M): pass",
    ),
    "traceback_of_an_exception_lies": double(
        "raise E", "class E(Exception):\n    __traceback__ = property(lambda self: 1 / 0)"
    ),
    "syntax_error_of_its_own": double("raise E", "class E(SyntaxError):\n    lineno = property(lambda self: 1 / 0)"),
    "memory_error_of_its_own": double("raise E", "class E(MemoryError): pass"),
    "os_error_of_its_own": double("raise OSError(27, 'File too large')"),
    "recursion_in_the_result": double("return E()", "class E(dict):\n    items = property(lambda self: 1 / 0)"),
    "cycle_of_causes": double("a, b = ValueError(), KeyError()\na.__cause__ = b; b.__context__ = a\nraise a"),
}
VALUES = {
    "true_for_one": (True, 1),
    "one_for_true": (1, True),
    "zero_for_false": (0, False),
    "zero_for_none": (0, None),
    "text_for_a_number": ("1", 1),
    "number_for_a_text": (1, "1"),
    "bytes_for_a_text": (b"a", "a"),
    "list_for_a_text": (["a", "b"], "ab"),
    "set_for_a_list": ({1, 2}, [1, 2]),
    "dict_for_its_keys": ({1: 2}, [1]),
    "nan_for_a_number": (float("nan"), 1.0),
    "infinity_for_a_large_number": (float("inf"), 1e308),
    "next_float": (0.1 + 0.2, 0.3),
    "integer_rounded_to_a_float": (2**53 + 1, float(2**53)),
    "large_integer_off_by_one": (10**30 + 1, 10**30),
    "shorter": ([1, 2], [1, 2, 3]),
    "longer": ([1, 2, 3, 4], [1, 2, 3]),
    "composed_and_decomposed_text": ("\u00e9", "e\u0301"),
    "look_alike_letters": ("\u0430", "a"),
    "invisible_space": ("a\u200b", "a"),
    "text_with_a_null": ("a\0", "a"),
    "key_of_another_type": ({1: 0}, {"1": 0}),
    "true_as_a_key": ({True: 0}, {1: 0}),
    "extra_key": ({"a": 1, "b": 2}, {"a": 1}),
    "empty_list_for_an_empty_dict": ([], {}),
}


@pytest.mark.parametrize("code", OBJECTS.values(), ids=OBJECTS)
def test_an_object_is_not_the_answer(verifier, code):
    verdict = judge(verifier, code)
    assert (verdict.outcome, verdict.passed) == ("failed", 0), verdict


@pytest.mark.parametrize("code", SPEAKING.values(), ids=SPEAKING)
def test_what_speaks_for_itself_fails_with_a_log(verifier, code):
    verdict = judge(verifier, code)
    assert (verdict.outcome, verdict.passed) == ("failed", 0) and 0 < len(verdict.log) < 1000, verdict


@pytest.mark.parametrize(("got", "expected"), VALUES.values(), ids=VALUES)
def test_almost_is_not_equal(verifier, got, expected):
    text = repr(got).replace("nan", "float('nan')").replace("inf", "float('inf')")
    verdict = judge(verifier, double(f"return {text}"), PythonProblem("double", (Case((2,), expected),), limits=LIMITS))
    assert (verdict.outcome, verdict.bucket) == ("failed", "wrong_answer"), verdict


def test_changed_arguments_are_no_answer(verifier):
    problem = PythonProblem("f", (Case(([3, 1],), [1, 3]),), limits=LIMITS)
    assert judge(verifier, "def f(a): a.sort()", problem).outcome == "failed"


@pytest.mark.parametrize(("made", "record"), [("dict", '{"d":[%s]}'), ("set", '{"s":[%s]}')])
def test_colliding_keys_do_not_slow_the_judge(verifier, made, record):
    item = "[%d,0]" if made == "dict" else "%d"
    send = f"b'[\"value\",0,' + b'{record}' % b','.join(b'{item}' % (k * (2 ** 61 - 1)) for k in range(30000)) + b']'"
    attack = double(f"d = {send}\nos.write(90, len(d).to_bytes(4, 'big') + d)\nos._exit(0)", "import os")
    expected = dict.fromkeys(range(30000), 0) if made == "dict" else set(range(30000))
    began = time.process_time()
    assert judge(verifier, attack, PythonProblem("double", (Case((2,), expected),), limits=LIMITS)).outcome == "failed"
    assert time.process_time() - began < 2


def test_the_controls_of_this_table_pass(verifier):
    assert judge(verifier, double("return type('I', (int,), {})(2 * x)"), PROBLEM).outcome == "passed"
    assert len(CASES) == judge(verifier, double("return 2 * x")).passed
