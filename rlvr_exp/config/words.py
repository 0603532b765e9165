"""The words of a command line: parsed by Hydra's grammar, and applied to a Tree in order.

A word that cannot be read is answered with the word that can.
"""

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as Folder
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException

from rlvr_exp.config import schema
from rlvr_exp.config.options import NoSchema, allowed_of, field_types, find_schema, is_schema
from rlvr_exp.config.schema import STAGES, nodes, stage_nodes
from rlvr_exp.config.tree import Path, Tree, dotted
from rlvr_exp.core.errors import InputError, InputProblem

EXPERIMENT = "+experiment="
EMPTY = "\"''\""
"""An empty text as a shell passes it on to the grammar."""


@dataclass
class ParsedOverrides:
    """A parsed command line."""

    overrides: list[Override] = field(default_factory=list)
    searchpath: list[Folder] = field(default_factory=list)
    problems: list[InputProblem] = field(default_factory=list)


def parse(words: Sequence[str]) -> ParsedOverrides:
    """Parse each word by Hydra's parser; a word that cannot be read is a problem, and the rest is still parsed."""
    parsed, parser, before = ParsedOverrides(), OverridesParser.create(), ""
    for word in words:
        try:
            override = parser.parse_override(word)
        except HydraException as fault:
            parsed.problems.append(unreadable(word, fault, before))
            continue
        finally:
            before = word
        if problem := nothing_given(word):
            parsed.problems.append(problem)
        elif override.is_hydra_override():
            _hydra(parsed, override)
        elif override.is_sweep_override():
            remedy = f"--multirun to sweep over the values, key=[a,b] for a list, {quoted(word)} for text"
            parsed.problems.append(InputProblem(word, "several values for one run", "", "", "", remedy))
        else:
            parsed.overrides.append(override)
    return parsed


def unreadable(word: str, fault: Exception, before: str) -> InputProblem:
    """The problem of a word that the grammar refuses. `before`: the word before it, whose value may have had a blank."""
    remedy = "key=value, +group=option or ~key"
    if "=" in word.lstrip("="):
        remedy = f"{quoted(word)}: a value with special characters is quoted"
    elif "=" in before:
        remedy += f"; a value with blanks is quoted: {quoted(f'{before} {word}')}"
    return InputProblem(word, f"cannot be read: {str(fault).splitlines()[0]}", "", "", "", remedy)


def quoted(word: str) -> str:
    """A `key=value` as it is typed if its value is one text: quoted for the grammar and for the shell."""
    key, _, value = word.partition("=")
    opens, closes = ("[", "]") if value[:1] == "[" and value[-1:] == "]" else ("", "")
    inner = value.strip("[]") if opens else value
    inner = inner.strip("\"'").replace('"', '\\"').replace("'", "'\"'\"'")
    return f"'{key}={opens}\"{inner}\"{closes}'"


def nothing_given(word: str) -> InputProblem | None:
    """The problem of `key=` without a value, for example from a shell variable that is not set."""
    if not word.endswith("=") or word.count("=") > 1:
        return None
    remedy = f"give a value, or set the shell's variable; {word}{EMPTY} where an empty text is meant"
    return InputProblem(word.strip("+~="), "nothing is given", word, "", "", remedy)


def _hydra(parsed: ParsedOverrides, override: Override) -> None:
    if override.key_or_group != "hydra.searchpath":
        what, allowed = "Hydra's own options are not used", "hydra.searchpath=[DIR,...]"
        remedy = "drop it; run.dir and run.* decide what a run writes"
        parsed.problems.append(InputProblem(override.input_line or "", what, "", allowed, "", remedy))
        return
    folders = override.value()
    for folder in folders if isinstance(folders, list) else [folders]:
        path = Folder(str(folder).removeprefix("file://")).expanduser().resolve()
        if not path.is_dir():
            parsed.problems.append(
                InputProblem("hydra.searchpath", "no such folder", str(folder), "an existing folder")
            )
            continue
        parsed.searchpath.append(path)
        try:
            schema.add_folder(path)
        except InputError as fault:
            parsed.problems += fault.problems


def one_experiment(words: Sequence[str]) -> tuple[str, ...]:
    """The words with one choice of experiments, in their order: a part and the whole may each have one."""
    chosen = [word.removeprefix(EXPERIMENT) for word in words if word.startswith(EXPERIMENT)]
    if len(chosen) < 2:
        return tuple(words)
    return (*(word for word in words if not word.startswith(EXPERIMENT)), f"{EXPERIMENT}[{','.join(chosen)}]")


MAPPING = "mapping"
"""Stands for a field that is a dict with names of the user's choice."""


def apply(tree: Tree, overrides: Sequence[Override], problems: list[InputProblem]) -> list[Override]:
    """Apply each override to the tree; returns those that were applied, the others become problems."""
    return [override for override in overrides if _apply_one(tree, override, problems)]


def _apply_one(tree: Tree, override: Override, problems: list[InputProblem]) -> bool:
    path = tuple(override.key_or_group.split("."))
    word = override.input_line or ""
    problem = _shape_problem(path, word, override) or _open_problem(tree, path, word, override)
    try:
        if problem is None and override.type is not OverrideType.DEL:
            tree.put(path, override.value(), "command line")
        elif problem is None and override.value() not in (None, there := tree.get(path)):
            got, remedy = repr(override.value()), f"~{dotted(path)}"
            problem = InputProblem(word, "another value is there", got, repr(there), "", remedy)
        elif problem is None:
            tree.remove(path)
    except KeyError as fault:  # The path leads nowhere.
        way = str(fault.args[0])
        what = "nothing there to delete" if override.type is OverrideType.DEL else f"{way} is a value, not a node"
        problem = InputProblem(word, what)
    if problem is not None:
        problems.append(problem)
    return problem is None


def _shape_problem(path: Path, word: str, override: Override) -> InputProblem | None:
    if override.package is not None or "/" in path[0]:
        return InputProblem(word, "no such group", "", ", ".join(field_types(schema.Config)))
    if path == ("run", "searchpath"):
        return InputProblem(word, "follows from hydra.searchpath", "", "", "", "hydra.searchpath=[DIR,...]")
    if path == ("stage",):
        return InputProblem(word, "a stage is chosen as a group", "", ", ".join(STAGES), "", "+stage=NAME")
    return None


def _open_problem(tree: Tree, path: Path, word: str, override: Override) -> InputProblem | None:
    """Entries are added and deleted only in mappings; elsewhere every key exists already."""
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
    """The kind of each node on the way to a path: a schema, MAPPING, or None if nothing is known."""
    kinds: list[Any] = [schema.Config]
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
"""Options of the node `run` that only stages with updates of weights read."""


def no_effect(overrides: Sequence[Override], stage: Any, choice: Any = None) -> list[InputProblem]:
    """Words about options that the stage, with this choice in its own group, does not read."""
    if stage not in STAGES:
        return []
    read = nodes(stage, choice)
    readable = ", ".join(name for name in field_types(schema.Config) if name in read)
    unread = () if "optimizer" in read else OF_UPDATES
    allowed = f"options of {readable}" + f", but for {', '.join(unread)}" * bool(unread)
    return [
        InputProblem(override.input_line or "", f"has no effect under +stage={stage}", "", allowed, "", "drop it")
        for override in overrides
        if _node(override) not in read or override.key_or_group.startswith(unread)
    ]


def _node(override: Override) -> str:
    """The node of a word; that of every stage if there is none, or it exists under one stage only."""
    node = override.key_or_group.split(".")[0].split("/")[0]
    return node if node in field_types(schema.Config) and node not in stage_nodes() else "run"
