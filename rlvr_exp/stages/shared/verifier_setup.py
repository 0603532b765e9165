"""Builds the verifier of a run, and describes it for the manifest and the metrics. No torch."""

from collections.abc import Mapping
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.options import SCHEMAS
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.records.context import RunContext
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.guarded import OutsideVerifier

STRONG = ("strict", "namespaces")
"""Levels of isolation that need no note."""


def build_verifier(config: Config) -> Verifier:
    """The configured verifier. Raises InputError where one of its tools is missing, or a user's own is no verifier."""
    verifier = build(config.verifier, sandbox=config.sandbox, cache=config.cache)
    return verifier if config.verifier._target_ in SCHEMAS else OutsideVerifier(verifier)


def description(verifier: Verifier) -> dict[str, Any]:
    """For the manifest: what determines verdicts, and what candidates are isolated from."""
    return {
        "name": verifier.name,
        "version": verifier.version,
        "tool": dict(verifier.tool()),
        "isolation": verifier.isolation(),
    }


def checked_description(verifier: Verifier, context: RunContext) -> dict[str, Any]:
    """The description, once the verifier is ready; a weak isolation is reported.

    Raises:
        InputError: no worker can be started, or only at a weaker level than `sandbox.require`.
    """
    found = description(verifier)
    isolation = found["isolation"]
    if isolation.get("fault"):
        raise InputError(
            InputProblem("sandbox", "no worker can be started", isolation["fault"], remedy="see sandbox.level")
        )
    if isolation.get("guarded") is False:
        context.progress(
            kind="note", text="not guarded: solutions share their tests' process, and can pass without solving"
        )
    if isolation.get("level") not in STRONG and isolation.get("not_isolated"):
        missing = ", ".join(isolation["not_isolated"])
        context.progress(
            kind="note", text=f"isolation level {isolation['level']}: candidates are not isolated from: {missing}"
        )
    return found


def system_metrics(verifier: Verifier) -> Mapping[str, float]:
    """The verifier's counters, under names of machine-dependent metrics, since they depend on a warm cache."""
    return {f"system/verifier_{name}": value for name, value in verifier.metrics().items()}
