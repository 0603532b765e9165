"""Options of `roles`: what differs for one role of an environment with several. Every option that is not given for a role is
that of the node of the same name at the top.

    roles.annotator.optimizer.lr=1e-4          the top's optimizer at another rate
    roles.writer.algorithm=rloo                another option of the group, with that option's own defaults
"""

import copy
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path as Folder
from typing import Any

import yaml
from hydra.core.override_parser.types import Override

from rlvr_exp.config.algorithm import Distillation, Optimizer
from rlvr_exp.config.engine import Endpoint
from rlvr_exp.config.model import Model, has_adapter
from rlvr_exp.config.options import SCHEMAS, node
from rlvr_exp.config.tree import Path, Tree
from rlvr_exp.core.domains import domains, load
from rlvr_exp.core.errors import InputProblem

OF_THE_RUN = {"max_steps": 0, "prompts_per_step": 0, "group_size": 0, "rollout_batch_size": 0} | {
    "iterations": 1,
    "minibatches": 1,
    "rollout_steps": 1,
}
"""Options of an algorithm that are the run's, since its roles learn from the same episodes in the same steps; what an
algorithm without the option does."""
OF_A_ROLE = ("adapter", "chat_template", "thinking", "max_prompt_tokens", "max_completion_tokens")
"""Options of a model in which roles with a shared base may differ."""


TEACHER = "teacher"
"""The role whose policy teaches another (algorithm=distillation). It takes no part in episodes."""


@dataclass
class Role:
    """Options of one role."""

    model: Model | None = None
    """Its policy."""
    algorithm: Any = node(optional=True)
    """How it learns."""
    reward: Any = node(optional=True)
    """Reward of its completions."""
    optimizer: Any = node(base=Optimizer, optional=True)
    """Optimizer of its weights."""
    engine: Endpoint | None = None
    """A vLLM server that holds the weights of the teacher."""


TARGET = "_target_"
NODES = ("model", "algorithm", "reward", "optimizer")
"""Nodes of a role that begin as those at the top."""


def of_role(config: Any, role: str) -> Any:
    """The configuration with the nodes of a role."""
    own = config.roles.get(role)
    given = {name: getattr(own, name) for name in NODES if own is not None}
    return replace(config, **{name: value for name, value in given.items() if value is not None})


def longest_sequence(config: Any) -> int:
    """Tokens of the longest prompt with its completion, of all roles."""
    models = [config.model, *(of_role(config, role).model for role in role_names(config))]
    return max(one.max_prompt_tokens + one.max_completion_tokens for one in models)


def choose_for_roles(
    tree: Tree, overrides: Sequence[Override], option_of: Callable[[str, str], dict[str, Any] | None]
) -> list[Override]:
    """Put the options that are chosen for roles (`roles.writer.algorithm=rloo`), before single values.

    Args:
        option_of: (group, option) -> the values of that option's file; None where there is none.

    Returns:
        The other overrides.
    """
    others = []
    for override in overrides:
        path, chosen = tuple(override.key_or_group.split(".")), None
        if len(path) == 3 and path[0] == "roles" and path[2] in NODES and isinstance(override.value(), str):
            chosen = option_of(path[2], str(override.value()))
        if chosen is None:
            others.append(override)
        else:
            for name, values in _nodes_of(chosen, path[2]).items():
                if path[1] == TEACHER and name != path[2]:  # A preset's learning rate, for example.
                    continue
                tree.put((*path[:2], name), values, f"conf/{path[2]}/{override.value()}.yaml")
    return others


def _nodes_of(chosen: dict[str, Any], group: str) -> dict[str, Any]:
    """The nodes of a role in an option's file: one of the whole configuration, such as a model's preset, has several."""
    if not isinstance(chosen.get(group), dict):
        return {group: chosen}
    return {name: chosen[name] for name in NODES if isinstance(chosen.get(name), dict)}


def spread_roles(tree: Tree) -> None:
    """A checkpoint of several roles that `model.path` names gives each role its own folder. Imports the environment's class."""
    model = tree.values.get("model")
    named = model.get("path") if isinstance(model, dict) else None
    if not isinstance(named, str) or not named or (Folder(named) / "config.json").is_file():
        return
    environment = tree.values.get("environment")
    roles = _roles_of(str(environment.get(TARGET, "")) if isinstance(environment, dict) else "")
    if len(roles) < 2 or not all(_is_checkpoint(Folder(named) / role) for role in roles):
        return
    origin = tree.origin(("model", "path"))
    for role in roles:
        at = ("roles", role, "model", "path")
        if not tree.origin(at):
            tree.put(at, str(Folder(named) / role), origin)
    tree.put(("model", "path"), str(Folder(named) / roles[0]), origin)


def _is_checkpoint(folder: Folder) -> bool:
    return any((folder / name).is_file() for name in ("config.json", "adapter_config.json"))


