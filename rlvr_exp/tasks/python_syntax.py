"""Syntax trees of Python programs: parsing, syntax errors, and the names that a scope binds."""

import ast
import warnings
from collections.abc import Iterable, Iterator

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
NAMES: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
"""The field of a node that holds the name of a variable."""
OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def syntax_fault(source: str) -> tuple[int, str] | None:
    """The first line that is no Python, and its error; None for a valid program."""
    try:
        tree(source)
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        return 1, f"too deep or not text: {error or type(error).__name__}"
    return None


def tree(source: str) -> ast.Module:
    """The program as a syntax tree. Raises SyntaxError, ValueError, RecursionError or MemoryError."""
    with warnings.catch_warnings():
        # A candidate's odd escapes must not raise a warning of this program.
        warnings.simplefilter("ignore")
        return ast.parse(source)


ANY_EXCEPTION = "*"


def exceptions(module: ast.Module) -> set[str]:
    """Names of the classes that `raise` and `assert` statements name, with the bases of the module's own; `ANY_EXCEPTION` if a
    statement names none."""
    bases = {node.name: node.bases for node in ast.walk(module) if isinstance(node, ast.ClassDef)}
    raised = [node.exc for node in ast.walk(module) if isinstance(node, ast.Raise)]
    ahead = [one.func if isinstance(one, ast.Call) else one for one in raised]
    found = {"AssertionError"} if any(isinstance(node, ast.Assert) for node in ast.walk(module)) else set()
    while ahead:
        match ahead.pop():
            case ast.Name(name) | ast.Attribute(attr=name):
                ahead += [] if name in found else bases.get(name, [])
                found.add(name)
            case _:
                found.add(ANY_EXCEPTION)
    return found


def bound_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """The names that a scope binds or deletes, each with an empty text. A global name has itself as its text, since it
    keeps its name if the others are renamed."""
    found: dict[str, str] = {}
    elsewhere: dict[str, str] = {}
    outer: set[str] = set()
    for node in scope_nodes(nodes):
        if isinstance(node, ast.Global):
            elsewhere.update((name, name) for name in node.names)
        elif isinstance(node, ast.Nonlocal):
            outer.update(node.names)
        elif isinstance(node, ast.alias):
            found[alias_name(node)] = ""
        elif (field := NAMES.get(type(node))) and not isinstance(getattr(node, "ctx", None), ast.Load):
            found[getattr(node, field)] = ""
    return {name: new for name, new in {**found, **elsewhere}.items() if name and name not in outer}


def scope_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope: those of functions inside are their own, and of comprehensions only `:=` is seen."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Comprehension):
            stack += [one.target for one in ast.walk(node) if isinstance(one, ast.NamedExpr)]
        elif not isinstance(node, OWN_SCOPE):
            stack += ast.iter_child_nodes(node)


def alias_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]
