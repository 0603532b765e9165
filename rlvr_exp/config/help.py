"""Texts of --help: of the program, of a stage's options, and of the options that contain a word. Options that are still to
be given, such as a path, are no obstacle; wrong words are."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import yaml

from rlvr_exp.config.compose import compose_lenient, near_option
from rlvr_exp.config.load import resolved
from rlvr_exp.config.options import SCHEMAS, allowed_of, field_types
from rlvr_exp.config.schema import STAGES, nodes
from rlvr_exp.config.schema_check import Checked, words
from rlvr_exp.config.tree import Path, conf_directory, dotted
from rlvr_exp.core.errors import InputError, InputProblem

COMMON_STAGE = "grpo"
"""The stage that is shown if none is given and it has the options."""


ALL = "all"
"""The word of --help that shows every option of a stage."""


def options_page(words: Sequence[str], filters: Sequence[str], problems: Sequence[InputProblem] = ()) -> str:
    """The options of a command line whose path has one of the filters in it; without filters those that users set.

    Raises:
        InputError: a word is wrong, or no option has a filter.
    """
    every = ALL in filters
    filters = [one for one in filters if one != ALL]
    if (filters or every) and not any(word.startswith("+stage=") for word in words):
        tops = {one.split(".")[0] for one in filters}
        stage = next((stage for stage in (COMMON_STAGE, *STAGES) if tops <= nodes(stage)), COMMON_STAGE)
        words = [f"+stage={stage}", *words]
    checked = compose_lenient(words)
    named = {word.lstrip("+~").partition("=")[0] for word in words} | {*words}
    known = checked.config.stage in STAGES  # What is still to be given is no obstacle.
    faults = [*problems, *(one for one in checked.problems if one.where in named or not known)]
    lines = option_lines(checked) if checked.config.stage in STAGES else {}
    found = [line for line, rare in lines.items() if not rare or every or filters]
    if filters:
        found = [line for line in found if any(one in line.partition("=")[0] for one in filters)]
    if filters and not found and not faults:
        near = " or ".join(filter(None, (near_option(words, one) for one in filters)))
        allowed = ", ".join(dict.fromkeys(line.split("=")[0].split(".")[0] for line in lines))
        faults = [InputProblem(" ".join(filters), f"no option of +stage={checked.config.stage}", "", allowed, near)]
    if faults:
        raise InputError(*faults)
    head = f"Options of {' '.join(words)}:"
    hidden = (
        ""
        if every or filters
        else f"\n{len(lines) - len(found)} more: --help {ALL}, or --help WORD for those with a word"
    )
    return "\n".join([head, "", *(f"  {line}" for line in found)]) + hidden


COMMAND = "python -m rlvr_exp"
EXAMPLES = (
    ("+stage=grpo", "train the embedded model on the embedded tasks; results go to outputs/"),
    ("+stage=grpo +experiment=quick", "the same at its smallest size, at most one minute"),
    ("+stage=grpo algorithm.group_size=4,8 seed=0,1 --multirun", "four runs and a table of their results"),
)
COMMON = (
    ("seed=N", "the one seed of a run"),
    ("data.path=DIR", "real data instead of the embedded tasks"),
    ("data.limit=N", "the first N tasks of each split after a seeded shuffle"),
    ("model=NAME, model.path=DIR", "another model; any local checkpoint"),
    ("algorithm.max_steps=N", "update steps"),
    ("run.dir=DIR", "the run directory; default outputs/DATE/TIME_STAGE, below multirun/ for sweeps"),
    ("run.checkpoint.every_steps=N", "steps between checkpoints"),
    ("run.resume=RUN", "resume a run by its own configuration; no +stage is needed"),
    ("run.dry=true", "check everything, print the plan, run nothing"),
    ("run.inline=true", "run in this process, for a debugger"),
    ("+experiment=quick", "any stage at its smallest real size, at most 60 s"),
    ("+experiment=demo", "the tuned demonstration of the README, for +stage=grpo"),
    ("hydra.searchpath=[DIR]", "a folder with your own YAML and classes"),
)
EXIT_CODES = (
    ("0", "done"),
    ("1", "internal error"),
    ("2", "bad input; nothing was started or overwritten"),
    ("3", "stopped by a guard; the run directory is intact"),
    ("130", "interrupted; training writes a checkpoint first"),
)


def overview() -> str:
    """Every stage in one line, and three commands to begin with."""
    stages = _table((f"+stage={name}", stage.about) for name, stage in STAGES.items())
    examples = _table((f"{COMMAND} {words}", about) for words, about in EXAMPLES)
    head = "Train code models against verifiers."
    return f"{head}\n\nStages:\n{stages}\n\nTo begin with:\n{examples}\n\nMore: {COMMAND} --help"


def usage(flags: Mapping[str, str]) -> str:
    """The full page of --help."""
    head = f"{COMMAND} +stage=NAME [+experiment=NAME] [group=option] [key=value ...] [--multirun]"
    groups = (
        (name, ", ".join(options)) for name, options in group_options().items() if name not in ("stage", "experiment")
    )
    sections = (
        ("Stages", ((f"+stage={name}", stage.about) for name, stage in STAGES.items())),
        ("Experiments", ((f"+experiment={name}", "") for name in group_options()["experiment"])),
        ("Groups, group=option", groups),
        ("Common options", COMMON),
        ("Flags", flags.items()),
        ("Exit codes", EXIT_CODES),
        ("Examples", ((f"{COMMAND} {words}", about) for words, about in EXAMPLES)),
    )
    return "\n\n".join([head, *(f"{title}:\n{_table(rows)}" for title, rows in sections)])


def _table(rows: Iterable[tuple[str, str]]) -> str:
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {about}".rstrip() for name, about in rows)


def group_options() -> dict[str, list[str]]:
    """Each group's options, from the files."""
    root = conf_directory()
    folders = sorted(folder for folder in root.iterdir() if folder.is_dir())
    return {folder.name: sorted(path.stem for path in folder.glob("*.yaml")) for folder in folders}


