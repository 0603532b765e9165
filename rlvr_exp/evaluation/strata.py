"""The rates of an evaluation by what tasks belong to besides their family, such as the style of their instruction."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.evaluation.metrics import rates_from
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.tasks.base import Domain


def strata_rates(domain: Domain, scored: Sequence[EvalSample], metrics: Sequence[str]) -> dict[str, Any]:
    """By kind of stratum and its name, the rates as plain data; empty where tasks have a role, whose own metrics have
    them, or no strata."""
    by: dict[str, dict[str, list[EvalSample]]] = defaultdict(lambda: defaultdict(list))
    for one in scored:
        strata = domain.strata(one.completion.task)
        for kind, name in strata.items() if "role" not in strata else ():
            by[kind][name].append(one)
    return {kind: {name: _plain(groups[name], metrics) for name in sorted(groups)} for kind, groups in by.items()}


def flat_rates(strata: Mapping[str, Any]) -> dict[str, Any]:
    """The same rates by flat names, for summary.json: `instruction/lazy/pass_at_1`."""
    return {
        f"{kind}/{name}/{metric}": rate
        for kind, groups in strata.items()
        for name, rates in groups.items()
        for metric, rate in rates.items()
    }


def _plain(results: Sequence[EvalSample], metrics: Sequence[str]) -> dict[str, Any]:
    return {metric: rate.to_dict() for metric, rate in rates_from(results, metrics).items()}
