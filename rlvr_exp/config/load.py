"""Configurations of existing runs: read, write, inherit; and the objects that nodes describe.

Stages that read an earlier run inherit its options, and so does a run that is resumed by its directory alone. The words of
the command line override its config.yaml. `+stage=rescore rescore.run=DIR sandbox.cpu_s=4` verifies as DIR did, except for
the limit; `run.resume=DIR algorithm.max_steps=400` resumes DIR with all of its options but one. A group that the words
choose (`verifier=pytest`) inherits nothing.
"""

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.types import Override
from hydra.utils import get_class

from rlvr_exp.config.roles import complete_roles, differing
from rlvr_exp.config.run import AUTO
from rlvr_exp.config.schema import STAGES, Config, add_folder, choice
from rlvr_exp.config.schema_check import Checked, check, present_nodes
from rlvr_exp.config.tree import Tree
from rlvr_exp.core.errors import InputError, InputProblem


def load(path: Path) -> Config:
    """The configuration of a run, from its config.yaml. Nodes that its stage does not read hold their defaults or None.

    Raises:
        InputError: the file is missing, is no YAML, or does not fit the schemas.
    """
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("it holds no mapping")
    except (OSError, ValueError, yaml.YAMLError) as fault:
        raise InputError(
            InputProblem(str(path), f"cannot be read: {fault}", remedy="give a run's own config.yaml")
        ) from fault
    for folder in (values.get("run") or {}).get("searchpath") or []:
        add_folder(Path(folder))
    tree = Tree()
    tree.merge(values, str(path))
    complete_roles(tree)
    checked = check(tree)
    if checked.problems:
        raise InputError(*checked.problems)
    return checked.config


def resolved(checked: Checked) -> dict[str, Any]:
    """The nodes that the stage reads, as nested plain values. Interpolations are followed, except those of secrets."""
    present = present_nodes(checked.config.stage, choice(checked.config))
    values = {name: _plain(node) for name, node in asdict(checked.config).items() if name in present}
    if "roles" in values:
        values["roles"] = differing(values)
    for path, interpolation in checked.secrets.items():
        node = values
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = interpolation
    return values


def _plain(value: Any) -> Any:
    """`_target_` first, since it defines the rest."""
    if not isinstance(value, dict):
        return value
    ordered = sorted(value.items(), key=lambda item: item[0] != "_target_")
    return {key: _plain(part) for key, part in ordered}


def to_yaml(checked: Checked) -> str:
    """The text of config.yaml."""
    return yaml.safe_dump(resolved(checked), sort_keys=False, allow_unicode=True)


def build(node: Any, **runtime: Any) -> Any:
    """The object that a node with `_target_` describes: its class, which derives from the node's schema, with the node's
    options.

    `runtime` is optional: a class is given those of its parts that its constructor names, so that a user's own class
    need not take what it does not use. Nodes with `_target_` below it are built first.
    """
    make = get_class(node._target_)
    options = {spec.name: _built(getattr(node, spec.name)) for spec in fields(make) if spec.name != "_target_"}
    named = inspect.signature(make).parameters
    return make(**options, **{name: part for name, part in runtime.items() if name in named})


def _built(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _built(part) for name, part in value.items()}
    return build(value) if is_dataclass(value) and hasattr(value, "_target_") else value


def inherit_run_config(tree: Tree, choices: Collection[Override], values: Sequence[Override]) -> list[Path]:
    """Put the nodes of the named run in the place of the groups' first options, if there is such a run.

    Args:
        choices: groups chosen on the command line; they stay.
        values: the overrides that are not applied yet, among them the name of the run.

    Returns:
        Folders with the run's own classes, which can be imported now.
    """
    stage = str(tree.values.get("stage"))
    named = [str(value.value()) for value in values if value.key_or_group == f"{stage}.run"]
    inherited = STAGES[stage].inherits if stage in STAGES else ()
    return _lay(tree, Path(named[-1]), ("seed", *inherited), choices) if inherited and named else []


def resumed_run(values: Sequence[Override]) -> tuple[str, list[InputProblem]]:
    """The stage of the run that `run.resume` names, or `run.dir` with run.resume=auto; or a problem if no run is there,
    which run.resume=auto allows."""
    directory = _resumed(values)
    stage = _read(directory / "config.yaml").get("stage") if directory else None
    if isinstance(stage, str) and stage in STAGES:
        return stage, []
    if directory is None or any(value.key_or_group == "run.resume" and value.value() == AUTO for value in values):
        return "", []
    near = next((str(above) for above in directory.parents[:2] if (above / "config.yaml").is_file()), "")
    allowed = "a run directory, with config.yaml and checkpoints/"
    return "", [InputProblem("run.resume", "no run is there", str(directory), allowed, near)]


def inherit_resumed(tree: Tree, choices: Collection[Override], values: Sequence[Override]) -> list[Path]:
    """Put all nodes of the run that is resumed in the place of the stage's own; as `inherit_run_config`."""
    directory = _resumed(values)
    if directory is None:
        return []
    folders = _lay(tree, directory, sorted(_read(directory / "config.yaml").keys() - {"stage"}), choices)
    tree.put(("run", "dir"), "", str(directory))  # It is named by the words, wherever it was written.
    return folders


def _resumed(values: Sequence[Override]) -> Path | None:
    given = {value.key_or_group: str(value.value()) for value in values}
    resume = given.get("run.resume", "")
    named = given.get("run.dir", "") if resume == AUTO else resume
    return Path(named) if named else None


def _lay(tree: Tree, run: Path, names: Collection[str], choices: Collection[Override]) -> list[Path]:
    path = run / "config.yaml"
    given = _read(path)
    chosen = {choice.key_or_group for choice in choices}
    for name in names:
        if name in given and name not in chosen:
            if name in tree.values:
                tree.remove((name,))
            tree.put((name,), given[name], str(path))
    folders = [Path(folder) for folder in (given.get("run") or {}).get("searchpath") or ()]
    for folder in folders:
        add_folder(folder)
    return folders


def _read(path: Path) -> Mapping[str, Any]:
    """Empty if it cannot be read; rlvr_exp.config.needs reports that."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}
