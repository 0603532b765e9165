"""Checks a Tree against the schemas: unknown keys, types, ranges and combinations, all problems at once.

Pydantic checks types and ranges. Interpolations are followed here; an interpolation of a secret stays unresolved in every
file.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, NoReturn

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic_core import SchemaValidator, ValidationError, core_schema

from rlvr_exp.config import schema
from rlvr_exp.config.cross_checks import cross_check
from rlvr_exp.config.names import LIKELY, OTHER_TRAINERS, SURE, framework_key, suggest, trl_fields
from rlvr_exp.config.options import (
    Allowed,
    NoSchema,
    allowed_of,
    below_schema,
    default_of,
    field_types,
    find_schema,
    is_schema,
)
from rlvr_exp.config.schema import STAGES, Config, nodes, reads, stage_nodes
from rlvr_exp.config.suited import Setting
from rlvr_exp.config.tree import Path, Tree, conf_directory, dotted
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.secrets import shows_secret


@dataclass
class SchemaNode:
    """One node: its schema, the leaves that were given, and the nodes below it."""

    schema: type
    path: Path
    given: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, "SchemaNode | SchemaNodes | None"] = field(default_factory=dict)
    """Below a field: a node, nodes by name, or None for a node that is not there."""

    def plain(self) -> dict[str, Any]:
        """Nested dicts of given values over defaults; interpolations stay as they are."""
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


class SchemaMatcher:
    """Matches a Tree with the schemas; `problems` holds every mismatch."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.problems: list[InputProblem] = []
        self._unknown: list[tuple[Path, list[str]]] = []

    def root(self, present: set[str]) -> SchemaNode:
        """The root, with those of its nodes that are present."""
        node = SchemaNode(schema.Config, ())
        self._keys(node, self.tree.values)
        for spec in dataclasses.fields(schema.Config):
            if is_schema(field_types(schema.Config)[spec.name]) or allowed_of(spec).node:
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
    """The option that an unknown key of a node may mean: a very similar name of the node, another trainer's name, a similar
    name of the node, or of another node; empty if none is similar."""
    sure, other = suggest(path[-1], names, SURE), foreign(path[-1], root)
    if sure or not other:
        near = sure or suggest(path[-1], names)
        return dotted((*path[:-1], near)) if near else elsewhere(path[-1], root, LIKELY)
    return other


def foreign(name: str, root: SchemaNode) -> str:
    """The full path of the option with this name in another trainer; empty if this run has none."""
    known = OTHER_TRAINERS.get(name.lower(), "")
    if not known and name.lower() in trl_fields("GRPOConfig"):
        known = framework_key("GRPOConfig", name.lower()) or ""
    full = known.partition(";")[0]
    options = {path for paths in _paths_by_name(root).values() for path in paths}
    return full if full in options and full not in {dotted(node.path) for node in root.walk()} else ""


def option_named(name: str, root: SchemaNode) -> str:
    """The full paths of the options that a name without its node may mean: of the same name in any node, else the most
    similar; empty if none is similar."""
    paths, nodes = _paths_by_name(root), [spec.name for spec in dataclasses.fields(schema.Config)]
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


SECRET = re.compile(r"(^|_)(token|secret|password|passwd|api_key|credentials?)$")
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True)
class Checked:
    """A configuration with the origin of each value. Usable if there are no problems."""

    config: Config
    tree: Tree
    secrets: dict[Path, str]
    """Interpolations of a secret."""
    problems: tuple[InputProblem, ...] = ()
    settings: tuple[Setting, ...] = ()
    """Settings that were chosen for a checkpoint without a preset."""
    left_out: tuple[str, ...] = ()
    """Values of YAML files that do not fit the groups chosen on the command line."""


def check(tree: Tree) -> Checked:
    """Type, resolve and cross-check everything, for the stage that the tree names."""
    stage = tree.values.get("stage")
    matcher = SchemaMatcher(tree)
    root = matcher.root(present_nodes(stage, given_choice(tree)))
    builder = TypedBuilder(root, tree, [*matcher.problems, *_foreign_nodes(tree, stage)])
    config = builder.make(root)
    for name, node in vars(config).items():
        if stage not in STAGES or reads(config, name):
            builder.combinations(node, (name,))
    builder.problems += [*_algorithms_of_stage(config), *cross_check(config)]
    return Checked(config, tree, builder.secrets, tuple(builder.problems))


