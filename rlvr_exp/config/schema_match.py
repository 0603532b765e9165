"""Matches a Tree against the schemas: which schema each node has, which keys are given, which are unknown.

Values are not checked here but typed in rlvr_exp.config.typed_config.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rlvr_exp.config.names import LIKELY, OTHER_TRAINERS, SURE, suggest
from rlvr_exp.config.options import Allowed, allowed_of
from rlvr_exp.config.paths import conf_directory
from rlvr_exp.config.schema import Config
from rlvr_exp.config.targets import NoSchema, find_schema
from rlvr_exp.config.tree import Path, Tree, dotted
from rlvr_exp.config.trl_names import framework_key, trl_fields
from rlvr_exp.core.errors import InputProblem


@dataclass
class SchemaNode:
    """One node: its schema, the leaves that were given, and the nodes below it."""

    schema: type
    path: Path
    given: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, "SchemaNode | SchemaNodes | None"] = field(default_factory=dict)
    """Below a field: a node, nodes by name, or None for a node that is not there."""

    def plain(self) -> dict[str, Any]:
        """Nested dicts with defaults laid below what was given; interpolations as they are."""
        values: dict[str, Any] = {}
        for spec in dataclasses.fields(self.schema):
            if spec.name in self.nodes:
                below = self.nodes[spec.name]
                values[spec.name] = below and below.plain()
            else:
                values[spec.name] = self.given.get(spec.name, default_of(spec))
        return values

    def walk(self) -> Iterator["SchemaNode"]:
        """This node and all below it."""
        yield self
        for below in self.nodes.values():
            if below is not None:
                yield from below.walk()


@dataclass
class SchemaNodes:
    """Nodes by name, in a field that is a dict of nodes."""

    by_name: dict[str, SchemaNode]

    def plain(self) -> dict[str, Any]:
        return {name: node.plain() for name, node in self.by_name.items()}

    def walk(self) -> Iterator[SchemaNode]:
        for node in self.by_name.values():
            yield from node.walk()


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


class SchemaMatcher:
    """Matches a Tree with the schemas; `problems` holds every mismatch."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.problems: list[InputProblem] = []
        self._unknown: list[tuple[Path, list[str]]] = []

    def root(self, present: set[str]) -> SchemaNode:
        """The root, with those of its nodes that are present."""
        node = SchemaNode(Config, ())
        self._keys(node, self.tree.values)
        for spec in dataclasses.fields(Config):
            if is_schema(field_types(Config)[spec.name]) or allowed_of(spec).node:
                if spec.name not in present:
                    node.nodes[spec.name] = None
                elif spec.name not in node.nodes:
                    self._field(node, spec, {})
        self._report_unknown(node)
        return node

    def _keys(self, node: SchemaNode, values: dict[str, Any]) -> None:
        specs = {spec.name: spec for spec in dataclasses.fields(node.schema)}
        for key, value in values.items():
            if key in specs:
                self._field(node, specs[key], value)
            else:
                self._unknown.append(((*node.path, key), [name for name in specs if name != "_target_"]))

    def _field(self, node: SchemaNode, spec: dataclasses.Field, value: Any) -> None:
        hint, allowed, path = field_types(node.schema)[spec.name], allowed_of(spec), (*node.path, spec.name)
        if not is_schema(hint) and not allowed.node and below_schema(hint) is None:
            node.given[spec.name] = value
        elif is_schema(hint):
            node.nodes[spec.name] = self._node(hint, path, value)
        elif not isinstance(value, dict):
            self._report(path, "a value where a node belongs", near=f"{dotted(path)}.NAME=VALUE")
            node.nodes[spec.name] = SchemaNodes({}) if typing.get_origin(hint) is dict else None
        elif (schema := below_schema(hint)) is not None:
            parts = {name: self._node(schema, (*path, name), part) for name, part in value.items()}
            node.nodes[spec.name] = SchemaNodes(parts)
        elif typing.get_origin(hint) is dict:
            below = {name: self._target((*path, name), allowed, part) for name, part in value.items()}
            node.nodes[spec.name] = SchemaNodes({name: child for name, child in below.items() if child is not None})
        else:
            node.nodes[spec.name] = self._target(path, allowed, value)

    def _node(self, schema: type, path: Path, values: Any) -> SchemaNode:
        node = SchemaNode(schema, path)
        if not isinstance(values, dict):
            self._report(path, "a value where a node belongs", near=f"{dotted(path)}.NAME=VALUE")
            values = {}
        self._keys(node, values)
        for spec in dataclasses.fields(schema):
            if spec.name not in node.nodes and (is_schema(field_types(schema)[spec.name]) or allowed_of(spec).node):
                if allowed_of(spec).optional or (spec.default is None and not allowed_of(spec).node):
                    node.nodes[spec.name] = None
                else:
                    self._field(node, spec, {})
        return node

    def _target(self, path: Path, allowed: Allowed, values: Any) -> SchemaNode | None:
        if values == {} and (conf_directory() / path[-1]).is_dir():
            options = sorted(file.stem for file in (conf_directory() / path[-1]).glob("*.yaml"))
            self._report(path, "not chosen", ", ".join(options))
            return None
        if not isinstance(values, dict) or "_target_" not in values:
            self._report((*path, "_target_"), "missing: it names the class of this node", "package.module.Class")
            return None
        try:
            schema = find_schema(values["_target_"], allowed.base)
        except NoSchema as fault:
            self.problems.append(dataclasses.replace(fault.problem, where=dotted((*path, "_target_"))))
            return None
        return self._node(schema, path, values)

    def _report_unknown(self, root: SchemaNode) -> None:
        """Last, because a key may belong to a node that is matched after it."""
        for path, names in self._unknown:
            if len(path) == 1:
                full = option_named(path[0], root)
            else:
                full = near_option_below(path, names, root)
            self._report(path, "unknown key", ", ".join(names) or "no options", full)

    def _report(self, path: Path, what: str, allowed: str = "", near: str = "") -> None:
        self.problems.append(InputProblem(dotted(path), what, self.tree.shown(path), allowed, near))