def complete_roles(tree: Tree) -> None:
    """Lay the top's nodes below the given options of roles. A node that names its class is complete, except for options of
    the run. A teacher has nothing of its student."""
    roles = tree.values.get("roles")
    for role, given in roles.items() if isinstance(roles, dict) else ():
        if role == TEACHER:
            continue
        for name in NODES if isinstance(given, dict) else ():
            own, top = given.get(name), tree.values.get(name)
            if isinstance(own, dict) and isinstance(top, dict):
                if TARGET in own:
                    known = {spec.name for spec in fields(SCHEMAS[own[TARGET]])} if own[TARGET] in SCHEMAS else set()
                    top = {key: value for key, value in top.items() if key in OF_THE_RUN.keys() & known}
                _lay_below(tree, ("roles", role, name), (name,), own, top)


def _lay_below(tree: Tree, path: Path, at: Path, given: dict[str, Any], top: dict[str, Any]) -> None:
    for key, value in top.items():
        if key not in given:
            tree.put((*path, key), copy.deepcopy(value), tree.origin((*at, key)))
        elif isinstance(given[key], dict) and isinstance(value, dict):
            _lay_below(tree, (*path, key), (*at, key), given[key], value)


def differing(values: Mapping[str, Any]) -> dict[str, Any]:
    """The resolved `roles` of a configuration as `complete_roles` takes them: differences from the top's nodes, and
    complete nodes of another class or of a teacher."""
    found: dict[str, Any] = {}
    for role, nodes in values["roles"].items():
        given = {name: own for name, own in nodes.items() if own is not None}
        if role != TEACHER:
            given = {name: _written(own, values.get(name)) for name, own in given.items() if own != values.get(name)}
        found[role] = given
    return {role: nodes for role, nodes in found.items() if nodes}


def _written(own: dict[str, Any], top: Any) -> dict[str, Any]:
    if _within(top, own):
        return _difference(own, top)
    return {key: value for key, value in own.items() if key not in OF_THE_RUN}


def _within(top: Any, own: Any) -> bool:
    """Whether a node has all keys of the top's, with the same class, so that differences describe it."""
    if not (isinstance(top, dict) and isinstance(own, dict)):
        return isinstance(top, dict) is isinstance(own, dict)
    same = own.get(TARGET) == top.get(TARGET)
    return same and all(key in own and _within(value, own[key]) for key, value in top.items())


def _difference(own: Any, top: Any) -> Any:
    if not (isinstance(own, dict) and isinstance(top, dict)):
        return own
    return {key: _difference(value, top.get(key)) for key, value in own.items() if key not in top or value != top[key]}


def role_names(config: Any) -> tuple[str, ...]:
    """The roles of a configuration's environment. Imports the environment's class."""
    if team := team_of(config):
        return team.roles
    return _roles_of(getattr(config.environment, TARGET, ""))


def _roles_of(target: str) -> tuple[str, ...]:
    module, _, name = target.rpartition(".")
    return tuple(getattr(importlib.import_module(module), name).roles) if module else ()


def role_problems(config: Any, readable: Callable[[str], bool]) -> Iterator[InputProblem]:
    """Roles that do not exist, and options that cannot differ between them.

    Args:
        readable: whether the stage reads a node.
    """
    names = role_names(config) if config.roles else ()
    if readable("algorithm") and isinstance(config.algorithm, Distillation) and not _has_teacher(config):
        remedy = f"roles.{TEACHER}.model.path=FOLDER, roles.{TEACHER}.engine.url=URL, or algorithm=sdft"
        yield InputProblem("roles", "there is no teacher", "", f"roles.{TEACHER}.model", "", remedy)
    for role, own in config.roles.items():
        where = f"roles.{role}"
        if role == TEACHER and readable("algorithm") and isinstance(config.algorithm, Distillation):
            for name in NODES:
                if name != "model" and getattr(own, name) is not None:
                    yield InputProblem(f"{where}.{name}", "a teacher does not learn", "", "model", "", "drop it")
            if own.engine is not None:
                yield from _of_served_teacher(config, own)
            continue
        if own.engine is not None:
            yield InputProblem(f"{where}.engine", "the roles of a run share its engine", "", "", "", "engine=NAME")
        if role not in names or len(names) == 1:
            what = "the environment has no such role" if len(names) > 1 else "the environment has one role"
            allowed = ", ".join(names) if len(names) > 1 else "the options of the top nodes"
            yield InputProblem(where, what, role, allowed, "", "drop it, or another environment")
            continue
        for name in NODES:
            if getattr(own, name) is not None and not readable(name):
                yield InputProblem(f"{where}.{name}", "has no effect in this stage", "", "", "", "drop it")
        yield from _of_algorithm(config, where, own.algorithm)
        yield from _of_base(config, where, own.model)
    if team := team_of(config):
        yield from team.problems(config)


def _has_teacher(config: Any) -> bool:
    own = config.roles.get(TEACHER)
    return own is not None and (own.model is not None or own.engine is not None)


