"""The tests of a code set as cases: `assert f(ARGS) == VALUE` with literals on both sides, and nothing else.

Reads syntax trees; runs nothing. Tests of any other form give no cases, with the reason. A set that names no function means
one that the tests call and the solution defines.

Cases are weak if a program passes them that knows nothing of them: one value for every input, or the unchanged argument.
Decided from arguments and expected values. Tests that are programs are checked by `+stage=validate`, with many more fixed
answers. Equality is that of the verifier: Python's own in test files, python_io's on cases.
"""

import ast
import math
from collections.abc import Callable, Iterable
from typing import Any

from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.tasks.python_syntax import tree


class NoCases(Exception):
    """The tests check more than cases can express; its text is the reason."""


def cases_of(statements: Iterable[ast.stmt], name: str) -> tuple[Case, ...]:
    """One case for each assert on calls of `name`. Raises NoCases."""
    found = tuple(_case(statement, name) for statement in statements)
    if not found:
        raise NoCases("it has no tests")
    return found


def problem_of(entry_point: str, cases: tuple[Case, ...], atol: float = 0.0, rtol: float = 0.0) -> PythonProblem:
    """The cases as a problem. Types are strict only where JSON lacks an expected value."""
    strict = not all(is_json(case.expected, tuples=True) for case in cases)
    return PythonProblem(entry_point, cases, atol, strict, rtol=rtol)


def is_json(value: Any, tuples: bool = False) -> bool:
    """Whether JSON can hold a value unchanged; with `tuples`, as a list if it is a tuple."""
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is list or (tuples and type(value) is tuple):
        return all(is_json(part, tuples) for part in value)
    if type(value) is dict:
        return all(type(key) is str and is_json(part, tuples) for key, part in value.items())
    return value is None or type(value) in (bool, int, str)


def written(value: Any) -> str:
    """A literal whose value this is; equal values have equal text, so sets are written in order."""
    if type(value) is float and math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    if type(value) in (list, tuple):
        inside = ", ".join(map(written, value))
        return f"[{inside}]" if type(value) is list else f"({inside}{',' * (len(value) == 1)})"
    if type(value) is dict:
        return "{" + ", ".join(f"{written(key)}: {written(part)}" for key, part in value.items()) + "}"
    if type(value) is set:
        return "{" + ", ".join(sorted(map(written, value))) + "}" if value else "set()"
    return repr(value)


def statements_of(texts: Iterable[str]) -> list[ast.stmt]:
    """The statements of all texts. Raises SyntaxError."""
    return [node for text in texts for node in tree(unified(text)).body]


def asserts_of(test: str, function: str = "check") -> list[ast.stmt]:
    """The body of a test function in a text, without statements that assert nothing. Raises NoCases."""
    found = [n for n in tree(unified(test)).body if isinstance(n, ast.FunctionDef) and n.name == function]
    if len(found) != 1:
        raise NoCases(f"no single function {function}")
    return [node for node in found[0].body if not _idle(node)]


def _idle(node: ast.stmt) -> bool:
    """Whether it is a docstring, `pass` or `assert True`."""
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and node.test.value is True
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _case(node: ast.stmt, name: str) -> Case:
    test = node.test if isinstance(node, ast.Assert) else None
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is)):
        raise NoCases(f"a test is not an assert like f(1) == 2: {_shown(node)}")
    call, value = test.left, test.comparators[0]
    if not (
        isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name and not call.keywords
    ):
        raise NoCases(f"a test is no plain call of {name}: {_shown(node)}")
    return Case(tuple(literal(arg) for arg in call.args), literal(value))


def literal(node: ast.expr) -> Any:
    """The value of a literal. Raises NoCases."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as fault:
        raise NoCases(f"no literal: {_shown(node)}") from fault


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 80 else f"{text[:77]}..."


def called(tests: Iterable[str], gold: str) -> str:
    """The first function or class of the solution that the tests call, in their order; empty if none does."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in tree(gold).body if isinstance(node, kinds)}
    for test in tests:
        for node in ast.walk(tree(unified(test))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
                return node.func.id
    return ""


def taken(suite: str, gold: str) -> str:
    """Of the functions that a pytest file takes from `solution`, the one that the solution defines last, after its helpers; of
    none, the last function of the solution; empty if it has no function. Raises SyntaxError."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = [node.name for node in tree(gold).body if isinstance(node, kinds)]
    wanted = {name for node in ast.walk(tree(suite)) for name in _from_solution(node)}
    return next((name for name in reversed(defined) if name in wanted), defined[-1] if defined else "")


def _from_solution(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.ImportFrom(module="solution"):
            return [alias.name for alias in node.names]
        case ast.Attribute(ast.Name("solution"), name):
            return [name]
    return []


def statements(program: str) -> int:
    """Number of statements in a program: a measure of difficulty for every set."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree(program)))


WEAK = "its cases accept a fixed answer"
"""The reason why a task is left out, before the answer."""
_VALUES: tuple[Any, ...] = (None, True, False, 0, 1, -1, "", [], (), {}, set(), [[]])
_ARGUMENTS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "its first argument": lambda args: args[0] if args else None,
    "its last argument": lambda args: args[-1] if args else None,
    "its arguments": lambda args: args,
}


def fixed_answer(problem: PythonProblem, judge: str) -> str:
    """A fixed answer that passes all cases, in words; empty if there is none."""
    cases = [case for case in problem.cases if isinstance(case, Case)]
    if not cases:
        return ""  # Programs by their output.
    kind = tuple if problem.strict else list

    def equal(one: Any, other: Any) -> bool:
        return one == other if judge == "pytest" else _typed(one, kind) == _typed(other, kind)

    for value in _VALUES:
        if all(equal(value, case.expected) for case in cases):
            return repr(value)
    return next((name for name, of in _ARGUMENTS.items() if all(equal(of(c.args), c.expected) for c in cases)), "")


def _typed(value: Any, sequence: type) -> Any:
    """The kind of a value: bools and texts are distinguished from numbers; tuples are `sequence`."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list | tuple):
        kind = sequence if isinstance(value, tuple) else list
        return (kind.__name__, [_typed(part, sequence) for part in value])
    if isinstance(value, dict):
        return ("dict", {key: _typed(part, sequence) for key, part in value.items()})
    return value


def content_of(problem: PytestProblem | PythonProblem) -> Any:
    """A problem in hashable form: cases may hold sets and numbers that JSON lacks."""
    if isinstance(problem, PytestProblem):
        return problem
    parts = [
        (one.args, one.expected) if isinstance(one, Case) else (one.stdin, one.expected_stdout) for one in problem.cases
    ]
    return [problem.entry_point, [*map(written, parts)], *problem.comparison, problem.limits]
