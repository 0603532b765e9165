"""Configuration in words: the groups and their options, every option's help, and a composed job with its origins."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import yaml

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.options import SCHEMAS, allowed_of
from rlvr_exp.config.paths import conf_directory
from rlvr_exp.config.schema_match import field_types
from rlvr_exp.config.tree import Path, dotted
from rlvr_exp.config.typed_config import Checked, words


def group_options() -> dict[str, list[str]]:
    """Each group's options, from the files."""
    root = conf_directory()
    folders = sorted(folder for folder in root.iterdir() if folder.is_dir())
    return {folder.name: sorted(path.stem for path in folder.glob("*.yaml")) for folder in folders}


@cache
def field_help(schema: type) -> dict[str, str]:
    """The attribute docstrings of a schema and of what it derives from, by field."""
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


def option_lines(checked: Checked) -> list[str]:
    """Every option that the stage reads: path, value, what is allowed, help."""
    lines = []
    for path, value, schema in _leaves(resolved(checked), checked.config, ()):
        spec = {spec.name: spec for spec in dataclasses.fields(schema)}.get(path[-1])
        allowed = words(field_types(schema)[path[-1]], allowed_of(spec)) if spec else ""
        help_text = field_help(schema).get(path[-1], "")
        lines.append(f"{dotted(path)}={inline(value)}\n      {help_text} ({allowed})")
    return lines


def _leaves(values: dict[str, Any], node: Any, path: Path) -> Iterator[tuple[Path, Any, type]]:
    for key, value in values.items():
        below = node.get(key) if isinstance(node, dict) else getattr(node, key)
        if dataclasses.is_dataclass(below) or (
            isinstance(below, dict) and any(map(dataclasses.is_dataclass, below.values()))
        ):
            yield from _leaves(value, below, (*path, key))
        elif key != "_target_":
            yield (*path, key), value, type(node)


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
    """What differs from the stage alone, as words of a command line, without what was chosen for a checkpoint and a model's
    shape, which the memory plan shows."""
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