def given_choice(tree: Tree) -> Any:
    """The target of the stage's own group, as given."""
    node = tree.values.get(str(tree.values.get("stage")))
    return node.get("_target_") if isinstance(node, dict) else None


def present_nodes(stage: Any, choice: Any = None) -> set[str]:
    """Nodes that a configuration of the stage has: those it reads, or all common nodes if the stage is unknown.

    Args:
        choice: the target of the stage's own group.
    """
    names = {spec.name for spec in fields(schema.Config)}
    return names - STAGES.keys() if stage not in STAGES else names & nodes(stage, choice)


def _foreign_nodes(tree: Tree, stage: Any) -> list[InputProblem]:
    what = "exists only under +stage={0}"
    return [
        InputProblem(name, what.format(name), tree.shown((name,)), "", "", f"+stage={name}, or drop it")
        for name in tree.values
        if name in stage_nodes() and name != stage
    ]


def _algorithms_of_stage(config: Config) -> Iterator[InputProblem]:
    stage = STAGES.get(config.stage)
    if stage is None or stage.algorithm is None:
        return
    roles = {f"roles.{role}.algorithm": own.algorithm for role, own in config.roles.items()}
    for where, node in {"algorithm": config.algorithm, **roles}.items():
        if node is not None and not isinstance(node, stage.algorithm):
            others = [name for name, one in STAGES.items() if one.algorithm and isinstance(node, one.algorithm)]
            what, remedy = f"not an algorithm of +stage={config.stage}", f"drop it, or +stage={' or '.join(others[:1])}"
            yield InputProblem(where, what, node._target_, stage.algorithm.__name__, "", remedy)


OUT_OF_RANGE = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "literal_error", "finite_number")
"""Pydantic's errors of a value that has the right type."""


class Rejected(Exception):
    """A value was reported as a problem and is not taken."""


class TypedBuilder:
    """Makes instances of the schemas from SchemaNodes; `problems` holds every value that could not be taken."""

    def __init__(self, root: SchemaNode, tree: Tree, problems: list[InputProblem]):
        self.tree, self.problems = tree, problems
        self.secrets: dict[Path, str] = {}
        self._root, self._rejected = root, list[Path]()
        self._container: DictConfig | None = None

    def make(self, node: SchemaNode) -> Any:
        """An instance of a node's schema; a value that cannot be taken is reported and replaced by its default."""
        values: dict[str, Any] = {name: self._below(below) for name, below in node.nodes.items()}
        for spec in fields(node.schema):
            if spec.name in node.given:
                try:
                    values[spec.name] = self._take(node, spec.name, allowed_of(spec))
                except Rejected:
                    continue
        return node.schema(**values)

    def _below(self, below: SchemaNode | SchemaNodes | None) -> Any:
        if isinstance(below, SchemaNodes):
            return {name: self.make(node) for name, node in below.by_name.items()}
        return None if below is None else self.make(below)

    def _take(self, node: SchemaNode, name: str, allowed: Allowed) -> Any:
        """A leaf in the field's type. Raises Rejected after reporting."""
        path, hint, given = (*node.path, name), field_types(node.schema)[name], node.given[name]
        if given == "???":
            self._reject(path, "mandatory and not given", words(hint, allowed), "", f"{dotted(path)}=VALUE")
        try:
            return validator(node.schema, name).validate_python(self._resolved(path, given))
        except OmegaConfBaseException as fault:
            self._reject(path, f"cannot be resolved: {str(fault).splitlines()[0]}", words(hint, allowed))
        except ValidationError as fault:
            wrong = next((one for one in fault.errors() if one["type"] in OUT_OF_RANGE), None)
            near = suggest(str(wrong["input"]), map(str, allowed.choices)) if wrong else ""
            self._reject(path, "not allowed" if wrong else "wrong type", words(hint, allowed), near)

    def _resolved(self, path: Path, value: Any) -> Any:
        self._guard_secrets(path, value)
        if "${" not in str(value):
            return value
        if self._container is None:
            self._container = OmegaConf.create(self._root.plain(), flags={"allow_objects": True})
        node = OmegaConf.select(self._container, dotted(path), throw_on_resolution_failure=True)
        if isinstance(value, str) and shows_secret(str(node)):  # Whatever the key is called.
            self.secrets[path] = value
        return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node

    def _guard_secrets(self, path: Path, value: Any) -> None:
        """Keep interpolated secrets out of files, and reject secrets in plain text."""
        if isinstance(value, dict):
            for name, part in value.items():
                self._guard_secrets((*path, str(name)), part)
        if isinstance(value, list):
            for part in value:
                self._guard_secrets(path, part)
        if not (isinstance(value, str) and value and (SECRET.search(path[-1]) or shows_secret(value))):
            return
        if value.startswith("${"):
            self.secrets[path] = value
            return
        remedy = f"export it as a variable, and {dotted(path)}='${{oc.env:VARIABLE}}'"
        self.problems.append(
            InputProblem(dotted(path), "a secret would stand in the run directory", "***", "", "", remedy)
        )

    def _reject(self, path: Path, what: str, allowed: str, near: str = "", remedy: str = "") -> NoReturn:
        self.problems.append(InputProblem(dotted(path), what, self.tree.shown(path), allowed, near, remedy))
        self._rejected.append(path)
        raise Rejected

    def combinations(self, node: Any, path: Path) -> None:
        """The problems from the schemas' own `problems`, with full paths."""
        if isinstance(node, dict):
            for name, part in node.items():
                self.combinations(part, (*path, name))
        if not hasattr(node, "__dataclass_fields__"):
            return
        for problem in node.problems() if hasattr(node, "problems") else ():
            if any(rejected[-1] in str(problem) for rejected in self._rejected if rejected[:-1] == path):
                continue  # It follows from the default that stands in for a rejected value.
            where, near = dotted((*path, problem.where)), problem.suggestion and dotted((*path, problem.suggestion))
            self.problems.append(replace(problem, where=where, suggestion=near))
        for spec in fields(node):
            self.combinations(getattr(node, spec.name), (*path, spec.name))


