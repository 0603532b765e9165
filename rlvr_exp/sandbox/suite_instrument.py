"""A suite's syntax tree with its comparisons sent to the `Comparer` of `suite_equal`, by the names that it gives.

Owns which expressions are sent; compares nothing. Standard library and pytest only.
"""

import ast

from _pytest.assertion.rewrite import AssertionRewriter

from rlvr_exp.sandbox.suite_equal import AMONG, CHAIN, COMPARE, DIFFERENCE, LOOKING, MEMBER, OPERATORS, RANKED, STAR

_COMPARING = ("array_equal", "array_equiv", "allclose", "isclose", "equals", "eq", "ne", "is_")
"""Functions of libraries that compare two arguments, beside those named assert_..."""
_MEMBER, _RANKED = ("count", "index", "remove"), ("max", "min", "sorted")


class Rewriter(AssertionRewriter):
    """pytest's rewriting of asserts, their comparisons sent to `COMPARE`."""

    def visit_Compare(self, comp: ast.Compare) -> tuple[ast.expr, str]:
        start = len(self.statements)
        result = super().visit_Compare(comp)
        for statement in self.statements[start:]:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Compare):
                statement.value = _call(statement.value)
        return result


class _Elsewhere(ast.NodeTransformer):
    """Comparisons outside of what the rewriter visits."""

    def __init__(self, catches: bool):
        self._catches = catches

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        if not self._catches:
            self._inside(node.test)
            return node
        self.generic_visit(node)
        fault = ast.Call(ast.Name("AssertionError", ast.Load()), [node.msg] if node.msg else [], [])
        plain = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Raise(fault, None)], [])
        return ast.fix_missing_locations(ast.copy_location(plain, node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.module != "solution" or node.names[0].name != "*":
            return node
        space = ast.Call(ast.Name("globals", ast.Load()), [], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(_calling(STAR, space, space)), node))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return _call(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _calling(DIFFERENCE, node, node.left, node.right) if isinstance(node.op, ast.Sub) else node

    def visit_Match(self, node: ast.Match) -> ast.Match:
        self.generic_visit(node)
        patterns = (part for case in node.cases for part in ast.walk(case.pattern) if isinstance(part, ast.MatchValue))
        values = [ast.Constant(part.value.value) for part in patterns if isinstance(part.value, ast.Constant)]
        node.subject = _calling(AMONG, node.subject, node.subject, *values)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        if isinstance(node.func, ast.Attribute) and name in _MEMBER and len(node.args) == 1 and not node.keywords:
            return node if starred else _calling(MEMBER, node, ast.Constant(name), node.func.value, node.args[0])
        if isinstance(node.func, ast.Name) and name in _RANKED and node.args and not node.keywords:
            return _calling(RANKED, node, node.func, *node.args)
        if len(node.args) > 1 and (name.startswith("assert_") or name in _COMPARING):
            node.func = _calling(LOOKING, node.func, node.func)
        return node

    def _inside(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._inside(value)
        elif isinstance(node, ast.UnaryOp):
            self._inside(node.operand)
        else:
            self.generic_visit(node)


def instrument(tree: ast.Module) -> None:
    """Send every comparison to the `Comparer`, but for those of asserts, which `Rewriter` sends.

    A suite that catches exceptions has asserts without explanations: one in flight would show what was expected.
    """
    catches = any(isinstance(node, (ast.Try, ast.TryStar)) and node.handlers for node in ast.walk(tree))
    _Elsewhere(catches).visit(tree)


def _call(node: ast.Compare) -> ast.expr:
    names = [type(operation).__name__ for operation in node.ops]
    if not all(name in OPERATORS for name in names):
        return node
    if len(names) == 1:
        return _calling(COMPARE, node, ast.Constant(names[0]), node.left, node.comparators[0])
    return _calling(CHAIN, node, ast.Constant(tuple(names)), node.left, *node.comparators)


def _calling(name: str, place: ast.expr, *args: ast.expr) -> ast.Call:
    """A call in place of an expression."""
    return ast.fix_missing_locations(ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(args), []), place))
