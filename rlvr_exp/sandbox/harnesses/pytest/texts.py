"""A suite's syntax tree as it runs: assertions counted, texts that are evaluated evaluated where the solution is.

What a suite evaluates or unpickles may be the solution's words, so neither is done in the suite's process. Standard
library only.
"""

import ast
import sys
from collections.abc import Iterable
from typing import Any

ASSERTED, EVAL, EXEC = "@asserted", "@eval", "@exec"
"""Names in a test module that no program can write."""
_HARMLESS = {
    "builtins": "list dict set frozenset tuple int float complex str bytes bytearray bool range slice object",
    "collections": "OrderedDict Counter deque defaultdict",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "uuid": "UUID",
    "copyreg": "_reconstructor __newobj__",
    "numpy": "ndarray dtype",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
}


class _Transformer(ast.NodeTransformer):
    def __init__(self, constants: frozenset[str]):
        self._constants = constants

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        self.generic_visit(node)
        counted = ast.Expr(ast.Call(ast.Name(ASSERTED, ast.Load()), [], []))
        return [node, ast.fix_missing_locations(ast.copy_location(counted, node))]

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        own = bool(node.args) and isinstance(node.args[0], ast.Constant)
        if name in ("eval", "exec") and not own:
            node.func = ast.copy_location(ast.Name(EVAL if name == "eval" else EXEC, ast.Load()), node.func)
        return node


def transform(tree: ast.Module, suite: Iterable[str]) -> None:
    """In place. `suite`: all its texts."""
    _Transformer(frozenset(suite)).visit(tree)


def guard_pickles(own: frozenset[str]) -> None:
    """Nothing that is unpickled in this process names more than data and the suite's own classes."""

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event != "pickle.find_class":
            return
        module, name = args
        if module not in own and name not in _HARMLESS.get(module, "").split():
            raise ValueError(f"{module}.{name} is not unpickled in the suite's process")

    sys.addaudithook(watch)