def near_option_below(path: Path, names: Sequence[str], root: SchemaNode) -> str:
    """What an unknown key of a node may mean: one of the node's by nearly its name, another trainer's name, a similar one of the
    node, one of another node; empty where none is near."""
    sure, other = suggest(path[-1], names, SURE), foreign(path[-1], root)
    if sure or not other:
        near = sure or suggest(path[-1], names)
        return dotted((*path[:-1], near)) if near else elsewhere(path[-1], root, LIKELY)
    return other


def foreign(name: str, root: SchemaNode) -> str:
    """The full path of the option that another trainer calls so; empty where there is none in this run."""
    known = OTHER_TRAINERS.get(name.lower(), "")
    if not known and name.lower() in trl_fields("GRPOConfig"):
        known = framework_key("GRPOConfig", name.lower()) or ""
    full = known.partition(";")[0]
    options = {path for paths in _paths_by_name(root).values() for path in paths}
    return full if full in options and full not in {dotted(node.path) for node in root.walk()} else ""


def option_named(name: str, root: SchemaNode) -> str:
    """The full paths of the options that a name without its node may mean: of that very name in any node, else the nearest;
    empty where none is near."""
    paths, nodes = _paths_by_name(root), [spec.name for spec in dataclasses.fields(Config)]
    if exact := paths.get(name):
        return name if name in exact else " or ".join(exact)
    if other := foreign(name, root):
        return other
    return suggest(name, nodes, SURE) or elsewhere(name, root, LIKELY) or suggest(name, nodes)


def elsewhere(name: str, root: SchemaNode, cutoff: float) -> str:
    """The full path of an option of that name in another node; empty when there is none."""
    paths = _paths_by_name(root)
    return paths.get(suggest(name, paths, cutoff), [""])[0]


def _paths_by_name(root: SchemaNode) -> dict[str, list[str]]:
    """The full paths of all options, by their own names."""
    paths: dict[str, list[str]] = {}
    for node in root.walk():
        for spec in dataclasses.fields(node.schema):
            if spec.name != "_target_":
                paths.setdefault(spec.name, []).append(dotted((*node.path, spec.name)))
    return paths
