"""Tests in the form of calls, a line each: `f([1, 2], 'a') == [2]`. Arguments and value are literals, so that a test can look into nothing."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.tasks.formats.python_io import Case

MOST_LINES = 32
"""Lines that are read; those after them are faulty."""
LONGEST = 500
"""Characters of a line."""
DEEPEST = 64
"""How deep the values of a test may be nested."""


@dataclass(frozen=True)
class CallsProblem:
    """Tests are wanted, for a reference that they must hold of, and that tell programs apart from it."""

    entry_point: str
    reference: str
    programs: tuple[str, ...] = ()
    """Those that tests are run on; a test catches a program that returns something else than the reference."""
    together: tuple[str, ...] = ()
    """Texts of tests that are judged for the same programs, this one among them: each program runs once, on the calls of all."""


def calls_of(texts: Sequence[str], entry_point: str) -> tuple[Case, ...]:
    """The different calls of several texts of tests, as cases without a value."""
    found = {repr(case.args): case.args for text in texts for case in read_tests(text, entry_point).cases}
    return tuple(Case(args, None) for args in found.values())


@dataclass(frozen=True)
class WrittenTests:
    """What a text of tests says."""

    cases: tuple[Case, ...]
    """Calls with different arguments, in order."""
    faulty: int
    """Lines that are no test."""
    repeated: tuple[str, ...]
    """Lines whose call an earlier line has."""

    @property
    def duplicates(self) -> int:
        return len(self.repeated)

    @property
    def lines(self) -> int:
        return len(self.cases) + self.faulty + self.duplicates


def read_tests(text: str, entry_point: str) -> WrittenTests:
    """Every line that is not empty is a test or faulty; a line may begin with `assert`."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    found: dict[str, Case] = {}
    faulty, repeated = 0, []
    for place, line in enumerate(lines):
        case = _case(line, entry_point) if place < MOST_LINES else None
        if case is None:
            faulty += 1
        elif repr(case.args) in found:
            repeated.append(line)
        else:
            found[repr(case.args)] = case
    return WrittenTests(tuple(found.values()), faulty, tuple(repeated))


def _case(line: str, entry_point: str) -> Case | None:
    """The test of a line; None where it is none."""
    if len(line) > LONGEST:
        return None
    try:
        (statement,) = ast.parse(line.removeprefix("assert "), mode="exec").body
        match statement:
            case ast.Expr(ast.Compare(ast.Call(ast.Name(name), args, []), [ast.Eq()], [expected])):
                given = tuple(ast.literal_eval(one) for one in args)
                case = Case(given, ast.literal_eval(expected))
                return case if name == entry_point and _is_data((given, case.expected), DEEPEST) else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass  # No test: the caller counts it.
    return None


def _is_data(value: Any, left: int) -> bool:
    """Whether a literal is what programs are given and return: `...` is none, nor what is nested deeper than that."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    if isinstance(parts, (list, tuple, set)):
        return left > 0 and all(_is_data(part, left - 1) for part in parts)
    return value is not ...
