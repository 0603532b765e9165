"""The normalised syntax tree of a Python program, as a hash that does not depend on names and layout.

Locals and arguments are named by the order in which they appear; comments, docstrings and layout are gone; constants,
attributes, functions and globals stay. A text that is no Python, such as a Dafny program, is hashed as it is. The hash
does not depend on the version of Python, as empty fields are left out.
"""

import ast
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.python_syntax import NAMES, Comprehension, alias_name, bound_names

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Syntax(NamedTuple):
    hash: str
    size: int
    """Nodes of the tree; characters of a text that is no Python."""


@lru_cache(maxsize=4096)
def syntax_of(program: str) -> Syntax:
    """The tree of a program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(program)
        written = _Normalised(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Syntax(content_hash(["text", program]), len(program))
    return Syntax(content_hash(written.parts), written.size)


class _Normalised:
    """One pass over a tree, in source order."""

    def __init__(self, tree: ast.Module):
        self.parts: list[str] = []
        self.size = 0
        self._scopes: list[dict[str, str]] = []
        self._named = 0
        self._write(tree)

    def _write(self, node: ast.AST) -> None:
        self.size += 1
        self.parts.append(type(node).__name__)
        if isinstance(node, ast.alias):
            self.parts += [node.name, self._name(alias_name(node))]
        elif isinstance(node, Function):
            self._function(node)
        elif isinstance(node, ast.Lambda):
            self._defaults(node.args)
            self._inside(bound_names([node.args, node.body]), [node.args, node.body])
        elif isinstance(node, Comprehension):
            self._comprehension(node)
        else:
            self._fields(node)
        self.parts.append(")")

    def _fields(self, node: ast.AST, without: Iterable[str] = ()) -> None:
        for name, value in ast.iter_fields(node):
            if name not in without and not (value is None and not isinstance(node, ast.Constant)) and value != []:
                self.parts.append(name)
                self._value(node, name, value)

    def _value(self, node: ast.AST, name: str, value: object) -> None:
        if isinstance(value, ast.AST):
            self._write(value)
        elif isinstance(value, list):
            body = _without_docstring(node, value) if name == "body" else value
            for item in body:
                self._value(node, "", item)
            self.parts.append("]")
        elif name and NAMES.get(type(node)) == name:
            self.parts.append(self._name(str(value)))
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.parts.append(self._name(str(value)))
        elif name != "kind":  # of a constant: u"" is ""
            self.parts.append(f"{type(value).__name__}:{value!r}")

    def _function(self, node: Function) -> None:
        """Decorators, defaults and the name belong to the scope around it."""
        self.parts.append(self._name(node.name))
        for decorator in node.decorator_list:
            self._write(decorator)
        self._defaults(node.args)
        self._inside(bound_names([node.args, *node.body]), [node], without=("name", "decorator_list"))

    def _defaults(self, args: ast.arguments) -> None:
        for default in (*args.defaults, *args.kw_defaults):
            if default is None:
                self.parts.append("required")
            else:
                self._write(default)

    def _comprehension(self, node: Comprehension) -> None:
        """The first iterable belongs to the scope around it. Targets go first, as the element uses them."""
        self._write(node.generators[0].iter)
        targets = bound_names([generator.target for generator in node.generators])
        self._scopes.append(targets)
        for number, generator in enumerate(node.generators):
            self._fields(generator, without=("iter",) if number == 0 else ())
        self._fields(node, without=("generators",))
        self._scopes.pop()

    def _inside(self, scope: dict[str, str], nodes: Iterable[ast.AST], without: Iterable[str] = ()) -> None:
        self._scopes.append(scope)
        for node in nodes:
            if isinstance(node, ast.arguments):
                self._fields(node, without=("defaults", "kw_defaults"))
            elif isinstance(node, Function):
                self._fields(node.args, without=("defaults", "kw_defaults"))
                self._fields(node, without=(*without, "args"))
            else:
                self._write(node)
        self._scopes.pop()

    def _name(self, name: str) -> str:
        """`$N` for the N-th local; other names as they are."""
        scope = next((one for one in reversed(self._scopes) if name in one), None)
        if scope is None:
            return name
        if not scope[name]:
            self._named += 1
            scope[name] = f"${self._named}"
        return scope[name]


def _without_docstring(node: ast.AST, body: list[ast.AST]) -> list[ast.AST]:
    documented = isinstance(node, ast.Module | ast.ClassDef | Function) and body and isinstance(body[0], ast.Expr)
    if not documented or not isinstance(text := getattr(body[0], "value", None), ast.Constant):
        return body
    return (body[1:] or [ast.Pass()]) if isinstance(text.value, str) else body
