"""Scalars of numpy as equal plain data, wherever they are in a returned value. Standard library only."""

import sys
from typing import Any

from rlvr_exp.sandbox import wire

_SEQUENCES = (list, tuple, set, frozenset)


def to_plain(value: Any) -> Any:
    """`value` with numpy's scalars replaced by their content; anything else, arrays too, stays unchanged.

    Raises:
        wire.NotPlain: nested too deep.
    """
    numpy = sys.modules.get("numpy")
    generic = getattr(numpy, "generic", None)
    return _plain(value, generic, 0) if isinstance(generic, type) else value


def _plain(value: Any, generic: type, depth: int) -> Any:
    kind = type(value)
    if depth > wire.MAX_DEPTH:
        raise wire.NotPlain(f"nested deeper than {wire.MAX_DEPTH}")
    if issubclass(kind, generic):  # a class of the candidate's own is not numpy's
        return generic.item(value) if kind.__module__ == "numpy" else value
    for base in _SEQUENCES:
        if issubclass(kind, base):
            return base(_plain(item, generic, depth + 1) for item in base.__iter__(value))
    if issubclass(kind, dict):
        items = dict.items(value)
        return {_plain(key, generic, depth + 1): _plain(item, generic, depth + 1) for key, item in items}
    return value
