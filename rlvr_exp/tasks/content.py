"""Content keys of tasks: hashes of texts without spacing and case, and of programs with their names replaced.

Two tasks with a key in common count as the same task, whatever their ids.
"""

import ast
import re
from collections.abc import Container, Iterator

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.python_syntax import tree

_BLANKS = re.compile(r"\s+")
Shape = tuple[str, ...]
LEAST_STATEMENTS = 3
"""Statements in a definition besides its head: that of fewer is found in many programs."""
_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of a text that is no Python or nests too deep."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def text_key(text: str) -> str:
    """The key of a text without its blanks, in lower case."""
    return content_hash(["text", _BLANKS.sub("", text.lower())])


def program_key(program: str) -> str:
    """The key of a Python program: its syntax tree without comments, docstrings and annotations, the names that it binds
    numbered in their order. A text that is no Python has that of a text."""
    try:
        module = tree(program)
        bound = {name: f"${number}" for number, name in enumerate(_bound(module))}
        return content_hash(["program", ast.dump(_Plain(bound).visit(module))])
    except _NO_PROGRAM:
        return text_key(program)


def program_shape(program: str) -> Shape:
    """The kinds of a program's statements, in no order; () for a text that is no Python. Programs of equal keys have
    equal shapes, and a shape takes a tenth of the time of a key."""
    try:
        return _shape(tree(program))
    except _NO_PROGRAM:
        return ()


def keyed_parts(program: str, wanted: Container[Shape] | None = None) -> Iterator[tuple[Shape, str]]:
    """Shape and key of a Python program, and of every function and class in it that has three statements or more
    besides its head, each as a program of its own. Equal keys have equal shapes, and shapes take a tenth of the time:
    with `wanted`, only parts of these shapes get a key. A text that is no Python is one part."""
    try:
        module = tree(program)
    except _NO_PROGRAM:
        yield (), text_key(program)
        return
    definitions = (node for node in ast.walk(module) if isinstance(node, _DEFINITIONS))
    parts = [(node, _shape(node)) for node in (module, *definitions)]
    for node, shape in parts:
        if wanted is not None and shape not in wanted:
            continue
        if node is module:
            yield shape, program_key(program)
        elif len(shape) > LEAST_STATEMENTS and (text := _source(node)):
            yield shape, program_key(text)


def _source(node: ast.AST) -> str:
    """A definition as a program; empty if it nests too deep, as a sum of a thousand terms does."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return ""


def _shape(node: ast.AST) -> Shape:
    """The kinds of its statements, itself among them, in no order, without those that a key drops."""
    kept = (one for one in ast.walk(node) if isinstance(one, ast.stmt) and not _says_nothing(one))
    kinds = (ast.Assign if isinstance(one, ast.AnnAssign) else type(one) for one in kept if not _declares(one))
    return tuple(sorted(kind.__name__ for kind in kinds))


def _declares(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and node.value is None


def _bound(module: ast.Module) -> list[str]:
    """Names that a program gives to functions, classes, arguments and variables, each once."""
    found: dict[str, None] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = None
        elif isinstance(node, ast.arg):
            found[node.arg] = None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
    return list(found)


class _Plain(ast.NodeTransformer):
    """Rename the names that a program binds; drop its docstrings, annotations and imports for them."""

    def __init__(self, names: dict[str, str]):
        self._names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for key in ("name", "arg", "id"):
            if isinstance(value := getattr(node, key, None), str):
                setattr(node, key, self._names.get(value, value))
        for key in ("annotation", "returns", "type_comment"):
            if hasattr(node, key):
                setattr(node, key, None)
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _says_nothing(one)]  # type: ignore[attr-defined]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value))


def _says_nothing(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module in ("typing", "__future__"))
