"""Remedies of a diagnosis: options with values for the next run, checked against the schema of the run's stage.

A cause proposes options; only those that the stage accepts with their values, and that change something, become remedies.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic_core import ValidationError

from rlvr_exp.config import schema
from rlvr_exp.config.options import SCHEMAS, NoSchema, field_types, find_schema, is_schema
from rlvr_exp.config.schema import STAGES, nodes
from rlvr_exp.config.schema_check import validator
from rlvr_exp.config.tree import conf_directory

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Remedy:
    """An option of the next run."""

    key: str
    """Its dotted path, or the name of a group."""
    value: Any
    now: Any = None
    """The value of this run; None for a group, whose options may have any values."""

    def __str__(self) -> str:
        return f"{self.key}={_shown(self.value)}" + ("" if self.now is None else f" (now {_shown(self.now)})")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(repr, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else f"{value}"


def remedies(config: Config, proposed: Mapping[str, Any]) -> tuple[Remedy, ...]:
    """The proposed options that the run's stage accepts with these values and that differ from the run's."""
    return tuple(_accepted(config, proposed))


def _accepted(config: Config, proposed: Mapping[str, Any]) -> Iterator[Remedy]:
    stage = str(config.get("stage"))
    known = nodes(stage) if stage in STAGES else frozenset()
    for key, value in proposed.items():
        node, *below = key.split(".")
        if node not in known:
            continue
        if not below:
            if _is_other_choice(config, stage, node, str(value)):
                yield Remedy(key, value)
        elif (now := _now(config, key, value)) is not None and now != value:
            yield Remedy(key, value, now)


def _is_other_choice(config: Config, stage: str, group: str, name: str) -> bool:
    """Whether a group has this option, of a class that suits the stage and is another than the run's."""
    file = conf_directory() / group / f"{name}.yaml"
    if not file.is_file():
        return False
    chosen = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    wanted, target = STAGES[stage].algorithm, chosen.get("_target_")
    if group == "algorithm" and not (wanted and issubclass(SCHEMAS[str(target)], wanted)):
        return False
    given = config.get(group) or {}
    same_terms = set(chosen.get("terms") or ()) == set(given.get("terms") or ())
    return not (target == given.get("_target_") and same_terms)


def _now(config: Config, key: str, value: Any) -> Any:
    """The run's value of an option. None if the run has no such option or its schema refuses the new value."""
    *path, leaf = key.split(".")
    given: Any = config
    kind: type | None = schema.Config
    for name in path:
        given = given.get(name)
        hint = field_types(kind).get(name) if kind else None
        if not isinstance(given, Mapping):
            return None
        try:
            kind = find_schema(given["_target_"], None) if "_target_" in given else hint if is_schema(hint) else None
        except NoSchema:
            return None
    if kind is None or leaf not in field_types(kind):
        return None
    try:
        validator(kind, leaf).validate_python(value)
    except ValidationError:
        return None
    return given.get(leaf)
