"""Functions that return one plain value whatever they are given, one of their arguments, or nothing at all."""

from rlvr_exp.verifiers.universal.building import Build, doing, module, returning

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
