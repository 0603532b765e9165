"""Python functions and programs judged on cases: arguments and the value to return, or standard input and output."""

import ast
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from rlvr_exp.tasks.formats.base import CodeInputs, PythonFormat, program_prompt
from rlvr_exp.tasks.formats.fields import LARGEST, Fault, Fields, Limits, kind_of, limits_of, short, wrong

SHOWN = 3
"""Cases shown by a prompt that is written from a problem."""
RTOL = 1e-7
"""Relative tolerance of rows that give `atol` alone: the default of `numpy.testing.assert_allclose`, and EvalPlus's."""


@dataclass(frozen=True)
class Case:
    """One call of a Python candidate and the value it must return. Plain data: JSON types and tuples, nothing else."""

    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class StdinCase:
    """One run of a program: its standard input and its expected output."""

    stdin: str
    expected_stdout: str


def expected_of(case: Case | StdinCase) -> Any:
    """The expected return value or output of a case."""
    return case.expected if isinstance(case, Case) else case.expected_stdout


@dataclass(frozen=True)
class PythonProblem:
    """A Python function, or a complete program, to write, judged on cases.

    With an `entry_point` every case is a `Case`; without one the candidate is a program and every case a `StdinCase`.
    `strict` distinguishes tuples from lists (expected values from Python literals); without it they are equal (expected
    values from JSON). A bool is never an int. Floats may differ by `atol + rtol * abs(expected)`.
    """

    entry_point: str
    cases: tuple[Case, ...] | tuple[StdinCase, ...]
    atol: float = 0.0
    strict: bool = False
    limits: Limits = Limits()
    rtol: float = 0.0

    @property
    def comparison(self) -> tuple[bool, float, float]:
        """The rules of comparison: `strict`, `atol`, `rtol`."""
        return self.strict, self.atol, self.rtol


class PythonIO(PythonFormat):
    name = "python_io"
    problem = PythonProblem
    keys = ("cases",)

    def read_problem(self, fields: Fields) -> PythonProblem:
        entry_point = fields.get("entry_point") or ""
        if type(entry_point) is not str:
            raise Fault(wrong("entry_point", fields, "the function's name, or absent where every case has stdin"))
        given = fields.get("cases")
        if type(given) is not list or not given:
            raise Fault(wrong("cases", fields, "a list of at least one case"))
        read = _call if entry_point else _program_run
        cases = [read(f"cases[{index}]", case) for index, case in enumerate(given)]
        strict = [kind for _, kind in cases]
        if len(set(strict)) > 1:
            raise Fault("cases: some have expected and some expected_py; use one of the two in all of a row's cases")
        found = cast(Any, tuple(case for case, _ in cases))
        return PythonProblem(entry_point, found, strict=strict[0], limits=limits_of(fields), **tolerances_of(fields))

    def prompt(self, problem: PythonProblem) -> str:
        cases = problem.cases[:SHOWN]
        if isinstance(cases[0], StdinCase):
            runs = "For the input\n\n```\n{}\n```\n\nit prints\n\n```\n{}\n```"
            shown = [runs.format(one.stdin, one.expected_stdout) for one in cases]
            lead = "Write a Python program that reads standard input and prints its answer."
            return program_prompt(CodeInputs("\n\n".join([lead, *shown])))
        calls = [f"assert {problem.entry_point}({', '.join(map(repr, one.args))}) == {one.expected!r}" for one in cases]
        return program_prompt(CodeInputs(f"Write the Python function `{problem.entry_point}`.", given="\n".join(calls)))


def _call(where: str, case: Any) -> tuple[Case, bool]:
    """A case of a function, and whether types are strict."""
    if type(case) is dict and "expected_stdout" in case and "args" not in case and "args_py" not in case:
        raise Fault(f"entry_point: given, though {where} is a program's (expected_stdout); leave entry_point out")
    _has_one_of(where, case, "args", "args_py")
    _has_one_of(where, case, "expected", "expected_py")
    args = case["args"] if "args" in case else _literal_args(f"{where}.args_py", case["args_py"])
    if type(args) not in (list, tuple):
        raise Fault(wrong(f"{where}.args", case, "a list of arguments", "args"))
    if "expected" in case:
        return Case(tuple(args), case["expected"]), False
    return Case(tuple(args), _literal(f"{where}.expected_py", case["expected_py"])), True


def _literal_args(where: str, given: Any) -> list[Any] | tuple[Any, ...]:
    """One literal that holds all arguments, or a list with a literal for each."""
    if type(given) is list:
        return [_literal(f"{where}[{index}]", text) for index, text in enumerate(given)]
    args = _literal(where, given)
    if type(args) not in (list, tuple):
        raise Fault(f"{where}: got {short(given)}, allowed a list or tuple of arguments, as in '(1, [2, 3])' or '(1,)'")
    return args


def _literal(where: str, text: Any) -> Any:
    if type(text) is not str:
        raise Fault(f"{where}: got {kind_of(text)}, allowed the text of a Python literal, as in '(1, [2, 3])'")
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as fault:
        what = str(fault).splitlines()[0] if str(fault) else "nested too deep"
        raise Fault(f"{where}: not a Python literal: {short(text)} ({what[:200]})") from fault


def _program_run(where: str, case: Any) -> tuple[StdinCase, bool]:
    if type(case) is dict and "expected_stdout" not in case and ("args" in case or "args_py" in case):
        raise Fault("entry_point: missing; the function's name, since the cases have args")
    _has_one_of(where, case, "expected_stdout")
    texts = [case.get("stdin", ""), case["expected_stdout"]]
    for key, text in zip(("stdin", "expected_stdout"), texts, strict=True):
        if type(text) is not str:
            raise Fault(wrong(f"{where}.{key}", case, "text", key))
    return StdinCase(*texts), False


def _has_one_of(where: str, case: Any, *keys: str) -> None:
    if type(case) is not dict:
        raise Fault(f"{where}: got {kind_of(case)}, allowed an object")
    count = sum(key in case for key in keys)
    if count != 1:
        fault = "missing" if count == 0 else "both are given"
        raise Fault(f"{where}: {' or '.join(keys)}: {fault}; give {'one of the two' if len(keys) > 1 else 'it'}")


class Tolerances(TypedDict):
    """Of a problem: how far floats may differ from the expected values."""

    atol: float
    rtol: float


def tolerances_of(fields: Fields) -> Tolerances:
    """`atol` and `rtol` of a row, 0 by default; a row that gives `atol` alone has RTOL as well. Raises Fault."""
    atol = _tolerance(fields, "atol", 0.0, LARGEST)
    return {"atol": atol, "rtol": _tolerance(fields, "rtol", RTOL if atol else 0.0, 1)}


def _tolerance(fields: Fields, key: str, default: float, largest: float) -> float:
    value = fields.get(key)
    if value is None:
        return default
    if type(value) not in (int, float) or not 0 <= value <= largest:
        raise Fault(wrong(key, fields, f"a number from 0 to {largest:g}"))
    return float(value)
