"""Public sets of programs to write with tests: HumanEval, HumanEval+ and HumanEvalPack, MBPP and MBPP+, KodCode, BigCodeBench."""

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from textwrap import indent
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.cases import NoCases, asserts_of, called, cases_of, literal, problem_of, statements_of
from rlvr_exp.tasks.code_records import CodeRecord, CodeSet
from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.formats.base import CodeInputs
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import RTOL, Case, PythonProblem
from rlvr_exp.tasks.python_syntax import tree
from rlvr_exp.tasks.rows import Row
from rlvr_exp.tasks.rows import split_of as split_of_row
from rlvr_exp.tasks.suites import suite_of, test_file, without


def _cases(entry: str, asserts: Callable[[], Iterable[ast.stmt]], name: str) -> tuple[PythonProblem | None, str]:
    """Asserts that call `name` as cases of the function `entry`, or the reason for which there are none."""
    try:
        return problem_of(entry, cases_of(asserts(), name)), ""
    except NoCases as reason:
        return None, str(reason)


ASK = "Complete the function."


def _human_eval(row: Row) -> CodeRecord:
    """HumanEval: a header to complete, judged by `check(candidate)`. Four headers define a helper before the entry point.

    The tests take the helpers from the header, never from the candidate: `find_zero` is tested by the given `poly`.
    """
    header, entry, test = row.text("prompt"), row.text("entry_point"), row.text("test")
    gold = header + row.text("canonical_solution")
    program = f"{test}\n\ncheck({entry})\n"
    tests = test_file([program], gold, given_by(header, entry), entry)
    cases, why = _cases(entry, lambda: asserts_of(test), "candidate")
    inputs, suite, name = CodeInputs(ASK, given=header), PytestProblem(tests), row.text("task_id")
    return CodeRecord(name, HUMAN_EVAL.name, "test", inputs, gold, (), suite, cases, why, entry_point=entry)


def given_by(header: str, entry_point: str) -> str:
    """Imports and helpers in a header before the function to complete."""
    return without(header + "    pass\n", entry_point)


HUMAN_EVAL = CodeSet(
    "human_eval",
    _human_eval,
    frozenset({"task_id", "prompt", "entry_point", "canonical_solution", "test"}),
    ("HumanEval.jsonl.gz", "HumanEval.jsonl"),
    without=frozenset({"contract", "buggy_solution"}),
)


BY_POLYNOMIAL = ("find_zero",)
"""Functions whose answer is right if the header's `poly` is zero there."""

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

    The upstream release compares a candidate's value with the reference's, floats within `atol` (1e-6 if it is zero) and
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
    inputs, suite = CodeInputs(ASK, given=header), PytestProblem(test_file([program], gold, head, entry))
    why, name = "its expected values are given by a program alone", row.text("task_id")
    return CodeRecord(name, HUMAN_EVAL_PLUS.name, "test", inputs, gold, (), suite, None, why, entry_point=entry)


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
    cases, why = _cases(entry, lambda: asserts_of(test), entry)
    inputs = CodeInputs(f"{ASK_REPAIR.format(entry)}\n{row.text('docstring')}".strip(), buggy)
    family = f"{HUMANEVALPACK.name}/{row.text('bug_type', 'other')}"
    return CodeRecord(row.text("task_id"), family, "test", inputs, gold, (buggy,), tests, cases, why, entry_point=entry)


HUMANEVALPACK = CodeSet(
    "humanevalpack",
    _humanevalpack,
    frozenset({"task_id", "declaration", "canonical_solution", "buggy_solution", "test", "entry_point"}),
    ("humanevalpack.jsonl",),
)


def _mbpp(row: Row) -> CodeRecord:
    """MBPP: a sentence and three or more asserts; the complete file and the sanitized list.

    Ids 11 to 510 are for evaluation, 1 to 10 for prompting, 511 to 600 for validation and the rest for training (Austin et
    al. 2021, arXiv:2108.07732). A prompt shows the first assert: without it the function's name is unknown.
    """
    number, gold, asserts = row.number("task_id"), unified(row.text("code")) + "\n", row.texts("test_list")
    setup = "\n".join([*row.texts("test_imports"), unified(row.text("test_setup_code", ""))]).strip("\n")
    wanted = row.text("prompt") if "prompt" in row.values else row.text("text")
    entry = called(asserts, gold)
    tests = test_file([f"{setup}\n{text}" if setup else text for text in asserts], gold, entry_point=entry)
    needs_setup = None, "its tests need a setting up"
    cases, why = needs_setup if setup else _cases(entry, lambda: statements_of(asserts), entry)
    inputs = CodeInputs(wanted, given=asserts[0])
    name, split = f"Mbpp/{number}", split_of(number)
    return CodeRecord(
        name, MBPP.name, split, inputs, gold, (), PytestProblem(tests), cases, why, drawn=split, entry_point=entry
    )


def split_of(number: int) -> str:
    if number <= 10:
        return "prompt"
    return "test" if number <= 510 else "dev" if number <= 600 else "train"


MBPP = CodeSet(
    "mbpp",
    _mbpp,
    frozenset({"task_id", "code", "test_list"}),
    ("mbpp.jsonl", "sanitized-mbpp.json"),
    without=frozenset({"test"}),
)


USUAL = "if out != exp and atol != 0:"
"""A line of the release's usual comparison, absent from those that compare as sets or by truth."""


