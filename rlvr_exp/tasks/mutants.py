"""Systematically wrong variants of Python programs, to see whether a task's tests notice.

Two families. `stub_programs` do none of the work: bodies that return nothing, a constant or an argument, that raise,
or no program at all; tests that pass a stub test nothing. `mutants` differ from the original in one place. Each has
another syntax tree than the original and compiles; some are equivalent nevertheless (x < n and x != n, counting up), so
that good tests still leave a few alive. Everything follows from the program and a key, nothing is run.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from rlvr_exp.core.seeds import derive
from rlvr_exp.tasks.python_syntax import tree

Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = Callable[[ast.AST], ast.AST | list[ast.stmt] | None]
"""A node's replacement: another node, statements, or None if the kind does not apply. Changes nothing itself."""


@dataclass(frozen=True)
class Mutant:
    """One wrong variant of a program."""

    kind: str
    code: str
    line: int = 0
    """Where the original was changed; 0: everywhere."""


def stub_programs(code: str) -> list[Mutant]:
    """Stubs of a program, each different from the original; only the empty program where it defines no function."""
    original = tree(code)
    found = [Mutant("empty", "")] if original.body else []
    if not any(isinstance(node, Function) for node in ast.walk(original)):
        return found
    return found + [
        Mutant(kind, text)
        for kind, body in STUBS.items()
        if (text := _stubbed(code, body)) is not None and not _alike(text, original)
    ]


def _return(value: str) -> Callable[[Function], list[ast.stmt]]:
    return lambda _: tree(f"def f():\n    return {value}").body[0].body  # type: ignore[attr-defined]


def _raise(_: Function) -> list[ast.stmt]:
    return tree("raise NotImplementedError").body


def _identity(function: Function) -> list[ast.stmt]:
    """Return the first argument other than the object itself."""
    given = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args) if arg.arg not in ("self", "cls")]
    return _return(given[0])(function) if given else _return("None")(function)


STUBS: dict[str, Callable[[Function], list[ast.stmt]]] = {
    "return_none": _return("None"),
    "raise": _raise,
    "identity": _identity,
    "return_true": _return("True"),
    "return_zero": _return("0"),
    "return_empty_list": _return("[]"),
    "return_empty_text": _return("''"),
}


def _stubbed(code: str, body: Callable[[Function], list[ast.stmt]]) -> str | None:
    """The program with every function's body replaced; imports, classes and constants stay."""

    class Stub(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            node.body = body(node)
            return node

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
            node.body = body(node)
            return node

    return _compiled(Stub().visit(tree(code)))


_COMPARE: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATOR: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _swapped_comparison(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        return _with(node, ops=[_COMPARE[type(node.ops[0])](), *node.ops[1:]])
    return None


def _changed_operator(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in _OPERATOR:
        return _with(node, op=_OPERATOR[type(node.op)]())
    return None


def _off_by_one(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ast.Constant(node.value + 1)
    return None


def _changed_constant(node: ast.AST) -> ast.AST | None:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool):
        return ast.Constant(not value)
    if isinstance(value, str):
        return ast.Constant("" if value else "x")
    return ast.Constant(-value - 2) if isinstance(value, int | float) else None


def _negated_condition(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Constant):
        return _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.comprehension) and node.ifs:
        return _with(node, ifs=[ast.UnaryOp(ast.Not(), node.ifs[0]), *node.ifs[1:]])
    return None


def _dropped_statement(node: ast.AST) -> list[ast.stmt] | None:
    kinds = (ast.Assign, ast.AugAssign, ast.Delete, ast.Break, ast.Continue, ast.Return)
    calls = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return [ast.Pass()] if isinstance(node, kinds) or calls else None


def _early_return(node: ast.AST) -> list[ast.stmt] | None:
    """Leave before a loop."""
    return [ast.Return(None)] if isinstance(node, ast.For | ast.While) else None


def _changed_return(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Return) and node.value is not None:
        return ast.Return(None)
    return None


KINDS: dict[str, Change] = {
    "swapped_comparison": _swapped_comparison,
    "changed_operator": _changed_operator,
    "off_by_one": _off_by_one,
    "changed_constant": _changed_constant,
    "negated_condition": _negated_condition,
    "dropped_statement": _dropped_statement,
    "early_return": _early_return,
    "changed_return": _changed_return,
}


def mutants(code: str) -> Iterator[Mutant]:
    """Every mutant of a program, kind by kind, in the order of its text; without duplicates."""
    return _unique_mutants(code, sorted(_sites(tree(code))))


def chosen(code: str, count: int, key: str) -> list[Mutant]:
    """`count` mutants, or as many as there are, spread over the kinds and chosen by `key` alone."""
    ordered = sorted(_sites(tree(code)), key=lambda site: derive("mutant", key, *site))
    ranks: Counter[str] = Counter()
    turns = []
    for site in ordered:
        turns.append((ranks[site[0]], site))
        ranks[site[0]] += 1
    turns.sort(key=lambda turn: turn[0])  # Stable: the second of a kind comes after the first of every kind.
    return list(islice(_unique_mutants(code, [site for _, site in turns]), count))


def changed_line(code: str, mutant: Mutant) -> str:
    """The line where a mutant of a program differs, before and after, as Markdown."""
    before, after = ast.unparse(tree(code)).splitlines(), mutant.code.splitlines()
    for _, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if before[first:last] != after[start:end]:
            parts = (before[first:last], after[start:end])
            return " becomes ".join(f"`{part[0].strip()}`" for part in parts if part)
    return ""


def _sites(program: ast.Module) -> list[tuple[str, int]]:
    """(kind, place) of everything that could be changed."""
    nodes = list(ast.walk(program))
    return [
        (kind, place) for place in _places(nodes) for kind, change in KINDS.items() if change(nodes[place]) is not None
    ]


def _unique_mutants(code: str, sites: Iterable[tuple[str, int]]) -> Iterator[Mutant]:
    seen = {ast.dump(tree(code))}
    for kind, place in sites:
        text, line = _changed(code, place, KINDS[kind])
        if text is not None and (dump := ast.dump(tree(text))) not in seen:
            seen.add(dump)
            yield Mutant(kind, text, line)


def _places(nodes: Sequence[ast.AST]) -> list[int]:
    """Numbers of the nodes that are code, without docstrings and annotations."""
    idle = {id(below) for node in nodes for part in _spoken(node) if part is not None for below in ast.walk(part)}
    return [number for number, node in enumerate(nodes) if id(node) not in idle]


def _spoken(node: ast.AST) -> list[ast.AST | None]:
    """Parts of a node that do nothing when the program runs."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return [node]
    if isinstance(node, Function):
        return [node.returns]
    return [node.annotation] if isinstance(node, ast.arg | ast.AnnAssign) else []


def _changed(code: str, place: int, change: Change) -> tuple[str | None, int]:
    """The program with the node at a place changed, and the node's line."""
    program = tree(code)
    node = list(ast.walk(program))[place]
    changed = change(node)

    class Put(ast.NodeTransformer):
        def visit(self, found: ast.AST) -> Any:
            return changed if found is node else self.generic_visit(found)

    placed = node.target if isinstance(node, ast.comprehension) else node
    return _compiled(Put().visit(program)), getattr(placed, "lineno", 0)


def _compiled(program: ast.Module) -> str | None:
    """The text of a program, None if it does not compile."""
    try:
        text = ast.unparse(ast.fix_missing_locations(program)) + "\n"
        compile(text, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return text


def _alike(text: str, original: ast.Module) -> bool:
    return ast.dump(tree(text)) == ast.dump(original)
