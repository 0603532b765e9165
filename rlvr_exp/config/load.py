"""Reading and writing a resolved configuration, and building the objects that its nodes describe."""

import inspect
import sys
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra.utils import get_class

from rlvr_exp.config.roles import complete_roles, differing
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import choice
from rlvr_exp.config.tree import Tree
from rlvr_exp.config.typed_config import Checked, check, present_nodes
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
        if folder not in sys.path:
            sys.path.append(folder)
    tree = Tree()
    tree.merge(values, str(path))
    complete_roles(tree)
    checked = check(tree)
    if checked.problems:
        raise InputError(*checked.problems)
    return checked.config


def resolved(checked: Checked) -> dict[str, Any]:
    """What the stage reads, as nested plain values with every interpolation followed except those of secrets."""
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
