"""How a schema is written: `option` declares a field with its range, `configures` ties a schema to the class that
derives from it and reads its options off itself.

A schema is a dataclass. The attribute docstring below a field is its help text. A method `problems(self)` returns what
no single field can express: combinations that cannot work. A method `conflicts(self, config, reads)` yields combinations with
other nodes that cannot work; it is called if the stage reads the node, and `reads(name)` is whether it reads another.
`of_learner(self, algorithm)` does the same for the algorithm of the run and of each role. Never imports what the schemas describe.
"""

import copy
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SCHEMAS: dict[str, type] = {}
"""Our own schemas by the path of the class that they configure."""


@dataclass(frozen=True)
class Allowed:
    """The values that a field takes; for a list, what each item takes."""

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
    """What the node's schema derives from; a user's own that does not gets these fields added."""
    optional: bool = False
    """The node may be absent."""

    def permits(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        if isinstance(value, float) and not math.isfinite(value):
            return False
        return not (
            (self.low is not None and value < self.low)
            or (self.high is not None and value > self.high)
            or (self.above is not None and value <= self.above)
            or (self.below is not None and value >= self.below)
        )

    def __str__(self) -> str:
        if self.choices:
            return ", ".join(repr(choice) if choice == "" else str(choice) for choice in self.choices)
        bounds = (("at least", self.low), ("above", self.above), ("at most", self.high), ("below", self.below))
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)


def option(default: Any, **allowed: Any) -> Any:
    """A field with its default and its range: `choices`, or `low`, `above`, `high`, `below`."""
    metadata = {"allowed": Allowed(**allowed)}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: copy.deepcopy(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def node(**allowed: Any) -> Any:
    """A field that is a node with `_target_`, always given by YAML."""
    return field(default=None, metadata={"allowed": Allowed(node=True, **allowed)})


def allowed_of(declared: dataclasses.Field) -> Allowed:
    return declared.metadata.get("allowed", Allowed())


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
