"""MBPP, and MBPP+ with many more inputs."""

import ast
import re
from collections.abc import Sequence
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.cases import NoCases, called, cases_of, literal, problem_of, statements_of
from rlvr_exp.tasks.code_records import CodeRecord, CodeSet
from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.formats.base import CodeInputs
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import RTOL, Case, PythonProblem
from rlvr_exp.tasks.python_syntax import tree
from rlvr_exp.tasks.rows import Row
from rlvr_exp.tasks.suites import test_file


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
    cases, why = _plain_cases(asserts, entry, setup)
    inputs = CodeInputs(wanted, given=asserts[0])
    name, split = f"Mbpp/{number}", split_of(number)
    return CodeRecord(
        name, MBPP.name, split, inputs, gold, (), PytestProblem(tests), cases, why, drawn=split, entry_point=entry
    )


def split_of(number: int) -> str:
    if number <= 10:
        return "prompt"
    return "test" if number <= 510 else "dev" if number <= 600 else "train"


def _plain_cases(asserts: tuple[str, ...], entry: str, setup: str) -> tuple[PythonProblem | None, str]:
    if setup:
        return None, "its tests need a setting up"
    try:
        return problem_of(entry, cases_of(statements_of(asserts), entry)), ""
    except NoCases as reason:
        return None, str(reason)


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
    """MBPP+ in its original format: MBPP's tasks with a test program of many inputs and their results, which needs numpy.

    The other file of the release (`MbppPlus.jsonl.gz`) holds inputs whose tuples, sets and numbers JSON has flattened task
    by task; this file holds them as Python, so it is read.

    Two faults of the test program are corrected. `np.allclose` stretches one side to the other's shape, so that an empty
    list is close to every number: here the shapes have to be equal. Three programs compute whether a result is right and
    assert nothing: here they assert it.

    EvalPlus compares floats within the task's `atol` (1e-6 where it is 0) and a relative 1e-7. Cases carry both.
    """
    number, gold, asserts, test = row.number("task_id"), row.text("code"), row.texts("test_list"), row.text("test")
    if not asserts:
        raise InputError(InputProblem(f"{row.where}, test_list", "empty", allowed="at least one assert"))
    entry = called(asserts, gold)
    tests = test_file([mended(test)], gold, entry_point=entry)
    cases, why = _plus_cases(test, entry)
    inputs = CodeInputs(row.text("prompt"), given=asserts[0])
    drawn = split_of(number)
    return CodeRecord(
        f"Mbpp/{number}",
        MBPP_PLUS.name,
        "test",
        inputs,
        gold,
        (),
        PytestProblem(tests),
        cases,
        why,
        drawn=drawn,
        entry_point=entry,
    )


def mended(test: str) -> str:
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
    """Whether it is a float, or a list or tuple of floats alone; an empty one holds none."""
    parts = value if isinstance(value, list | tuple) else [value]
    return bool(parts) and all(isinstance(part, float) for part in parts)


MBPP_PLUS = CodeSet(
    "mbpp_plus",
    _mbpp_plus,
    frozenset({"task_id", "code", "test_list", "test"}),
    ("MbppPlus-OriginFmt.jsonl.gz", "MbppPlus-OriginFmt.jsonl"),
    without=frozenset({"contract"}),
)
