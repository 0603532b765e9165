"""Tests in the form of calls, a line each: `f([1, 2], 'a') == [2]`. Arguments and value are literals, so that a test can look into nothing.

The value may be `pytest.approx(0.3)`, and a call may stand in `with pytest.raises(ValueError):`.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.tasks.completion import fenced_blocks, unquoted, without_thoughts
from rlvr_exp.tasks.formats.python_io import Case
from rlvr_exp.tasks.python_syntax import syntax_fault, tree

MOST_LINES = 32
"""Lines that are read; those after them are faulty."""
LONGEST = 500
"""Characters of a line."""
DEEPEST = 64
"""How deep the values of a test may be nested."""
_LOOKED_AT = 4 * MOST_LINES
"""Lines of a block among which a test is searched."""
_JOINED = 12
"""The most lines of one test."""
_LIST_MARK = re.compile(r"(?:[-*+•]|\(?\d{1,3}[.):])\s+")
_SCAFFOLD = re.compile(
    r"import (?:pytest|re)|from pytest import .*|def test\w*\(\)(\s*->\s*None)?:|\"{3}.*\"{3}|'{3}.*'{3}"
)
_ERRORS = {
    name: kind.__name__
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}
"""Exceptions that a test may name: a class of the program's own it cannot know."""


@dataclass(frozen=True)
class Raises:
    """Expected of a call that raises one of these built-in exceptions."""

    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"pytest.raises({self.names[0] if len(self.names) == 1 else '(' + ', '.join(self.names) + ')'})"


@dataclass(frozen=True)
class Approx:
    """Expected of a call that returns about this number, or these numbers; the tolerances are those of `pytest.approx`."""

    value: Any
    rel: float | None = None
    abs: float | None = None

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in (("rel", self.rel), ("abs", self.abs)) if value is not None]
        return f"pytest.approx({', '.join([repr(self.value), *given])})"

    def tolerance(self, number: float) -> float:
        """The greater of both tolerances; `rel` is 1e-6 and `abs` 1e-12 by default, but for `rel` if `abs` is given alone."""
        if self.abs is not None and self.rel is None:
            return self.abs
        return max((1e-6 if self.rel is None else self.rel) * abs(number), 1e-12 if self.abs is None else self.abs)


def line_of(name: str, case: Case) -> str:
    """A test in a line: a call with its value, or with the exception that it raises."""
    call = f"{name}({', '.join(map(repr, case.args))})"
    return f"with {case.expected!r}: {call}" if isinstance(case.expected, Raises) else f"{call} == {case.expected!r}"


@dataclass(frozen=True)
class CallsProblem:
    """Tests are wanted, for a reference that they must hold of, and that tell programs apart from it."""

    entry_point: str
    reference: str
    programs: tuple[str, ...] = ()
    """Those that tests are run on; a test catches a program that returns something else than the reference."""
    together: tuple[str, ...] = ()
    """Texts of tests that are judged for the same programs, this one among them: each program runs once, on the calls of all."""
    known: tuple[tuple[Any, ...], ...] = ()
    """Arguments of the problem's own calls: a test has such arguments (rlvr_exp.tasks.arguments)."""
    atol: float = 0.0
    rtol: float = 0.0


def calls_of(texts: Sequence[str], entry_point: str) -> tuple[Case, ...]:
    """The different calls of several texts of tests, as cases without a value."""
    found = {repr(case.args): case.args for text in texts for case in read_tests(text, entry_point).cases}
    return tuple(Case(args, None) for args in found.values())


def literal_calls(source: str, entry_point: str) -> Iterator[tuple[Any, ...]]:
    """The arguments of a function's calls in a program, such as a test file, if they are literals."""
    for node in ast.walk(ast.Module([], []) if syntax_fault(source) else tree(source)):
        if isinstance(node, ast.Call):
            try:
                args = _arguments(node, entry_point)
            except (ValueError, TypeError, MemoryError, RecursionError):
                continue
            if args is not None:
                yield args


@dataclass(frozen=True)
class WrittenTests:
    """Tests that were read from a text."""

    cases: tuple[Case, ...]
    """Calls with different arguments, in order."""
    faulty: int
    """Lines that are no test."""
    repeated: tuple[str, ...]
    """Lines whose call an earlier line has, or one of equal value for which it expects the same."""

    @property
    def duplicates(self) -> int:
        return len(self.repeated)

    @property
    def lines(self) -> int:
        return len(self.cases) + self.faulty + self.duplicates


