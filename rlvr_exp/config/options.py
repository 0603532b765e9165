"""The declaration of schemas: `option` declares a field with its range, `configures` ties a schema to its class.

A schema is a dataclass, and the class that it configures derives from it. The attribute docstring below a field is its
help text. Optional methods: `problems(self)` returns combinations of its own fields that cannot work.
`conflicts(self, config, reads)` yields combinations with other nodes; it is called if the stage reads the node, and
`reads(name)` says whether the stage reads another node. `of_learner(self, algorithm)` does the same for the algorithm of
the run and of each role. A schema never imports the class that it describes. `find_schema` finds the schema of a `_target_`:
a registered one, or that of a user's own dataclass.
"""

import copy
import dataclasses
import importlib
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rlvr_exp.config.names import suggest
from rlvr_exp.core.errors import InputProblem

SCHEMAS: dict[str, type] = {}
"""Our own schemas by the path of the class that they configure."""


@dataclass(frozen=True)
class Allowed:
    """The allowed values of a field; for a list, of each item."""

    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    above: float | None = None
    """An exclusive lower bound."""
    below: float | None = None
    """An exclusive upper bound."""
    node: bool = False
    """The field is a node with `_target_`; its schema is found by that path."""
    base: type | None = None
    """Base of the node's schema. A user's schema without it gets its fields added."""
    optional: bool = False
    """The node may be absent."""
    rare: bool = False
    """Few users set it: `--help all` shows it, and `--help` does not."""

    def __str__(self) -> str:
        if self.choices:
            return ", ".join(repr(choice) if choice == "" else str(choice) for choice in self.choices)
        bounds = (("at least", self.low), ("above", self.above), ("at most", self.high), ("below", self.below))
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)


def option(default: Any, **allowed: Any) -> Any:
    """A field with its default (or the schema of a node) and its range: `choices`, or `low`, `above`, `high`, `below`."""
    metadata = {"allowed": Allowed(**allowed)}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    if isinstance(default, list | dict):
        return field(default_factory=lambda: copy.deepcopy(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def defaults(**values: Any) -> Callable[[type], type]:
    """Give a schema other defaults for options that it inherits, with the same ranges and help. Stands below @dataclass."""

    def redefine(schema: type) -> type:
        inherited = {spec.name: spec for part in reversed(schema.__bases__) for spec in dataclasses.fields(part)}
        hints = {
            name: hint for part in reversed(schema.__bases__) for name, hint in typing.get_type_hints(part).items()
        }
        for name, value in values.items():
            schema.__annotations__[name] = hints[name]
            setattr(schema, name, field(default=value, metadata=inherited[name].metadata))
        return schema

    return redefine


def node(**allowed: Any) -> Any:
    """A field that is a node with `_target_`, always given by YAML."""
    return field(default=None, metadata={"allowed": Allowed(node=True, **allowed)})


def allowed_of(declared: dataclasses.Field) -> Allowed:
    return declared.metadata.get("allowed", Allowed())


def is_schema(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def below_schema(hint: Any) -> type | None:
    """The schema of the nodes in a dict by names of the user's choice; None for every other hint."""
    parts = typing.get_args(hint) if typing.get_origin(hint) is dict else ()
    return parts[1] if parts and is_schema(parts[1]) else None


@cache
def field_types(schema: type) -> dict[str, Any]:
    """Type of each field; for a node that may be absent, the node's own."""
    hints = typing.get_type_hints(schema)
    return {spec.name: _present(hints[spec.name]) for spec in dataclasses.fields(schema)}


def _present(hint: Any) -> Any:
    kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    return kinds[0] if isinstance(hint, types.UnionType) and len(kinds) == 1 and is_schema(kinds[0]) else hint


def default_of(spec: dataclasses.Field) -> Any:
    return spec.default if spec.default_factory is dataclasses.MISSING else spec.default_factory()


def with_target(schema: type, target: str) -> type:
    """The schema with a further field `_target_`; under the schema's own name, so that instances can be pickled."""
    own = {name: getattr(schema, name) for name in ("__module__", "__qualname__", "__doc__")}
    last = [("_target_", str, field(default=target))]
    return dataclasses.make_dataclass(schema.__name__, last, bases=(schema,), namespace=own)


def configures(target: str) -> Callable[[type], type]:
    """Declare a dataclass to be the schema of the class at this import path."""

    def register(schema: type) -> type:
        SCHEMAS[target] = with_target(schema, target)
        return SCHEMAS[target]

    return register


JUDGES = ("verifier", "sandbox", "cache")
"""Candidates are verified."""
ANSWERS = ("model", "engine", "data", *JUDGES, "evaluation")
"""A policy's completions are sampled and verified."""
UPDATES = ("algorithm", "optimizer", "scheduler", "tracking")
"""Weights are trained."""
LEARNS = (*ANSWERS, *UPDATES, "reward", "curriculum")
"""Weights are trained on rewards."""


@dataclass(frozen=True)
class Stage:
    """Properties of a stage. Its own options are the node of its name."""

    about: str
    reads: tuple[str, ...] = ()
    """Nodes that it reads besides its own."""
    algorithm: type | None = None
    """Base of the schema of its `algorithm` node, for a stage that trains."""
    module: str = ""
    """Module that runs it: below rlvr_exp.stages, or an import path with a dot; empty: the one of its name."""
    shared: bool = False
    """Several processes share its work."""
    inherits: tuple[str, ...] = ()
    """Nodes that it inherits, with the seed, from the run named by its option `run`."""
    resumes: bool = False
    """It trains nothing itself, and goes on where it was stopped, or begins again."""
    reported: bool = True
    """Its own run has a report; else it writes that of the run named by its option `run`, and needs no directory that
    stays."""
    direct: bool = False
    """It runs in the command's own process, without a run directory: `main(config, as_json)` of its module returns the exit code."""


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
    """The options of a user's class, without its behaviour: none of its code runs while a command line is checked."""
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
    """Types of a class's fields as declared: a class between may annotate a name without declaring a field."""
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
