"""Rows of a file of candidates: one JSON object a line, read into (id, problem, candidate) by the verifier's format.

Owns the formats of `+stage=verify`. Whatever a row holds, the result is a Row or a Malformed with the key and what is
allowed there. Keys that a format does not name are ignored: data sets have their own.
"""

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.problems import (
    AstGrepProblem,
    Case,
    DafnyProblem,
    Limits,
    PytestProblem,
    PythonProblem,
    StdinCase,
)

_LIMITS = ("cpu_s", "wall_s", "memory_mb")
_LARGEST = 1e6
"""Largest limit or tolerance: more is a mistake."""

RowId = str | int | None
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One candidate to judge."""

    id: RowId
    problem: Any
    candidate: Candidate


@dataclass(frozen=True)
class Malformed:
    """A line that cannot be judged."""

    id: RowId
    """The row's id where it could be read, else None."""
    reason: str


class Fault(ValueError):
    """What is wrong with a row: the key, what it holds, what is allowed."""


def read_row(line: bytes, format: str) -> Row | Malformed:
    """One line of a file; `format` is one of FORMATS. Never raises for what the line holds."""
    identity: RowId = None
    try:
        fields = object_of(line)
        identity = identity_of(fields)
        problem, candidate = FORMATS[format](fields)
        return Row(identity, problem, candidate)
    except Fault as fault:
        return Malformed(identity, str(fault))


def object_of(line: bytes) -> Fields:
    """The JSON object that a line is. Raises Fault."""
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as fault:
        raise Fault(f"not UTF-8: byte {fault.start + 1} of the line is {line[fault.start]:#04x}") from fault
    except json.JSONDecodeError as fault:
        raise Fault(f"not JSON: {fault.msg} at character {fault.pos + 1} of the line") from fault
    except RecursionError as fault:
        raise Fault("not readable: nested too deep") from fault
    except ValueError as fault:  # An integer of more digits than Python reads.
        raise Fault(f"not readable: {fault}") from fault
    if type(value) is not dict:
        raise Fault(f"not a JSON object but {_kind(value)}")
    return value


def identity_of(fields: Fields) -> RowId:
    """The row's id. Raises Fault."""
    value = fields.get("id")
    if type(value) not in (str, int):
        raise Fault(_wrong("id", fields, "a string or an integer"))
    return value


def _python_io(fields: Fields) -> tuple[PythonProblem, Candidate]:
    entry_point = fields.get("entry_point") or ""
    if type(entry_point) is not str:
        raise Fault(_wrong("entry_point", fields, "the function's name, or absent where every case has stdin"))
    given = fields.get("cases")
    if type(given) is not list or not given:
        raise Fault(_wrong("cases", fields, "a list of at least one case"))
    read = _call if entry_point else _program_run
    cases = [read(f"cases[{index}]", case) for index, case in enumerate(given)]
    strict = [kind for _, kind in cases]
    if len(set(strict)) > 1:
        raise Fault("cases: some have expected and some expected_py; use one of the two in all of a row's cases")
    limits, atol = _limits(fields), _atol(fields)
    problem = PythonProblem(entry_point, cast(Any, tuple(case for case, _ in cases)), atol, strict[0], limits)
    return problem, _candidate(fields, "code")


def _pytest(fields: Fields) -> tuple[PytestProblem, Candidate]:
    files = fields.get("files") or {}
    if type(files) is not dict or any(type(text) is not str or not name for name, text in files.items()):
        raise Fault(_wrong("files", fields, "an object of texts by relative file name"))
    reference = _text(fields, "reference") if fields.get("reference") is not None else ""
    problem = PytestProblem(_text(fields, "tests"), tuple(files.items()), _limits(fields), reference)
    return problem, _candidate(fields, "code")


def _dafny(fields: Fields) -> tuple[DafnyProblem, Candidate]:
    keep = _text(fields, "keep") if fields.get("keep") is not None else None
    return DafnyProblem(_text(fields, "program"), _limits(fields), keep=keep), _candidate(fields, "candidate")


def _ast_grep(fields: Fields) -> tuple[AstGrepProblem, Candidate]:
    tests = _text(fields, "tests") if fields.get("tests") is not None else ""
    after = _text(fields, "after") if fields.get("after") is not None or not tests else ""
    problem = AstGrepProblem(_text(fields, "language"), _text(fields, "before"), after, tests, _limits(fields))
    action = fields.get("action")
    if type(action) in (dict, list):
        return problem, Candidate(json.dumps(action, ensure_ascii=False))
    if "action" not in fields or type(action) not in (str, type(None)):
        raise Fault(_wrong("action", fields, "an object: the ast-grep action, or its text"))
    return problem, _candidate(fields, "action")


