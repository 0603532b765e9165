"""Finds the schema of a node by its `_target_`: our registry, or the dataclass `Config` of a user's own class."""

import dataclasses
import importlib
from typing import Any

from rlvr_exp.config.names import suggest
from rlvr_exp.config.options import SCHEMAS, with_target
from rlvr_exp.core.errors import InputProblem

_USER: dict[tuple[str, type | None], type] = {}


class NoSchema(Exception):
    """A `_target_` without a schema; carries the InputProblem, relative to the node."""

    def __init__(self, problem: InputProblem):
        self.problem = problem
        super().__init__(str(problem))


def find_schema(target: Any, base: type | None) -> type:
    """The schema dataclass of a `_target_`, with the fields of `base`.

    Raises:
        NoSchema: no such class, no schema, or one of another group.
    """
    if not isinstance(target, str) or "." not in target:
        raise NoSchema(InputProblem("_target_", "not an import path", repr(target), "package.module.Class"))
    if target in SCHEMAS:
        return _of_group(SCHEMAS[target], target, base)
    if target.startswith("rlvr_exp."):
        raise NoSchema(InputProblem("_target_", "no schema for this class", target, "", suggest(target, SCHEMAS)))
    if (target, base) not in _USER:
        _USER[target, base] = _user_schema(target, base)
    return _USER[target, base]


def _of_group(schema: type, target: str, base: type | None) -> type:
    if base is not None and not issubclass(schema, base):
        fitting = ", ".join(path for path, known in SCHEMAS.items() if issubclass(known, base))
        raise NoSchema(InputProblem("_target_", "a class of another group", target, fitting))
    return schema


def _user_schema(target: str, base: type | None) -> type:
    schema = getattr(_import(target), "Config", None)
    if not (isinstance(schema, type) and dataclasses.is_dataclass(schema)):
        remedy = "give the class an attribute `Config`: a dataclass of its options"
        raise NoSchema(InputProblem("_target_", "the class brings no schema", target, "", "", remedy))
    mixed = () if base is None or issubclass(schema, base) else (base,)
    return with_target(type(schema.__name__, (schema, *mixed), {"__doc__": schema.__doc__}), target)


def _import(target: str) -> Any:
    module, _, name = target.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as fault:  # A user's module may fail in any way; each is shown as what it is.
        remedy = "check the path; its folder has to be in hydra.searchpath=[DIR] or installed"
        raise NoSchema(
            InputProblem("_target_", f"cannot be imported: {type(fault).__name__}: {fault}", target, "", "", remedy)
        ) from fault