@cache
def validator(schema: type, name: str) -> SchemaValidator:
    """Pydantic's check of a leaf's type and range. Importing pydantic itself would take 0.1 s of every start."""
    spec = next(spec for spec in fields(schema) if spec.name == name)
    return SchemaValidator(_core(field_types(schema)[name], allowed_of(spec)))


def _core(hint: Any, allowed: Allowed) -> core_schema.CoreSchema:
    parts = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return core_schema.union_schema([_core(part, allowed) for part in parts])
    if typing.get_origin(hint) is list:
        return core_schema.list_schema(_core(parts[0], allowed))
    if typing.get_origin(hint) is dict:
        finite = parts[1] is not float  # A mapping's own check names the entry that is not finite.
        values = _core(parts[1], Allowed()) if finite else _no_bool(core_schema.float_schema())
        return core_schema.dict_schema(_core(str, Allowed()), values)
    bounds: dict[str, Any] = {"ge": allowed.low, "gt": allowed.above, "le": allowed.high, "lt": allowed.below}
    kinds: dict[Any, Callable[[], core_schema.CoreSchema]] = {
        int: lambda: _no_bool(core_schema.int_schema(**bounds)),
        float: lambda: _no_bool(core_schema.float_schema(allow_inf_nan=False, **bounds)),
        bool: core_schema.bool_schema,
        str: lambda: core_schema.str_schema(coerce_numbers_to_str=True),
        types.NoneType: core_schema.none_schema,
        Any: core_schema.any_schema,
    }
    if hint not in kinds:  # Of a user's own class.
        from pydantic import TypeAdapter

        return TypeAdapter(hint).core_schema
    kind = kinds[hint]()
    return core_schema.chain_schema([kind, core_schema.literal_schema([*allowed.choices])]) if allowed.choices else kind


def _no_bool(number: core_schema.CoreSchema) -> core_schema.CoreSchema:
    """Python counts True as 1; an option does not."""

    def check(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("true and false are no numbers")
        return value

    return core_schema.no_info_before_validator_function(check, number)


def words(hint: Any, allowed: Allowed) -> str:
    """The allowed values of a field, in words."""
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    kind = " or ".join(WORDS.get(part, str(part)) for part in kinds)
    if typing.get_origin(hint) in (list, dict):
        kind = "a list, [VALUE,VALUE]" if typing.get_origin(hint) is list else "a mapping, {NAME: VALUE}"
    return f"{kind}: {allowed}" if str(allowed) else kind
