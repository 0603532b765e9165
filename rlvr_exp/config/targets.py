"""Finds the schema of a node by its `_target_`: our registry, or a user's own class, which is a dataclass of its options."""

import copy
import dataclasses
import importlib
import inspect
import typing
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
    """The options of a user's class, without what it does: nothing of it runs while a command line is checked."""
    cls = _import(target)
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        what, remedy = (
            "the class brings no schema",
            "make it a dataclass, or derive it from one: its fields are its options",
        )
        if inspect.isfunction(cls):
            what, remedy = "a function", "name a class; a reward term: declare it by @term of rlvr_exp.rewards.base"
        raise NoSchema(InputProblem("_target_", what, target, "", "", remedy))
    ours = tuple(part for part in cls.__mro__ if part.__module__.startswith(("rlvr_exp.config.", "rlvr_exp.domains.")))
    bases = ours if base is None or issubclass(cls, base) else (*ours, base)
    parts = {"_describes_": cls} | ({"problems": cls.problems} if hasattr(cls, "problems") else {})
    return with_target(
        dataclasses.make_dataclass(cls.__name__, _options(cls, target), bases=bases, namespace=parts), target
    )


def _options(cls: type, target: str) -> list[tuple[str, Any, dataclasses.Field]]:
    """(name, type, declaration) of each field of a class."""
    specs = [spec for spec in dataclasses.fields(cls) if spec.init]
    if bare := [spec.name for spec in specs if spec.default is spec.default_factory is dataclasses.MISSING]:
        what, remedy = f"options without a default: {', '.join(bare)}", "give each field of the class a default"
        raise NoSchema(InputProblem("_target_", what, target, "", "", remedy))
    if lost := [spec.name for spec in specs if not _takes(cls, spec.name)]:
        what, remedy = (
            f"its constructor takes no {', '.join(lost)}",
            "let it take **given, for super().__init__(**given)",
        )
        raise NoSchema(InputProblem("_target_", what, target, "", "", remedy))
    try:
        hints = _declared_types(cls)
    except NameError as fault:
        raise NoSchema(InputProblem("_target_", f"a type of the class is unknown: {fault}", target)) from fault
    return [(spec.name, hints[spec.name], copy.copy(spec)) for spec in specs]


def _declared_types(cls: type) -> dict[str, Any]:
    """Types of a class's fields where they are declared: a class between may annotate a name without declaring a field."""
    hints: dict[str, Any] = {}
    for part in reversed(cls.__mro__):
        if "__dataclass_fields__" in vars(part):
            own = vars(part).get("__annotations__", {})
            hints |= {name: hint for name, hint in typing.get_type_hints(part).items() if name in own}
    return hints


def _takes(cls: type, name: str) -> bool:
    parameters = inspect.signature(cls).parameters
    return name in parameters or any(part.kind is part.VAR_KEYWORD for part in parameters.values())


def _import(target: str) -> Any:
    module, _, name = target.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as fault:  # A user's module may fail in any way; each is shown as what it is.
        remedy = "check the path; its folder has to be in hydra.searchpath=[DIR] or installed"
        raise NoSchema(
            InputProblem("_target_", f"cannot be imported: {type(fault).__name__}: {fault}", target, "", "", remedy)
        ) from fault
