"""HumanEval+: HumanEval's headers with many more inputs; the canonical solution gives the expected values.

The upstream release compares a candidate's value with the reference's, floats within `atol` (1e-6 where it is zero) and
a relative 1e-7, and puts an answer of `find_zero` into the polynomial. The test file does the same: it holds the
reference, which never enters the candidate's process. The folder has a small file
(`Mini`, read first) and a complete file, to be named by `data.path`.
"""

import ast
from textwrap import indent

from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.code.harness import test_file
from rlvr_exp.tasks.code.prompt import CodeInputs
from rlvr_exp.tasks.code.record import CodeRecord
from rlvr_exp.tasks.code.sets.human_eval import ASK, given_by
from rlvr_exp.tasks.completion import tree
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem

NAME = "human_eval_plus"
KEYS = frozenset({"task_id", "prompt", "entry_point", "canonical_solution", "contract", "base_input", "plus_input"})
NOT = frozenset({"assertion"})
FILES = ("HumanEvalPlus-Mini.jsonl.gz", "HumanEvalPlus.jsonl.gz", "HumanEvalPlus-Mini.jsonl", "HumanEvalPlus.jsonl")
BY_POLYNOMIAL = ("find_zero",)
"""Answers that are right wherever the header's own `poly` is zero."""

CLOSE = """
from collections import Counter, OrderedDict, defaultdict
from copy import deepcopy
from math import inf, isfinite, nan

_DICTS = (dict, Counter, OrderedDict, defaultdict)
_SCALARS = {type(None), bool, int, float, complex, str, bytes}
_NUMBERS = {bool, int, float}
_PLAIN = (*_SCALARS, list, tuple, set, frozenset, *_DICTS)


def _floats(value):
    return isinstance(value, float) or (isinstance(value, (list, tuple)) and all(isinstance(x, float) for x in value))


def _same(got, wanted):
    # Values of other types could answer == as they like.
    if type(got) not in _PLAIN:
        return False
    if isinstance(wanted, (list, tuple)):
        alike = type(got) is type(wanted) and len(got) == len(wanted)
        if alike and set(map(type, got)) <= _SCALARS:
            return got == wanted
        return alike and all(_same(one, other) for one, other in zip(got, wanted))
    if isinstance(wanted, dict):
        alike = type(got) in _DICTS and len(got) == len(wanted) and all(type(key) in _PLAIN for key in got)
        return alike and all(key in got and _same(got[key], value) for key, value in wanted.items())
    return got == wanted


def _close(got, wanted, atol):
    if _same(got, wanted):
        return True
    if atol == 0 and _floats(wanted):
        atol = 1e-6
    return atol != 0 and type(got) is type(wanted) and _near(got, wanted, atol)


def _near(got, wanted, atol):
    if isinstance(wanted, (list, tuple)):
        alike = type(got) in (list, tuple) and len(got) == len(wanted)
        return alike and all(_near(one, other, atol) for one, other in zip(got, wanted))
    if type(got) not in _NUMBERS or type(wanted) not in _NUMBERS:
        return False
    return got == wanted or (isfinite(wanted) and abs(got - wanted) <= atol + 1e-7 * abs(wanted))
"""


def read(row: Row) -> CodeRecord:
    header, entry, atol = row.text("prompt"), row.text("entry_point"), row.values.get("atol", 0)
    gold = header + row.text("canonical_solution")
    given = row.rows("base_input") + row.rows("plus_input")
    if entry in BY_POLYNOMIAL:
        head = f"{given_by(header, entry)}\n\nfrom copy import deepcopy"
        judged = f"assert abs(poly(*deepcopy(given), {entry}(*deepcopy(given)))) <= {atol!r}"
    else:
        head = f"{CLOSE}\n\ndef _reference():\n{indent(ast.unparse(tree(gold)), '    ')}\n    return {entry}"
        judged = f"assert _close({entry}(*deepcopy(given)), _reference()(*deepcopy(given)), {atol!r})"
    program = f"for given in {given!r}:\n    {judged}\n"
    tests = test_file([program], gold, head, entry)
    why = "its expected values are given by a program alone"
    inputs = CodeInputs(ASK, given=header)
    return CodeRecord(
        row.text("task_id"), NAME, "test", inputs, gold, (), PytestProblem(tests), None, why, entry_point=entry
    )
