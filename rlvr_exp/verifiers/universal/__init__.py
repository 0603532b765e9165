"""Fixed answers: programs that know nothing of their task. An answer that passes shows a hole in a verifier or a weak
suite. Owns which list belongs to which kind of problem; a list is a module with `ANSWERS`, pairs of a name and a
function that builds the answer's text from a part of the problem: for Python the names which its tests take from a
solution. A format of a domain has its own function (`Format.fixed_answers`).
Builds text and runs nothing.
"""

import ast
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.domains import load
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.tasks.formats.rows import format_of
from rlvr_exp.tasks.python_syntax import tree
from rlvr_exp.verifiers.suite.shape import uses_of

KINDS = ("none", "plain", "all")
"""Which fixed answers are tried: `plain`, those that return plain data or raise; `all`, those that attack, too."""
PYTHON = "rlvr_exp.verifiers.universal.functions"
PROGRAMS = "rlvr_exp.verifiers.universal.programs"


@dataclass(frozen=True)
class AnswerList:
    """A list. `module`: where it is; `given`: the part of a problem from which its functions build."""

    module: str
    given: Callable[[Any], Any]


def _answers_of(problem: Any) -> AnswerList | None:
    match problem:
        case PythonProblem(entry_point=""):
            return AnswerList(PROGRAMS, lambda _: None)
        case PythonProblem() | PytestProblem():
            return AnswerList(PYTHON, wanted_names)
    return None


def fixed_answers(problem: Any, kind: str = "all") -> Iterator[tuple[str, str]]:
    """(name, text) of each fixed answer to a problem; none where its verifier has no list."""
    form = format_of(problem)
    if form is not None and form.fixed_answers and kind != "none":
        yield from load(form.fixed_answers)(problem, kind)
    yield from _listed(problem, kind)


def _listed(problem: Any, kind: str) -> Iterator[tuple[str, str]]:
    answers = _answers_of(problem) if kind != "none" else None
    if answers is None or importlib.util.find_spec(answers.module) is None:
        return
    listed = importlib.import_module(answers.module)
    given = answers.given(problem)
    plain = getattr(listed, "PLAIN", None)
    for name, build in listed.ANSWERS:
        if kind == "all" or plain is None or name in plain:
            yield name, build(given)


MODULE = "solution"


def wanted_names(problem: PythonProblem | PytestProblem) -> tuple[str, ...]:
    """The names in order of first use: the entry point, or what the suite imports from `solution` or reads from it. Of a suite that
    imports `*`, also what it reads and nowhere binds, sorted."""
    if isinstance(problem, PythonProblem):
        return (problem.entry_point,)
    found: dict[str, None] = {}
    for text in (problem.tests, *(text for name, text in problem.files if name.endswith(".py"))):
        nodes = list(ast.walk(_parsed(text)))
        for node in nodes:
            found.update(dict.fromkeys(_names_in(node)))
        if any(_imports_all(node) for node in nodes):
            found.update(dict.fromkeys(uses_of((text,)).stars))
    return tuple(found)


def _imports_all(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == MODULE and any(one.name == "*" for one in node.names)


def _parsed(text: str) -> ast.AST:
    try:
        return tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])  # no Python takes no name; the verifier gives no verdict, with the reason


def _names_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and node.module == MODULE:
        return [alias.name for alias in node.names if alias.name != "*"]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == MODULE:
        return [node.attr]
    return []