def read_tests(text: str, entry_point: str) -> WrittenTests:
    """The tests in an answer: of its fenced blocks with tests, else of all its lines, without thoughts.

    A line is a test or faulty. It may begin with `assert` or the mark of a list, and stand in backticks. Comments, imports of pytest
    and of the function, heads of test functions and words that lead to a list of tests are no lines.
    """
    found: dict[str, Case] = {}
    faulty, repeated = 0, []
    for line, case in _chosen(without_thoughts(text), entry_point):
        if case is None:
            faulty += 1
        elif repr(case.args) in found or any(_agree(case, one) for one in found.values()):
            repeated.append(line)
        else:
            found[repr(case.args)] = case
    return WrittenTests(tuple(found.values()), faulty, tuple(repeated))


def _agree(case: Case, other: Case) -> bool:
    """Whether two tests differ in nothing but types: `f([1]) == 1` and `f((True,)) == 1.0`. An approximate value may be any."""
    if _normal(case.args) != _normal(other.args):
        return False
    expected = case.expected, other.expected
    if any(isinstance(one, Raises) for one in expected):
        return all(isinstance(one, Raises) for one in expected)
    return any(isinstance(one, Approx) for one in expected) or _normal(expected[0]) == _normal(expected[1])


def _normal(value: Any) -> Any:
    """A value whatever the types of its numbers and containers."""
    if isinstance(value, dict):
        return "dict", frozenset((_normal(key), _normal(item)) for key, item in value.items())
    if isinstance(value, (set, frozenset)):
        return "items", tuple(sorted(map(_normal, value), key=repr))
    return ("items", tuple(map(_normal, value))) if isinstance(value, (list, tuple)) else value


def _chosen(text: str, entry_point: str) -> Iterator[tuple[str, Case | None]]:
    text = unquoted(text)
    blocks, lines = fenced_blocks(text), text.split("\n")
    outside = list(lines)
    for block in blocks:
        outside[block.start - 1 : block.end + block.closed] = [""] * (block.end + block.closed - block.start + 1)
    tested = [block for block in blocks if _any_test(block.text.split("\n"), entry_point)]
    several = [block for block in tested if not block.in_one_line]
    if own := several or ([] if _any_test(outside, entry_point) else tested):
        return _tests([line for block in own for line in block.text.split("\n")], entry_point, MOST_LINES)
    for block in tested:  # Some tests of a list are in fences.
        outside[block.end] = block.text.strip()
    lines = outside if _any_test(outside, entry_point) else lines
    return _tests([line for line in lines if not _is_fence(line)], entry_point, MOST_LINES)


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith(("```", "~~~")) and not line.strip("`~ \t")


def _any_test(lines: Sequence[str], entry_point: str) -> bool:
    return any(case for _, case in _tests(lines[:_LOOKED_AT], entry_point, _LOOKED_AT))


def _tests(lines: Sequence[str], entry_point: str, most: int) -> Iterator[tuple[str, Case | None]]:
    """Each line that counts with its test; those after `most` are faulty."""
    imported = re.compile(rf"from [\w.]+ import (?:.*\W)?{re.escape(entry_point)}\b.*")
    at = count = 0
    while at < len(lines):
        line, at = _bare(lines[at], entry_point), at + 1
        if (
            not line
            or line.startswith("#")
            or _SCAFFOLD.fullmatch(line)
            or imported.fullmatch(line)
            or _leads(line, entry_point)
        ):
            continue
        count += 1
        joined = 0
        case = _case(line, entry_point) if count <= most else None
        if case is None and count <= most:
            joined, case = _joined(line, lines[at : at + _JOINED], entry_point)
        yield " ".join([line, *(one.strip() for one in lines[at : at + joined])]), case
        at += joined


def _bare(line: str, entry_point: str) -> str:
    """A line without the mark of a list, emphasis and the words around its inline code."""
    line = _LIST_MARK.sub("", line.strip(), count=1) if _LIST_MARK.match(line.strip()) else line.strip()
    spans = line.split("`")[1::2] if "`" in line else []
    line = next((span.strip() for span in spans if f"{entry_point}(" in span), line)
    line = line.strip("*").strip()
    return line if _is_open(line) else line.rstrip(",;")


def _leads(line: str, entry_point: str) -> bool:
    """Whether a line is words before tests, such as `Edge cases:`."""
    return (
        line.endswith(":")
        and f"{entry_point}(" not in line
        and len(line) <= LONGEST
        and syntax_fault(f"{line} 0") is not None
    )


