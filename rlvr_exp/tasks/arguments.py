"""The arguments that a function is made for: their types, by known calls and by annotations, and their sign.

A value fits if a value of its type was seen at its place. A bool is no int, a tuple is no list, and an int may stand for a float.
Items of lists, and keys and values of dicts, have places of their own. A place of which nothing is known takes every value. A
negative argument fits if it was negative in a known call, or if fewer than `FEWEST` calls are known.
"""

import ast
from collections.abc import Sequence
from typing import Any

from rlvr_exp.tasks.python_syntax import tree

FEWEST = 3
_PLAIN = ("bool", "int", "float", "complex", "str", "bytes")
_CONTAINERS = ("list", "tuple", "set", "frozenset", "dict")
_ROWS = ("Sequence", "Iterable", "Collection", "MutableSequence")
Types = dict[str, list[Any]]
"""By the name of a type, the `Types` of its parts: none, those of its items, or those of its keys and values. Empty: any type."""


def takes(types: Types, value: Any) -> bool:
    kind = type(value).__name__
    if kind == "int" and "int" not in types:
        kind = "float"
    if not types or kind not in types:
        return not types
    return all(takes(part, one) for part, ones in zip(types[kind], _parts(value), strict=False) for one in ones)


class Arguments:
    """The arguments of a function.

    Args:
        calls: the arguments of known calls.
        source: a module that defines the function.
    """

    def __init__(self, calls: Sequence[tuple[Any, ...]], entry_point: str, source: str):
        columns = [
            [args[place] for args in calls if len(args) > place] for place in range(max(map(len, calls), default=0))
        ]
        self._seen = [_seen(values) for values in columns]
        self._signed = [len(calls) < FEWEST or any(map(_is_negative, values)) for values in columns]
        self._annotated = _annotations(entry_point, source)

    def take(self, args: tuple[Any, ...]) -> bool:
        return all(self._takes(place, value) for place, value in enumerate(args))

    def _takes(self, place: int, value: Any) -> bool:
        annotated = self._annotated[place] if place < len(self._annotated) else {}
        if place >= len(self._seen):
            return takes(annotated, value)
        if _is_negative(value) and not self._signed[place]:
            return False
        return takes(self._seen[place], value) or (bool(annotated) and takes(annotated, value))


def _seen(values: Sequence[Any]) -> Types:
    found: Types = {}
    for kind in {type(value).__name__ for value in values}:
        parts = [_parts(value) for value in values if type(value).__name__ == kind]
        found[kind] = [_seen([one for ones in column for one in ones]) for column in zip(*parts, strict=True)]
    return found


def _parts(value: Any) -> tuple[Sequence[Any], ...]:
    if isinstance(value, dict):
        return [*value], [*value.values()]
    return ([*value],) if isinstance(value, (list, tuple, set, frozenset)) else ()


def _is_negative(value: Any) -> bool:
    return isinstance(value, (int, float)) and value < 0


def _annotations(entry_point: str, source: str) -> list[Types]:
    functions = (node for node in tree(source).body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    found = next((node.args for node in functions if node.name == entry_point), None)
    return [_annotated(one.annotation) for one in (*found.posonlyargs, *found.args)] if found else []


def _annotated(node: ast.expr | None) -> Types:
    match node:
        case ast.Constant(str(text)):
            try:
                return _annotated(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return {}
        case ast.Constant(None):
            return {"NoneType": []}
        case ast.BinOp(left, ast.BitOr(), right):
            return _either([left, right])
        case ast.Name(name) | ast.Attribute(attr=name):
            kinds = _kinds(name)
            return {kind: [] for kind in kinds}
        case ast.Subscript(ast.Name(name) | ast.Attribute(attr=name), part):
            parts = part.elts if isinstance(part, ast.Tuple) else [part]
            if name in ("Optional", "Union"):
                return _either([*parts, *[ast.Constant(None)] * (name == "Optional")])
            inner = [_annotated(one) for one in parts] if name.lower() == "dict" else [_either(parts)]
            return dict.fromkeys(_kinds(name), inner)
    return {}


def _kinds(name: str) -> tuple[str, ...]:
    if name in _ROWS:
        return "list", "tuple"
    return (name.lower(),) if name in _PLAIN or name.lower() in _CONTAINERS else ()


def _either(nodes: Sequence[ast.expr]) -> Types:
    found = [_annotated(one) for one in nodes if not (isinstance(one, ast.Constant) and one.value is ...)]
    return {kind: parts for one in found for kind, parts in one.items()} if all(found) else {}
