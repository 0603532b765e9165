"""Sets of programs to edit or to repair: CanItEdit, EditEval and QuixBugs."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.code_records import STYLES, CodeRecord, CodeSet
from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.formats.base import CodeInputs
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.python_syntax import tree
from rlvr_exp.tasks.rows import Row
from rlvr_exp.tasks.suites import test_file

OWN_MODULE, SOLUTION = "sys.modules[__name__]", "sys.modules['solution']"
"""Tests that read the source of their own module mean the solution: upstream, both are one module."""


def _canitedit(row: Row) -> CodeRecord:
    """CanItEdit: a program, an instruction, and tests that follow it as a program. Never training data, by its licence."""
    gold, before = row.text("after") + "\n", row.text("before") + "\n"
    taxonomy = row.values.get("taxonomy")
    if not isinstance(taxonomy, Mapping):
        raise InputError(InputProblem(f"{row.where}, taxonomy", "not an object", got=type(taxonomy).__name__))
    inputs, lazy = (CodeInputs(row.text(f"instruction_{style}"), before) for style in STYLES)
    script = row.text("tests")
    tests = PytestProblem(test_file([script.replace(OWN_MODULE, SOLUTION)], gold))
    name, family = f"CanItEdit/{row.text('full_name')}", f"{CANITEDIT.name}/{taxonomy.get('change_kind', 'other')}"
    return CodeRecord(name, family, "test", inputs, gold, (before,), tests, script=script, lazy=lazy)


CANITEDIT = CodeSet(
    "canitedit",
    _canitedit,
    frozenset({"full_name", "before", "after", "tests", "instruction_descriptive", "instruction_lazy"}),
    ("canitedit.jsonl",),
)


PLACE = "{{Code}}"


def _edit_eval(row: Row) -> CodeRecord:
    """EditEval: an instruction, a piece of code, which may be inside a context at `{{Code}}`, and tests in `check()`.

    A candidate is the complete module with its context, since nine pieces do not parse without it.
    """
    context = row.text("context", "")
    gold, before = (_placed(row.text(key), context) for key in ("output", "input"))
    tests = test_file([f"{row.text('test')}\n\ncheck()\n"], gold)
    inputs = CodeInputs(row.text("instruction"), before)
    return CodeRecord(row.text("task_id"), EDIT_EVAL.name, "test", inputs, gold, (before,), PytestProblem(tests))


def _placed(code: str, context: str) -> str:
    if PLACE not in context:
        return code + "\n"
    return re.sub(re.escape(PLACE), lambda _: code, context) + "\n"


EDIT_EVAL = CodeSet(
    "edit_eval", _edit_eval, frozenset({"task_id", "instruction", "input", "output", "test"}), ("edit_eval.jsonl",)
)


QUIXBUGS = "quixbugs"
BUGGY, CORRECT, CASES, TESTS = "python_programs", "correct_python_programs", "json_testcases", "python_testcases"
ASK = "One line of `{}` is wrong. Fix the bug."
SLOW = {"knapsack": 6404180, "levenshtein": "amanaplanacanalpanama"}
"""First argument of the case that upstream skips."""
ALWAYS = "assert {0}(*input_data) == expected"


def read_quixbugs(root: Path) -> Iterator[CodeRecord]:
    """QuixBugs, Python: forty programs with one bug each. JSON cases for 31, test files for all.

    The test files are used unchanged except for their imports: the program from `solution`, cases written out, the helper
    class `node` added. Whatever they compare with `pytest.approx` has to be a number: an empty array is approximately
    everything. Two cases that upstream skips because they take minutes are left out.

    Raises:
        InputError: a file is missing or damaged.
    """
    for file in sorted((root / CORRECT).glob("*.py")):
        if file.stem != "node" and not file.stem.endswith("_test"):
            yield _record(root, file.stem)


def _record(root: Path, name: str) -> CodeRecord:
    gold, buggy = (_code(root / folder / f"{name}.py") for folder in (CORRECT, BUGGY))
    cases = _cases(root / CASES / f"{name}.json", name)
    test = _code(root / TESTS / f"test_{name}.py")
    helper = root / TESTS / "node.py"
    files = (("node.py", _code(helper)),) if "from node import" in test and helper.is_file() else ()
    tests = PytestProblem(_test_file(test, name, cases), files)
    python, why = _problem(name, cases, test)
    family = f"{QUIXBUGS}/{'cases' if cases else 'driver'}"
    inputs = CodeInputs(ASK.format(name), buggy)
    return CodeRecord(f"QuixBugs/{name}", family, "test", inputs, gold, (buggy,), tests, python, why, entry_point=name)


def _code(file: Path) -> str:
    try:
        text = unified(file.read_bytes().decode("utf-8-sig"))
        tree(text)
    except (OSError, UnicodeDecodeError, SyntaxError) as fault:
        raise InputError(
            InputProblem(str(file), "cannot be read as Python", str(fault), remedy="fetch it again")
        ) from fault
    return text


def _cases(file: Path, name: str) -> list[list[Any]]:
    """[arguments, expected] of each line; empty if the program has a driver in place of cases."""
    if not file.is_file():
        return []
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            rows.append(_pair(line, f"{file}, line {number}"))
    return [row for row in rows if not (name in SLOW and row[0][0] == SLOW[name])]


def _pair(line: str, where: str) -> list[Any]:
    try:
        given, wanted = json.loads(line)
    except (ValueError, TypeError) as fault:
        raise InputError(InputProblem(where, "not [arguments, expected]", got=str(fault))) from fault
    return [given if isinstance(given, list) else [given], wanted]


def _problem(name: str, cases: list[list[Any]], test: str) -> tuple[PythonProblem | None, str]:
    if not cases:
        return None, "it has a driver in place of cases"
    if "pytest.approx" in test:  # sqrt: within the precision that the last argument asks for
        atol = min(float(given[-1]) for given, _ in cases)
    elif ALWAYS.format(name) in test:
        atol = 0.0
    else:
        return None, "it returns an iterator"
    return PythonProblem(name, tuple(Case(tuple(given), wanted) for given, wanted in cases), atol), ""


def _test_file(test: str, name: str, cases: list[list[Any]]) -> str:
    """Upstream's file with its imports redirected to the modules here."""

    class Turn(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> Any:
            if ast.unparse(node.test) == "pytest.use_correct":
                return tree(f"from solution import {name}").body
            return None if "pytest.skip" in ast.unparse(node) else self.generic_visit(node)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
            return None if node.module == "load_testdata" else node

        def visit_Assert(self, node: ast.Assert) -> Any:
            if "pytest.approx" not in ast.unparse(node) or not isinstance(node.test, ast.Compare):
                return self.generic_visit(node)
            kept = tree(f"got = {ast.unparse(node.test.left)}\nassert isinstance(got, (int, float))").body
            return [*kept, *tree(f"assert got == {ast.unparse(node.test.comparators[0])}").body]

        def visit_Call(self, node: ast.Call) -> Any:
            loads = ast.unparse(node.func) == "load_json_testcases"
            return tree(repr(cases)).body[0].value if loads else self.generic_visit(node)  # type: ignore[attr-defined]

    return ast.unparse(Turn().visit(tree(test))) + "\n"
