"""What an evaluation of a cascade reports next to its rates: those of each role, the rates by length of the gold's body,
who failed and how, and the similarity of the writer's bodies to the golds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.config.cascade import ROLES
from rlvr_exp.evaluation.metrics import METRICS, Rate, of_role, rates_from
from rlvr_exp.evaluation.text_similarity import metrics_by_role
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.tasks.base import Domain

ROLE_METRICS = tuple(f"{role}/{metric}" for role in ROLES for metric in ("pass_at_1", "pass_at_1_greedy"))
CASCADE_METRICS = (*METRICS, *ROLE_METRICS)
LENGTHS = (3, 6, 12)
"""Upper limits of the groups by length: lines of a gold's body."""


def cascade_sections(writer: Domain, results: Sequence[EvalSample]) -> dict[str, Any]:
    """Sections of an evaluation's file, as plain data."""
    lengths = {
        name: {metric: rate.to_dict() for metric, rate in rates.items()} for name, rates in by_length(results).items()
    }
    written = [
        replace(one, completion=replace(one.completion, text=_about(one)["written"]))
        for one in of_role(results, "writer")
    ]
    return {"lengths": lengths, "blame": failure_counts(results), "roles": metrics_by_role(writer, written)}


def by_length(results: Sequence[EvalSample]) -> Mapping[str, Mapping[str, Rate]]:
    """The cascade's rates by the lines of the gold's body, short bodies first."""
    found: dict[int, list[EvalSample]] = defaultdict(list)
    for row in results:
        found[next((most for most in LENGTHS if _about(row)["lines"] <= most), 0)].append(row)
    names = {most: f"up to {most} lines" for most in LENGTHS} | {0: f"more than {LENGTHS[-1]} lines"}
    return {names[most]: rates_from(found[most]) for most in (*LENGTHS, 0) if most in found}


def failure_counts(results: Sequence[EvalSample]) -> dict[str, int]:
    """Cascades by who failed and how, of all modes."""
    counts: dict[str, int] = defaultdict(int)
    for row in results:
        about = _about(row)
        who = about.get("failed_by")
        if who is not None:
            counts[f"{who}/{about['failure']}"] += 1
    return dict(sorted(counts.items()))


def _about(row: EvalSample) -> Mapping[str, Any]:
    assert row.about is not None, "the cascade's environment describes each sample"
    return row.about
