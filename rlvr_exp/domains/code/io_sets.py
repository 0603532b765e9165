"""Public sets whose tests are inputs and outputs: APPS, TACO and LiveCodeBench.

A task is a program that reads standard input, or a function whose name the set gives. LeetCode's functions are methods of a
class `Solution`. The readers follow the releases' own testing code: an output may be wrapped in a list, and of several solutions the
first is the reference that is Python 3.
"""

import base64
import io
import json
import pickle
import re
import zlib
from collections.abc import Sequence
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.cases import problem_of
from rlvr_exp.tasks.code_records import CodeRecord, CodeSet
from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.formats.base import CodeInputs
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.tasks.python_syntax import tree
from rlvr_exp.tasks.rows import Row
from rlvr_exp.tasks.rows import split_of as split_of_row

NO_TESTS = "its tests are inputs and outputs"
NO_CASES = "the set has no tests for it"
ASK_PROGRAM = "Write a Python program that reads standard input and prints its answer."
ASK_FUNCTION = "Write the Python function `{}`."
METHOD = "class Solution"
"""In the starter code of a LeetCode task."""


def _problem(entry: str, tests: Sequence[tuple[Any, Any]]) -> PythonProblem | None:
    """The pairs of input and output as cases. None without tests."""
    if not tests:
        return None
    if entry:
        return problem_of(entry, tuple(Case(tuple(given), wanted) for given, wanted in tests))
    return PythonProblem("", tuple(StdinCase(_as_text(given), _as_text(wanted)) for given, wanted in tests))


def _as_text(lines: Any) -> str:
    """Standard input or output. Some rows give its lines."""
    return "\n".join(map(str, lines)) if isinstance(lines, list) else str(lines)


def _record(
    row: Row,
    of: CodeSet,
    number: str,
    kind: str,
    question: str,
    entry: str,
    tests: Sequence[tuple[Any, Any]],
    gold: str | None = None,
) -> CodeRecord:
    if entry and not all(isinstance(given, list) for given, _ in tests):
        raise InputError(InputProblem(f"{row.where}, {entry}", "an input is no list of arguments"))
    starter = unified(row.text("starter_code", ""))
    name = f"Solution.{entry}" if entry and METHOD in starter else entry
    ask = ASK_FUNCTION.format(name) if name else ASK_PROGRAM
    inputs = CodeInputs(f"{unified(question).strip()}\n\n{ask}", given=starter.strip("\n"))
    return CodeRecord(
        f"{of.name}/{number}",
        f"{of.name}/{kind}",
        split_of_row(row),
        inputs,
        gold,
        (),
        None,
        _problem(name, tests),
        NO_CASES,
        NO_TESTS if tests else NO_CASES,
        entry_point=name,
    )


def _json(row: Row, key: str, kind: type) -> Any:
    """The JSON object or list in a text; empty for an empty text. Raises InputError."""
    text = row.text(key, "")
    try:
        return _of_kind(kind, json.loads(text)) if text else kind()
    except (ValueError, RecursionError) as fault:
        raise InputError(InputProblem(f"{row.where}, {key}", "not the JSON of the set", str(fault)[:200])) from fault


def _of_kind(kind: type, value: Any) -> Any:
    """The value. Raises ValueError if it is of another kind."""
    if not isinstance(value, kind):
        raise ValueError(f"got {type(value).__name__}, allowed {kind.__name__}")
    return value


def _in_and_out(row: Row, of: CodeSet, number: str) -> CodeRecord:
    """APPS (Hendrycks et al. 2021, arXiv:2105.09938) and TACO (Li et al. 2023, arXiv:2312.14852)."""
    given, solutions = _json(row, "input_output", dict), _json(row, "solutions", list)
    inputs, outputs, entry = given.get("inputs", []), given.get("outputs", []), given.get("fn_name", "")
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise InputError(InputProblem(f"{row.where}, input_output", "not as many outputs as inputs"))
    if entry and all(isinstance(one, list) and len(one) == 1 for one in outputs):
        outputs = [one[0] for one in outputs]
    tests = [*zip(inputs, outputs, strict=True)]
    return _record(
        row, of, number, row.text("difficulty").lower(), row.text("question"), entry, tests, _first_python(solutions)
    )


def _first_python(solutions: Sequence[Any]) -> str | None:
    """The first solution that is Python 3: some are Python 2."""
    for text in map(unified, filter(None, map(str, solutions))):
        try:
            tree(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        return text
    return None


def _apps(row: Row) -> CodeRecord:
    return _in_and_out(row, APPS, str(row.values["problem_id"]))


APPS = CodeSet(
    "apps", _apps, frozenset({"problem_id", "question", "solutions", "input_output", "difficulty", "starter_code"}), ()
)


def _taco(row: Row) -> CodeRecord:
    """TACO numbers no task: the id is the row's place."""
    return _in_and_out(row, TACO, re.sub(r"\W+", "-", row.where.rpartition("/")[2]))


TACO = CodeSet(
    "taco",
    _taco,
    frozenset({"question", "solutions", "input_output", "difficulty", "starter_code", "skill_types", "raw_tags"}),
    (),
    without=frozenset({"problem_id"}),
)


def _livecodebench(row: Row) -> CodeRecord:
    """LiveCodeBench (Jain et al. 2024, arXiv:2403.07974). It has no reference solutions."""
    entry = _json(row, "metadata", dict).get("func_name", "")
    tests = [test for key in ("public_test_cases", "private_test_cases") for test in _packed(row, key)]
    kind = f"{row.text('platform')}/{row.text('difficulty')}"
    return _record(row, LIVECODEBENCH, row.text("question_id"), kind, row.text("question_content"), entry, tests)


def _packed(row: Row, key: str) -> list[tuple[Any, Any]]:
    """Tests as JSON, or as the release packs its private ones: JSON in a pickle, compressed, in base64."""
    text = row.text(key)
    try:
        plain = text if text[:1] in ("[", "") else _Plain(io.BytesIO(zlib.decompress(base64.b64decode(text)))).load()
        return [_test(_of_kind(dict, one)) for one in _of_kind(list, json.loads(plain or "[]"))]
    except (ValueError, TypeError, KeyError, EOFError, zlib.error, pickle.UnpicklingError) as fault:
        raise InputError(InputProblem(f"{row.where}, {key}", "not the tests of the set", str(fault)[:200])) from fault


class _Plain(pickle.Unpickler):
    """Reads plain data alone: any class in a pickle could run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"names {module}.{name}")


def _test(test: dict[str, Any]) -> tuple[Any, Any]:
    """Input and output. Of a function, the input has an argument in each line, as JSON. Raises KeyError, ValueError."""
    given, wanted = _of_kind(str, test["input"]), _of_kind(str, test["output"])
    if test["testtype"] == "stdin":
        return given, wanted
    return [json.loads(line) for line in given.splitlines()], json.loads(wanted)


LIVECODEBENCH = CodeSet(
    "livecodebench",
    _livecodebench,
    frozenset(
        {"question_content", "question_id", "platform", "starter_code", "public_test_cases", "private_test_cases"}
    ),
    (),
)
