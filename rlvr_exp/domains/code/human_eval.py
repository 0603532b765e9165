"""HumanEval and the sets that were made from it: HumanEval+ and HumanEvalPack."""

import ast
from textwrap import indent

from rlvr_exp.tasks.cases import NoCases, asserts_of, cases_of, problem_of
from rlvr_exp.tasks.code_records import CodeRecord, CodeSet
from rlvr_exp.tasks.formats.base import CodeInputs
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.tasks.python_syntax import tree
from rlvr_exp.tasks.rows import Row
from rlvr_exp.tasks.suites import test_file, without

ASK = "Complete the function."


def _human_eval(row: Row) -> CodeRecord:
    """HumanEval: a header to complete, judged by `check(candidate)`. Four headers define a helper before the entry point.

    The tests take the helpers from the header, never from the candidate: `find_zero` is tested by the given `poly`.
    """
    header, entry, test = row.text("prompt"), row.text("entry_point"), row.text("test")
    gold = header + row.text("canonical_solution")
    program = f"{test}\n\ncheck({entry})\n"
    tests = test_file([program], gold, given_by(header, entry), entry)
    cases, why = _cases(test, entry, "candidate")
    inputs = CodeInputs(ASK, given=header)
    return CodeRecord(
        row.text("task_id"),
        HUMAN_EVAL.name,
        "test",
        inputs,
        gold,
        (),
        PytestProblem(tests),
        cases,
        why,
        entry_point=entry,
    )


def given_by(header: str, entry_point: str) -> str:
    """Imports and helpers in a header before the function to complete."""
    return without(header + "    pass\n", entry_point)


def _cases(test: str, entry_point: str, called: str) -> tuple[PythonProblem | None, str]:
    try:
        return problem_of(entry_point, cases_of(asserts_of(test), called)), ""
    except NoCases as reason:
        return None, str(reason)


HUMAN_EVAL = CodeSet(
    "human_eval",
    _human_eval,
    frozenset({"task_id", "prompt", "entry_point", "canonical_solution", "test"}),
    ("HumanEval.jsonl.gz", "HumanEval.jsonl"),
    without=frozenset({"contract", "buggy_solution"}),
)


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


def _human_eval_plus(row: Row) -> CodeRecord:
    """HumanEval+: HumanEval's headers with many more inputs; the canonical solution gives the expected values.

    The upstream release compares a candidate's value with the reference's, floats within `atol` (1e-6 where it is zero) and
    a relative 1e-7, and puts an answer of `find_zero` into the polynomial. The test file does the same: it holds the
    reference, which never enters the candidate's process. The folder has a small file
    (`Mini`, read first) and a complete file, to be named by `data.path`.
    """
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
        row.text("task_id"),
        HUMAN_EVAL_PLUS.name,
        "test",
        inputs,
        gold,
        (),
        PytestProblem(tests),
        None,
        why,
        entry_point=entry,
    )


HUMAN_EVAL_PLUS = CodeSet(
    "human_eval_plus",
    _human_eval_plus,
    frozenset({"task_id", "prompt", "entry_point", "canonical_solution", "contract", "base_input", "plus_input"}),
    ("HumanEvalPlus-Mini.jsonl.gz", "HumanEvalPlus.jsonl.gz", "HumanEvalPlus-Mini.jsonl", "HumanEvalPlus.jsonl"),
    without=frozenset({"assertion"}),
)


ASK_REPAIR = "Fix the bug in `{}`."


def _humanevalpack(row: Row) -> CodeRecord:
    """HumanEvalPack, Python: a function with a bug to repair. The prompt shows the tests' example, not the tests."""
    head, entry, test = row.text("declaration"), row.text("entry_point"), row.text("test")
    gold, buggy = head + row.text("canonical_solution"), head + row.text("buggy_solution")
    tests = PytestProblem(test_file([test], gold, given_by(head, entry), entry))
    cases, why = _cases(test, entry, entry)
    inputs = CodeInputs(f"{ASK_REPAIR.format(entry)}\n{row.text('docstring')}".strip(), buggy)
    family = f"{HUMANEVALPACK.name}/{row.text('bug_type', 'other')}"
    return CodeRecord(row.text("task_id"), family, "test", inputs, gold, (buggy,), tests, cases, why, entry_point=entry)


HUMANEVALPACK = CodeSet(
    "humanevalpack",
    _humanevalpack,
    frozenset({"task_id", "declaration", "canonical_solution", "buggy_solution", "test", "entry_point"}),
    ("humanevalpack.jsonl",),
)
