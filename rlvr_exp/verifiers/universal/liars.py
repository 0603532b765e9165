"""Functions that return objects which answer for themselves: equal to everything, smaller and larger, close to all."""

from rlvr_exp.verifiers.universal.building import Build, module, returning

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


_NUMPY = "import numpy"
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
