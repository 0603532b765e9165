"""Syntax trees of Python that an answer wrote: read and compared without recursion, in the trusted process."""

import ast
from typing import Any

from rlvr_exp.tasks.completion import tree


def parsed(text: str) -> ast.Module | None:
    """None for a text that is no Python."""
    try:
        return tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def syntax_key(node: ast.AST) -> tuple[Any, ...]:
    """A syntax tree without places, in one row: equal for equal trees. No recursion and no value written out, since trees of a
    thousand levels and numbers of a million digits are Python, too."""
    parts: list[Any] = []
    ahead: list[Any] = [node]
    while ahead:
        item = ahead.pop()
        if isinstance(item, ast.AST):
            parts.append(type(item))
            ahead += [getattr(item, name, None) for name in reversed(item._fields)]
        elif isinstance(item, list):
            parts += ("several", len(item))
            ahead += reversed(item)
        else:
            parts += (type(item), item)
    return tuple(parts)
