"""Value overrides of the command line, applied to a Tree in order."""

import dataclasses
import typing
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.types import Override, OverrideType

from rlvr_exp.config.options import allowed_of
from rlvr_exp.config.schema import Config
from rlvr_exp.config.schema_match import field_types, is_schema
from rlvr_exp.config.stages import STAGE_NODES, STAGES, nodes
from rlvr_exp.config.targets import NoSchema, find_schema
from rlvr_exp.config.tree import Path, Tree, dotted
from rlvr_exp.core.errors import InputProblem

MAPPING = "mapping"
"""Stands for a field that is a dict with names of the user's choice."""


def apply(tree: Tree, overrides: Sequence[Override], problems: list[InputProblem]) -> list[Override]:
    """Apply each override to the tree; returns those that were applied, the others become problems."""
    return [override for override in overrides if _apply_one(tree, override, problems)]


def _apply_one(tree: Tree, override: Override, problems: list[InputProblem]) -> bool:
    path = tuple(override.key_or_group.split("."))
    word = override.input_line or ""
    problem = _shape_problem(path, word, override) or _open_problem(tree, path, word, override)
    if problem is None:
        try:
            problem = _lay(tree, path, word, override)
        except KeyError as fault:
            way = str(fault.args[0])
            what = "nothing there to delete" if override.type is OverrideType.DEL else f"{way} is a value, not a node"
            problem = InputProblem(word, what)
    if problem is not None:
        problems.append(problem)
    return problem is None


def _lay(tree: Tree, path: Path, word: str, override: Override) -> InputProblem | None:
    """Raises KeyError when the path leads nowhere."""
    if override.type is not OverrideType.DEL:
        tree.put(path, override.value(), "command line")
    elif override.value() not in (None, tree.get(path)):
        return InputProblem(
            word, "another value is there", repr(override.value()), repr(tree.get(path)), "", f"~{dotted(path)}"
        )
    else:
        tree.remove(path)
    return None


def _shape_problem(path: Path, word: str, override: Override) -> InputProblem | None:
    if override.package is not None or "/" in path[0]:
        return InputProblem(word, "no such group", "", ", ".join(field_types(Config)))
    if path == ("run", "searchpath"):
        return InputProblem(word, "follows from hydra.searchpath", "", "", "", "hydra.searchpath=[DIR,...]")
    if path == ("stage",):
        return InputProblem(word, "a stage is chosen as a group", "", ", ".join(STAGES), "", "+stage=NAME")
    return None


def _open_problem(tree: Tree, path: Path, word: str, override: Override) -> InputProblem | None:
    """Entries are added and deleted only where the schema has a mapping; elsewhere every key exists already."""
    if override.type in (OverrideType.CHANGE, OverrideType.FORCE_ADD):
        return None
    parents = _parents(tree, path)
    if override.type is OverrideType.DEL:
        if parents[-1] is MAPPING:
            return None
        return InputProblem(word, "an option of a schema cannot be deleted", "", "", "", f"{dotted(path)}=VALUE")
    if MAPPING not in parents and is_schema(parents[-1]) and path[-1] in field_types(parents[-1]):
        return InputProblem(word, "this key exists already", "", "", "", f"drop the +: {word.lstrip('+')}")
    return None


def _parents(tree: Tree, path: Path) -> list[Any]:
    """What each node on the way to a path is: a schema, MAPPING, or None where nothing is known."""
    kinds: list[Any] = [Config]
    for depth, part in enumerate(path[:-1]):
        kinds.append(_below(kinds[-1], part, tree, path[: depth + 1]))
    return kinds


def _below(kind: Any, part: str, tree: Tree, at: Path) -> Any:
    if kind is MAPPING:
        return _by_target(tree, at) or MAPPING
    spec = {spec.name: spec for spec in dataclasses.fields(kind)}.get(part) if kind is not None else None
    if spec is None:
        return None
    hint = field_types(kind)[part]
    if is_schema(hint):
        return hint
    if typing.get_origin(hint) is dict:
        return MAPPING
    return _by_target(tree, at) if allowed_of(spec).node else None


def _by_target(tree: Tree, at: Path) -> type | None:
    try:
        return find_schema(tree.get((*at, "_target_")), None)
    except (KeyError, NoSchema):
        return None


OF_UPDATES = ("run.checkpoint", "run.log_every_steps", "run.probe", "run.select")
"""Options of the node `run`, which every stage reads, that are read where weights are updated."""


def no_effect(overrides: Sequence[Override], stage: Any, choice: Any = None) -> list[InputProblem]:
    """Explicit words about what the stage, with the choice of this target in its own group, does not read."""
    if stage not in STAGES:
        return []
    read = nodes(stage, choice)
    readable = ", ".join(name for name in field_types(Config) if name in read)
    unread = () if "optimizer" in read else OF_UPDATES
    allowed = f"options of {readable}" + f", but for {', '.join(unread)}" * bool(unread)
    return [
        InputProblem(
            override.input_line or "",
            f"has no effect under +stage={stage}",
            "",
            allowed,
            "",
            "drop it",
        )
        for override in overrides
        if _node(override) not in read or override.key_or_group.startswith(unread)
    ]


def _node(override: Override) -> str:
    """The node that a word is about; that of every stage where there is none, or it exists under one stage alone."""
    node = override.key_or_group.split(".")[0].split("/")[0]
    return node if node in field_types(Config) and node not in STAGE_NODES else "run"