def _of_served_teacher(config: Any, own: Role) -> Iterator[InputProblem]:
    """A server that cannot teach."""
    where, algorithm = f"roles.{TEACHER}", config.algorithm
    if own.model is not None:
        remedy = f"drop {where}.model or {where}.engine"
        yield InputProblem(where, "the teacher is a model here or on a server", "both", "one of them", "", remedy)
    if own.engine is not None and not own.engine.url:
        what, remedy = "a server needs an address", f"{where}.engine.url=http://HOST:PORT/v1"
        yield InputProblem(f"{where}.engine.url", what, "", "", "", remedy)
    if algorithm.temperature != 1.0:
        what, remedy = (
            "a server scores tokens at temperature 1",
            f"algorithm.temperature=1, or {where}.model.path=FOLDER",
        )
        yield InputProblem("algorithm.temperature", what, f"{algorithm.temperature:g}", "1", "", remedy)
    if not algorithm.distillation_top_k:
        what, remedy = "a server returns some tokens, not all", "algorithm.distillation_top_k=100"
        yield InputProblem("algorithm.distillation_top_k", what, "0", "1 or more", "", remedy)


def _of_algorithm(config: Any, where: str, own: Any) -> Iterator[InputProblem]:
    for name, absent in OF_THE_RUN.items() if own is not None else ():
        given, top = getattr(own, name, absent), getattr(config.algorithm, name, absent)
        if given != top:
            what, remedy = "all roles learn from the same episodes, in the same steps", f"algorithm.{name}"
            yield InputProblem(f"{where}.algorithm.{name}", what, str(given), str(top), "", remedy)


def _of_base(config: Any, where: str, own: Model | None) -> Iterator[InputProblem]:
    """Roles with adapters share their base."""
    if own is None or not (has_adapter(own) or has_adapter(config.model)):
        return
    both = own, config.model
    differing = [spec.name for spec in fields(Model) if len({repr(getattr(one, spec.name)) for one in both}) > 1]
    names = {"embedded"} if own.is_embedded and config.model.is_embedded else {"path", "name"}
    for name in [name for name in differing if name in names] or differing:
        if name not in (*OF_A_ROLE, "embedded") or name in names:
            given, top = getattr(own, name), getattr(config.model, name)
            what, remedy = "roles with adapters share one base", f"model.{name}, or no adapters"
            yield InputProblem(f"{where}.model.{name}", what, str(given), str(top), "", remedy)


OF_MODEL = "model"
"""The value of `evaluate.NAME` and `infer.NAME` that takes the model node's own weights for all roles."""


@dataclass(frozen=True)
class Team:
    """A team, as the core sees it."""

    name: str
    roles: tuple[str, ...]
    play: str
    """Import path of its Play (rlvr_exp.stages.shared.components)."""
    problems: Callable[[Any], Iterator[InputProblem]]
    """Problems of a configuration with this team."""

    def starts(self, config: Any) -> dict[str, str]:
        """Role -> the folder that its policy starts from; empty: the model node's weights. No roles without this team."""
        if (own := getattr(config, self.name, None)) is not None:
            return {role: getattr(own, role) for role in self.roles}
        nodes = (node for node in (config.evaluate, config.infer) if node is not None)
        checkpoint = next((getattr(node, self.name, "") for node in nodes), "")
        if not checkpoint:
            return {}
        return {role: "" if checkpoint == OF_MODEL else str(Folder(checkpoint) / role) for role in self.roles}

    def option(self, config: Any, role: str) -> str:
        """The option that names the role's folder."""
        return f"{self.name}.{role}" if getattr(config, self.name) is not None else f"{config.stage}.{self.name}"


def teams() -> tuple[Team, ...]:
    """The teams of all domains."""
    return tuple(load(one.team) for one in domains().values() if one.team)


def team_of(config: Any) -> Team | None:
    """The team of a configuration; None if one policy, or the roles of its environment, act."""
    return next((team for team in teams() if team.starts(config)), None)


def team_node(config: Any) -> Any:
    """The node of the team that trains; None without one."""
    return next((node for team in teams() if (node := getattr(config, team.name, None)) is not None), None)


def starts(config: Any) -> dict[str, str]:
    """As `Team.starts`; empty without a team."""
    return team.starts(config) if (team := team_of(config)) else {}


def starts_missing(config: Any) -> Iterator[InputProblem]:
    """Folders of roles that hold no weights."""
    team = team_of(config)
    for role, folder in starts(config).items():
        there = Folder(folder)
        if team and folder and not any((there / name).is_file() for name in ("config.json", "adapter_config.json")):
            trains = getattr(config, team.name) is not None
            allowed = "a checkpoint or an adapter" if trains else f"step_N/ of +stage={team.name}, or {OF_MODEL}"
            where, what = team.option(config, role), f"no weights of the {role} are there"
            yield InputProblem(where, what, folder, allowed, "", "correct the path")


def team_of_run(run: str) -> Team | None:
    """The team that a run directory is of, by its own config.yaml."""
    written = yaml.safe_load((Folder(run) / "config.yaml").read_text(encoding="utf-8")) or {}
    return next((team for team in teams() if team.name == written.get("stage")), None)
