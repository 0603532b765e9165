"""Options of a run that differ from the defaults of its stage."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.stages import STAGES

OWN = ("stage", "run.dir", "run.searchpath")
"""Options that differ in every run."""
ABSENT = "(none)"


def differences(config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """By dotted key: (the run's value, the default). A node of another class is compared with that class's own
    defaults."""
    stage = config.get("stage")
    if stage not in STAGES:
        return {}
    usual = resolved(compose_lenient([f"+stage={stage}"]))
    return {key: pair for key, pair in _differing(config, usual, "") if key not in OWN}


def _differing(given: Mapping[str, Any], usual: Mapping[str, Any], above: str) -> Iterator[tuple[str, tuple[Any, Any]]]:
    usual = _of_class(given, usual)
    # An option missing from the run is not a difference: the run is of an earlier version.
    for name, ours in given.items():
        key, theirs = f"{above}{name}", usual.get(name, ABSENT)
        if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
            yield from _differing(ours, theirs, f"{key}.")
        elif isinstance(ours, Mapping) and ours:
            yield from _differing(ours, {}, f"{key}.")
        elif type(ours) is not type(theirs) or ours != theirs:
            yield key, (ours, theirs)


def _of_class(given: Mapping[str, Any], usual: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults of a node's class where another class is the default; its name still differs."""
    target = given.get("_target_")
    if target is None or target == usual.get("_target_") or target not in SCHEMAS:
        return usual
    return {**asdict(SCHEMAS[target]()), "_target_": usual.get("_target_", ABSENT)}