def _joined(line: str, following: Sequence[str], entry_point: str) -> tuple[int, Case | None]:
    """A test that goes on, with an open bracket or the body of a `with`: the number of further lines, and the test."""
    for number, one in enumerate(following, 1):
        is_open = _is_open(line)
        is_head = not is_open and line.startswith("with ") and line.endswith(":")
        is_body = is_head and one[:1].isspace()
        if len(line) > LONGEST or not (is_open or is_body or (is_head and not one.strip())):
            break
        line = f"{line} {one.strip()}".rstrip()
        case = _case(line, entry_point)
        if case is not None or (is_body and one.strip() and not _is_open(line)):
            return number, case
    return 0, None


def _is_open(line: str) -> bool:
    return sum(map(line.count, "([{")) > sum(map(line.count, ")]}"))


def _case(line: str, entry_point: str) -> Case | None:
    """The test of a line; None if it is none."""
    if len(line) > LONGEST:
        return None
    try:
        (statement,) = ast.parse(line).body
        match statement:
            case ast.Expr(ast.Call(func, [kind, ast.Name(name), *args], [])) if _is_of_pytest(func, "raises"):
                case = _raising(kind, ast.Call(ast.Name(name), args, []), entry_point)
            case ast.With([ast.withitem(ast.Call(func, [kind], given))], [ast.Expr(call)]) if _is_of_pytest(
                func, "raises"
            ) and all(map(_is_message, given)):
                case = _raising(kind, call, entry_point)
            case ast.Assert(test) | ast.Expr(test):
                case = _returning(test, entry_point)
            case _:
                case = None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None  # No test: the caller counts it.
    return case


def _raising(kind: ast.expr, call: ast.expr, entry_point: str) -> Case | None:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    names = tuple(_ERRORS.get(one.id, "") if isinstance(one, ast.Name) else "" for one in kinds)
    args = _arguments(call, entry_point)
    return Case(args, Raises(names)) if names and all(names) and args is not None else None


def _returning(test: ast.expr, entry_point: str) -> Case | None:
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            call, wanted = (left, right) if _arguments(left, entry_point) is not None else (right, left)
        case ast.Compare(call, [ast.Is()], [ast.Constant(bool() | None) as wanted]):
            pass
        case _:
            return None
    args, expected = _arguments(call, entry_point), _expected(wanted)
    return Case(args, expected) if args is not None and _is_data(expected, DEEPEST - 1) else None


def _arguments(call: ast.expr, entry_point: str) -> tuple[Any, ...] | None:
    """The literal arguments of a call of the function; None: it is none, or they are no data."""
    match call:
        case ast.Call(ast.Name(name), args, []) if name == entry_point:
            given = tuple(ast.literal_eval(one) for one in args)
            return given if _is_data(given, DEEPEST - 1) else None
    return None


def _expected(wanted: ast.expr) -> Any:
    """Raises ValueError if the expression is no literal."""
    match wanted:
        case ast.Call(func, [value], keywords) if _is_of_pytest(func, "approx"):
            limits = {str(one.arg): ast.literal_eval(one.value) for one in keywords}
            number = ast.literal_eval(value)
            if limits.keys() - {"rel", "abs"} or not all(_is_number(one) and one >= 0 for one in limits.values()):
                raise ValueError("an unknown tolerance")
            if not _are_numbers(number):
                raise ValueError("no numbers")
            return Approx(number, **limits)
    return ast.literal_eval(wanted)


def _is_of_pytest(func: ast.expr, name: str) -> bool:
    match func:
        case ast.Attribute(ast.Name("pytest"), found) | ast.Name(found):
            return found == name
    return False


def _is_message(given: ast.keyword) -> bool:
    """Whether an argument is the pattern of a message. It is not compared, since a program may word its messages
    freely."""
    match given:
        case ast.keyword("match", ast.Constant(str())):
            return True
        case ast.keyword("match", ast.Call(ast.Attribute(ast.Name("re"), "escape"), [ast.Constant(str())], [])):
            return True
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_numbers(value: Any) -> bool:
    """Numbers as `pytest.approx` takes them: one, or a list, tuple or dict of them."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
    return all(map(_is_number, parts))


def _is_data(value: Any, left: int) -> bool:
    """Whether a literal can be an argument or a return value: `...` cannot, nor can deeper nesting."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    if isinstance(parts, (list, tuple, set)):
        return left > 0 and all(_is_data(part, left - 1) for part in parts)
    return value is not ...
