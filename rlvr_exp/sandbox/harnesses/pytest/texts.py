"""A suite's syntax tree as it runs: assertions counted, texts that are evaluated evaluated where the solution is.

What a suite evaluates or unpickles may be the solution's words: a text that is neither its own nor mere arithmetic is
evaluated in the solution's process, and nothing is unpickled but data. Standard library only.
"""

import ast
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

ASSERTED = "@asserted"
EVALUATING = {"eval": "@eval", "exec": "@exec", "compile": "@compile"}
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
    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        self.generic_visit(node)
        counted = ast.Expr(ast.Call(ast.Name(ASSERTED, ast.Load()), [], []))
        return [node, ast.fix_missing_locations(ast.copy_location(counted, node))]

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in EVALUATING:
            node.func = ast.copy_location(ast.Name(EVALUATING[name], ast.Load()), node.func)
        return node


def transform(tree: ast.Module) -> None:
    """In place."""
    _Transformer().visit(tree)


class Evaluating:
    """What a suite's `eval`, `exec` and `compile` do.

    Args:
        suite: all its texts, whose constants are evaluated as ever.
        elsewhere: asks the solution's process: ("eval" or "exec", text, namespaces).
    """

    def __init__(self, suite: Iterable[str], elsewhere: Callable[[str, tuple[Any, ...]], Any]):
        parts = (node for text in suite for node in ast.walk(ast.parse(text)))
        self._own = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        self._elsewhere = elsewhere

    def names(self) -> dict[str, Any]:
        """For a test module."""
        return {EVALUATING["eval"]: self._eval, EVALUATING["exec"]: self._exec, EVALUATING["compile"]: self._compile}

    def _eval(self, text: Any, *spaces: Any) -> Any:
        if text in self._own or _is_arithmetic(text):
            return eval(text, *(spaces or _spaces(sys._getframe(1))))
        return self._elsewhere("eval", (text, *spaces))

    def _exec(self, text: Any, *spaces: Any) -> None:
        if text in self._own:
            exec(text, *(spaces or _spaces(sys._getframe(1))))
        else:
            self._elsewhere("exec", (text, *spaces))

    def _compile(self, text: Any, *_: Any, **__: Any) -> Any:
        """The text itself, once it has been read: what it does is decided where it is evaluated."""
        ast.parse(text)
        return text


def _spaces(frame: types.FrameType) -> tuple[Any, Any]:
    return frame.f_globals, frame.f_locals


def _is_arithmetic(text: Any) -> bool:
    """Constants and operators, nothing that could be called or looked up."""
    tree = ast.parse(text, mode="eval")
    return all(isinstance(node, _ARITHMETIC) for node in ast.walk(tree))


_ARITHMETIC = (ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp)
_ARITHMETIC += (ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)


def guard_pickles(own: frozenset[str]) -> None:
    """Nothing that is unpickled in this process names more than data and the suite's own classes."""

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event != "pickle.find_class":
            return
        module, name = args
        if module not in own and name not in _HARMLESS.get(module, "").split():
            raise ValueError(f"{module}.{name} is not unpickled in the suite's process")

    sys.addaudithook(watch)