def _mbpp_plus(row: Row) -> CodeRecord:
    """MBPP+ in its original format: MBPP's tasks with a test program of many inputs and their results. It needs numpy.

    The other file of the release (`MbppPlus.jsonl.gz`) holds inputs whose tuples, sets and numbers JSON has flattened task
    by task; this file holds them as Python, so it is read.

    Two faults of the test program are corrected. `np.allclose` stretches one side to the other's shape, so that an empty
    list is close to every number: here the shapes have to be equal. Three programs compute whether a result is right and
    assert nothing: here they assert it.

    EvalPlus compares floats within the task's `atol` (1e-6 if it is 0) and a relative 1e-7. Cases carry both.
    """
    number, gold, asserts, test = row.number("task_id"), row.text("code"), row.texts("test_list"), row.text("test")
    if not asserts:
        raise InputError(InputProblem(f"{row.where}, test_list", "empty", allowed="at least one assert"))
    entry = called(asserts, gold)
    tests = test_file([corrected(test)], gold, entry_point=entry)
    cases, why = _plus_cases(test, entry)
    inputs = CodeInputs(row.text("prompt"), given=asserts[0])
    name, drawn, suite = f"Mbpp/{number}", split_of(number), PytestProblem(tests)
    return CodeRecord(name, MBPP_PLUS.name, "test", inputs, gold, (), suite, cases, why, drawn=drawn, entry_point=entry)


def corrected(test: str) -> str:
    """The release's test program with a corrected `assertion`."""
    shaped = "assert np.shape(out) == np.shape(exp) and np.allclose(out, exp,"
    text = re.sub(r"\bassert np\.allclose\(out, exp,", shaped, test)
    if "assert " in text:
        return text
    return re.sub(r"^( *)(exact_match = exp == .*)$", r"\1\2\n    assert exact_match", text, flags=re.MULTILINE)


def _plus_cases(test: str, entry: str) -> tuple[PythonProblem | None, str]:
    try:
        body = tree(test).body
        inputs, results, atol = _assigned(body, "inputs"), _assigned(body, "results"), _tolerance(body[-1], entry)
        if "set(out)" in test or USUAL not in test:
            return None, "its tests compare in a way of their own"
        if len(inputs) != len(results):
            return None, "inputs and results differ in number"
    except NoCases as reason:
        return None, str(reason)
    cases = tuple(Case(tuple(given), wanted) for given, wanted in zip(inputs, results, strict=True))
    if not atol and any(map(_floats, results)):
        atol = 1e-6
    return problem_of(entry, cases, atol, RTOL if atol else 0.0), ""


def _assigned(body: Sequence[ast.stmt], name: str) -> list[Any]:
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            value = literal(node.value)
            if isinstance(value, list):
                return value
    raise NoCases(f"it gives no {name}")


def _tolerance(loop: ast.stmt, entry: str) -> float:
    """The third argument of `assertion(entry(*inp), exp, ATOL)` in the loop that ends the program."""
    match loop:
        case ast.For(
            body=[ast.Expr(ast.Call(ast.Name("assertion"), [ast.Call(ast.Name(name)), ast.Name("exp"), atol]))]
        ):
            if name == entry:
                return float(literal(atol))
    raise NoCases("its loop is not the usual one")


def _floats(value: Any) -> bool:
    """Whether it is a float, or a nonempty list or tuple of floats."""
    parts = value if isinstance(value, list | tuple) else [value]
    return bool(parts) and all(isinstance(part, float) for part in parts)


MBPP_PLUS = CodeSet(
    "mbpp_plus",
    _mbpp_plus,
    frozenset({"task_id", "code", "test_list", "test"}),
    ("MbppPlus-OriginFmt.jsonl.gz", "MbppPlus-OriginFmt.jsonl"),
    without=frozenset({"contract"}),
)


def _kodcode(row: Row) -> CodeRecord:
    """KodCode (Xu et al. 2025, arXiv:2503.02951): a question, a solution, and a pytest file that imports it.

    The question names no function. The prompt shows the declarations that the tests use, as the release's own prompts do.
    """
    gold, test = unified(row.text("solution")), row.text("test")
    declared = [part for part in row.values.get("test_info") or () if part.get("function_declaration")]
    entry = declared[0]["function_name"] if declared else ""
    given = "\n".join(part["function_declaration"] for part in declared)
    suite, family = PytestProblem(suite_of(test, gold, entry)), f"{KODCODE.name}/{row.text('subset')}"
    inputs, split, why = CodeInputs(row.text("question"), given=given), split_of_row(row), "its tests are a pytest file"
    return CodeRecord(row.text("question_id"), family, split, inputs, gold, (), suite, None, why, entry_point=entry)


KODCODE = CodeSet("kodcode", _kodcode, frozenset({"question_id", "question", "solution", "test", "subset"}), ())


def _bigcodebench(row: Row) -> CodeRecord:
    """BigCodeBench (Zhuo et al. 2024, arXiv:2406.15877), "complete": a header of `task_func`, judged by a unittest class."""
    header, entry = row.text("complete_prompt"), row.text("entry_point")
    gold = header + row.text("canonical_solution")
    suite, why = PytestProblem(suite_of(row.text("test"), gold, entry)), "its tests are a unittest class"
    inputs, name = CodeInputs(ASK, given=header), row.text("task_id")
    lazy = CodeInputs(row.text("instruct_prompt"))
    return CodeRecord(
        name, f"{BIGCODEBENCH.name}/complete", "test", inputs, gold, (), suite, None, why, lazy=lazy, entry_point=entry
    )


BIGCODEBENCH = CodeSet(
    "bigcodebench",
    _bigcodebench,
    frozenset({"task_id", "complete_prompt", "instruct_prompt", "canonical_solution", "test", "entry_point"}),
    (),
)
