"""What two tasks share whatever their ids: texts without their spacing and case, programs without their names' choice.

Keys are content hashes: two tasks with a key in common are taken for the same task.
"""

import ast
import re

from rlvr_exp.core.hashing import content_hash
from rlvr_exp.tasks.completion import tree

_BLANKS = re.compile(r"\s+")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def text_key(text: str) -> str:
    """The key of a text without its blanks, in lower case."""
    return content_hash(["text", _BLANKS.sub("", text.lower())])


def program_key(program: str) -> str:
    """The key of a Python program: its syntax tree without comments, docstrings and annotations, the names that it binds
    numbered in their order. A text that is no Python has that of a text."""
    try:
        module = tree(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text_key(program)
    return _tree_key(module)


def definition_keys(program: str, least: int = 3) -> list[str]:
    """The key of every function and class of at least `least` statements in a Python program, each as a program of its own;
    none of a text that is no Python."""
    try:
        module = tree(program)
        found = [
            ast.unparse(node) for node in ast.walk(module) if isinstance(node, _DEFINITIONS) and _size(node) > least
        ]
        return [_tree_key(tree(text)) for text in found]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _size(node: ast.AST) -> int:
    """Statements in a definition, itself among them."""
    return sum(isinstance(one, ast.stmt) and not _says_nothing(one) for one in ast.walk(node))


def _tree_key(module: ast.Module) -> str:
    bound = {name: f"${number}" for number, name in enumerate(_bound(module))}
    return content_hash(["program", ast.dump(_Plain(bound).visit(module))])


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
    """Renames what a program binds; drops docstrings, annotations and imports for them."""

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
