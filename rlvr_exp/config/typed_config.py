"""Types a Tree by its schemas, collecting every problem in place of stopping at the first.

Interpolations are followed here; an interpolation of a secret stays unresolved in every file.
"""

import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlvr_exp.config.cross_checks import cross_check
from rlvr_exp.config.names import suggest
from rlvr_exp.config.options import Allowed, allowed_of
from rlvr_exp.config.schema import Config
from rlvr_exp.config.schema_match import SchemaMatcher, SchemaNode, SchemaNodes, field_types
from rlvr_exp.config.stages import STAGE_NODES, STAGES, nodes, reads
from rlvr_exp.config.suited import Setting
from rlvr_exp.config.tree import Path, Tree, dotted
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.secrets import shows_secret

SECRET = re.compile(r"(^|_)(token|secret|password|passwd|api_key|credentials?)$")
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True)
class Checked:
    """A configuration with where each of its values came from. Usable when there are no problems."""

    config: Config
    tree: Tree
    secrets: dict[Path, str]
    """Interpolations of a secret."""
    problems: tuple[InputProblem, ...] = ()
    settings: tuple[Setting, ...] = ()
    """What was chosen for a checkpoint that no preset names."""
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
    """Nodes that a configuration of the stage has: those it reads; all that are common where the stage is unknown.

    Args:
        choice: the target of the stage's own group.
    """
    names = {spec.name for spec in fields(Config)}
    return names - STAGES.keys() if stage not in STAGES else names & nodes(stage, choice)


def _foreign_nodes(tree: Tree, stage: Any) -> list[InputProblem]:
    what = "exists only under +stage={0}"
    return [
        InputProblem(name, what.format(name), tree.shown((name,)), "", "", f"+stage={name}, or drop it")
        for name in tree.values
        if name in STAGE_NODES and name != stage
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
        """A leaf as OmegaConf converts it to the field's type. Raises Refused after reporting."""
        path, hint, given = (*node.path, name), field_types(node.schema)[name], node.given[name]
        if given == "???":
            self._reject(path, "mandatory and not given", words(hint, allowed), "", f"{dotted(path)}=VALUE")
        holder: Any = DictConfig({}, key_type=str, element_type=hint)
        try:
            holder[name] = self._resolved(path, given)
        except OmegaConfBaseException as fault:
            what = f"cannot be resolved: {str(fault).splitlines()[0]}" if "${" in str(given) else "wrong type"
            self._reject(path, what, words(hint, allowed))
        container: Any = OmegaConf.to_container(holder)
        value = container[name]
        for item in value if isinstance(value, list) else [value]:
            if item is not None and not allowed.permits(item):
                self._reject(path, "not allowed", words(hint, allowed), suggest(str(item), map(str, allowed.choices)))
        return value

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


def words(hint: Any, allowed: Allowed) -> str:
    """What a field takes, in words."""
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    kind = " or ".join(WORDS.get(part, str(part)) for part in kinds)
    if typing.get_origin(hint) in (list, dict):
        kind = "a list, [VALUE,VALUE]" if typing.get_origin(hint) is list else "a mapping, {NAME: VALUE}"
    return f"{kind}: {allowed}" if str(allowed) else kind