@cache
def field_help(schema: type) -> dict[str, str]:
    """The attribute docstrings of a schema and its bases, by field."""
    found: dict[str, str] = {}
    for cls in reversed(getattr(schema, "_describes_", schema).__mro__):
        if dataclasses.is_dataclass(cls):
            found.update(_own_help(cls))
    return found


def _own_help(cls: type) -> dict[str, str]:
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError):  # A class without source: a user's, created at run time.
        return {}
    helped = {}
    statements = getattr(body, "body", [])
    for declared, text in pairwise(statements):
        match declared, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                helped[name] = inspect.cleandoc(docstring)
    return helped


def option_lines(checked: Checked) -> dict[str, bool]:
    """Every option that the stage reads (path, value, help, allowed values), and whether few users set it."""
    lines = {}
    for path, value, schema, rare in _leaves(resolved(checked), checked.config, (), False):
        spec = {spec.name: spec for spec in dataclasses.fields(schema)}.get(path[-1])
        allowed = words(field_types(schema)[path[-1]], allowed_of(spec)) if spec else ""
        help_text = " ".join(field_help(schema).get(path[-1], "").split())
        lines[f"{dotted(path)}={inline(value)}\n      {help_text} ({allowed})"] = rare
    return lines


def _leaves(values: dict[str, Any], node: Any, path: Path, rare: bool) -> Iterator[tuple[Path, Any, type, bool]]:
    marked = {} if isinstance(node, dict) else {spec.name: allowed_of(spec).rare for spec in dataclasses.fields(node)}
    for key, value in values.items():
        below = node.get(key) if isinstance(node, dict) else getattr(node, key)
        hidden = rare or marked.get(key, False)
        if dataclasses.is_dataclass(below) or (
            isinstance(below, dict) and any(map(dataclasses.is_dataclass, below.values()))
        ):
            yield from _leaves(value, below, (*path, key), hidden)
        elif key != "_target_":
            yield (*path, key), value, type(node), hidden


def inline(value: Any) -> str:
    """A leaf as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True)
    return text.removesuffix("...\n").strip()


def annotated(checked: Checked) -> str:
    """The resolved configuration as YAML, each value with its origin in a comment behind it."""
    return "\n".join(_annotated(resolved(checked), (), checked))


def _annotated(values: dict[str, Any], path: Path, checked: Checked) -> Iterator[str]:
    for key, value in values.items():
        here, indent = (*path, str(key)), "  " * len(path)
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:"
            yield from _annotated(value, here, checked)
        else:
            yield f"{indent}{key}: {inline(value)}  # {checked.tree.origin(here) or 'default'}"


UNTOLD = ("stage", "seed", "run")
"""Nodes that a plan tells of itself."""


def differing(checked: Checked) -> list[str]:
    """Differences from the stage alone, as words of a command line, without settings for a checkpoint and the shape of a
    model (the memory plan shows it)."""
    ours, plain = resolved(checked), resolved(compose_lenient([f"+stage={checked.config.stage}"]))
    chosen = {setting.path for setting in checked.settings}
    found = []
    for name, value in ours.items():
        if name not in UNTOLD and value != plain.get(name):
            lines = _differing(value, plain.get(name), (name,))
            found += [text for path, text in lines if path not in chosen and path[:2] != ("model", "architecture")]
    return found


def _differing(ours: Any, plain: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if not isinstance(ours, dict):
        yield path, f"{dotted(path)}={inline(ours)}"
        return
    target = ours.get("_target_")
    if isinstance(plain, dict) and target != plain.get(
        "_target_"
    ):  # Another class: what differs from its own defaults.
        yield path, f"{dotted(path)}: {str(target).rpartition('.')[2]}"
        schema = SCHEMAS.get(str(target))
        plain = {"_target_": target, **(dataclasses.asdict(schema()) if schema else ours)}
    for key, value in ours.items():
        known = plain.get(key) if isinstance(plain, dict) else None
        if value != known:
            yield from _differing(value, known, (*path, key))