FORMATS: dict[str, Callable[[Fields], tuple[Any, Candidate]]] = {
    "python_io": _python_io,
    "pytest": _pytest,
    "dafny": _dafny,
    "ast_grep": _ast_grep,
}
"""The reader of each format, by a verifier's `row_format` or name."""


def _candidate(fields: Fields, key: str) -> Candidate:
    """Null stands for a completion without a candidate: judged as a failure to parse."""
    if key in fields and fields[key] is None:
        return Candidate(None, f"{key} is null: no candidate in the answer")
    return Candidate(_text(fields, key))


def _call(where: str, case: Any) -> tuple[Case, bool]:
    """A case of a function, and whether types are strict."""
    if type(case) is dict and "expected_stdout" in case and "args" not in case and "args_py" not in case:
        raise Fault(f"entry_point: given, though {where} is a program's (expected_stdout); leave entry_point out")
    _has_one_of(where, case, "args", "args_py")
    _has_one_of(where, case, "expected", "expected_py")
    args = case["args"] if "args" in case else _literal_args(f"{where}.args_py", case["args_py"])
    if type(args) not in (list, tuple):
        raise Fault(_wrong(f"{where}.args", case, "a list of arguments", "args"))
    if "expected" in case:
        return Case(tuple(args), case["expected"]), False
    return Case(tuple(args), _literal(f"{where}.expected_py", case["expected_py"])), True


def _literal_args(where: str, given: Any) -> list[Any] | tuple[Any, ...]:
    """One literal that holds all arguments, or a list with a literal for each."""
    if type(given) is list:
        return [_literal(f"{where}[{index}]", text) for index, text in enumerate(given)]
    args = _literal(where, given)
    if type(args) not in (list, tuple):
        raise Fault(
            f"{where}: got {_short(given)}, allowed a list or tuple of arguments, as in '(1, [2, 3])' or '(1,)'"
        )
    return args


def _literal(where: str, text: Any) -> Any:
    if type(text) is not str:
        raise Fault(f"{where}: got {_kind(text)}, allowed the text of a Python literal, as in '(1, [2, 3])'")
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as fault:
        what = str(fault).splitlines()[0] if str(fault) else "nested too deep"
        raise Fault(f"{where}: not a Python literal: {_short(text)} ({what[:200]})") from fault


def _program_run(where: str, case: Any) -> tuple[StdinCase, bool]:
    if type(case) is dict and "expected_stdout" not in case and ("args" in case or "args_py" in case):
        raise Fault("entry_point: missing; the function's name, since the cases have args")
    _has_one_of(where, case, "expected_stdout")
    texts = [case.get("stdin", ""), case["expected_stdout"]]
    for key, text in zip(("stdin", "expected_stdout"), texts, strict=True):
        if type(text) is not str:
            raise Fault(_wrong(f"{where}.{key}", case, "text", key))
    return StdinCase(*texts), False


def _has_one_of(where: str, case: Any, *keys: str) -> None:
    if type(case) is not dict:
        raise Fault(f"{where}: got {_kind(case)}, allowed an object")
    count = sum(key in case for key in keys)
    if count != 1:
        fault = "missing" if count == 0 else "both are given"
        raise Fault(f"{where}: {' or '.join(keys)}: {fault}; give {'one of the two' if len(keys) > 1 else 'it'}")


def _atol(fields: Fields) -> float:
    value = fields.get("atol")
    if value is None:
        return 0.0
    if type(value) not in (int, float) or not 0 <= value <= _LARGEST:
        raise Fault(_wrong("atol", fields, f"a number from 0 to {_LARGEST:g}"))
    return float(value)


def _limits(fields: Fields) -> Limits:
    given = fields.get("limits")
    if given is None:
        return Limits()
    if type(given) is not dict or set(given) - set(_LIMITS):
        raise Fault(_wrong("limits", fields, f"an object with {', '.join(_LIMITS)}"))
    named = {name: value for name, value in given.items() if value is not None}
    for name, value in named.items():
        if type(value) not in (int, float) or not 0 < value <= _LARGEST:
            raise Fault(_wrong(f"limits.{name}", given, f"a number above 0, at most {_LARGEST:g}", name))
    memory = named.get("memory_mb", 0)
    if memory != int(memory):
        raise Fault(_wrong("limits.memory_mb", given, "a whole number of MB", "memory_mb"))
    return Limits(float(named.get("cpu_s", 0.0)), float(named.get("wall_s", 0.0)), int(memory))


def _text(fields: Fields, key: str) -> str:
    if type(fields.get(key)) is not str:
        raise Fault(_wrong(key, fields, "text"))
    return fields[key]


def _wrong(where: str, holder: Fields, allowed: str, key: str = "") -> str:
    key = key or where
    got = f"got {_short(holder[key])}" if key in holder else "missing"
    return f"{where}: {got}, allowed {allowed}" if key in holder else f"{where}: {got}; {allowed}"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _short(value: Any) -> str:
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        return _kind(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({_kind(value)})"
