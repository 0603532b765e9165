"""Feeds a training run with the rollouts of each step: the groups, the rollout file, the metrics of the collection."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.curriculum.base import Observation
from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.rollouts.collect import Collector, Rollouts
from rlvr_exp.rollouts.distributed import all_reduce_counters
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.stages.shared.verifier_setup import system_metrics
from rlvr_exp.training.learner import RLLearner
from rlvr_exp.training.step_log import rollout_rows
from rlvr_exp.verifiers.base import Verifier


class RolloutFeed:
    """Roles that learn in the same step learn from the same episodes."""

    def __init__(self, collector: Collector, verifier: Verifier, directory: Path):
        self._collector, self._verifier, self._directory = collector, verifier, directory
        self._rollouts: Rollouts | None = None
        self.rows: Sequence[RolloutRow] = ()
        self._metrics: list[dict[str, float]] = []
        """Metrics of the steps since the last row was logged."""

    def collect(self, step: int) -> Rollouts:
        self._rollouts = self._collector.collect(step)
        environment = self._collector.environment
        row = environment.metrics(self._rollouts.episodes)
        if len(environment.roles) > 1:
            row |= credit_metrics(environment.name, self._rollouts.groups)
        row |= teaching(self._rollouts.observations)
        self._metrics.append(row)
        return self._rollouts

    def write(self, learners: Mapping[str, RLLearner]) -> None:
        """Write the rollouts, with groups numbered consecutively and with the advantages that the updates use; a model may
        have contributed to these. Those of a role that does not learn in the step are frozen."""
        rows: list[RolloutRow] = []
        for role, groups in self._rollouts.groups.items():
            learner, first = learners.get(role), rows[-1].group + 1 if rows else 0
            found = rollout_rows(
                groups, learner and learner.learned, learner is not None and learner.algorithm.regularised
            )
            rows += [
                replace(one, group=first + one.group, fate="frozen" if learner is None else one.fate) for one in found
            ]
        write_rollouts(self._directory, self._rollouts.step + 1, rows)
        self.rows = rows

    def metrics(self) -> dict[str, float]:
        """Metrics since the last row that belong to no role."""
        names = dict.fromkeys(name for row in self._metrics for name in row)
        row = {name: fmean(one[name] for one in self._metrics if name in one) for name in names}
        self._metrics = []
        normalizer = {
            f"{part}/normalizer_{name}": value
            for part, reward in self._collector.rewards.items()
            for name, value in reward.metrics().items()
        }
        collected = {f"collected/{name}": value for name, value in self._collector.metrics().items()}
        curriculum = {f"curriculum/{name}": value for name, value in self._collector.curriculum.metrics().items()}
        mix = {f"mix/{source}": float(count) for source, count in self._collector.mix.items()}
        system = all_reduce_counters(system_metrics(self._verifier))
        return {**row, **collected, **mix, **curriculum, **normalizer, **system}

    def state_dict(self) -> dict[str, Any]:
        """Plain values: the data of the next row."""
        return {"rows": list(self._metrics)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._metrics = list(state["rows"])


def credit_metrics(name: str, groups: Mapping[str, Groups]) -> dict[str, float]:
    """The mean credit of each role, and its mean range within a group."""
    row: dict[str, float] = {}
    for role, of_role in groups.items():
        paid = [[one for one in group.rewards if one is not None] for group in of_role.sampled]
        if any(paid):
            row[f"{name}/credit/{role}"] = fmean(one for each in paid for one in each)
            row[f"{name}/credit_spread/{role}"] = fmean(max(each) - min(each) if each else 0.0 for each in paid)
    return row


def teaching(observations: Sequence[Observation]) -> dict[str, float]:
    """The share of the sampled groups whose rewards vary, and how many different tasks these are of."""
    if not observations:
        return {}
    mixed = [one.task for one in observations if one.mixed]
    return {
        "curriculum/mixed_groups": len(mixed) / len(observations),
        "curriculum/effective_prompts": float(len(set(mixed))),
    }


def check_signal(learners: Mapping[str, RLLearner], done: int, wanted: int) -> None:
    """Raises GuardStop where no step had anything to learn from, for any role."""
    if not any(learner.log.steps_with_signal for learner in learners.values()):
        raise GuardStop(
            f"{done} of {wanted} steps were done and none had anything to learn from: in every group all rewards were "
            "equal. Look at rollouts/: a policy that always fails or always passes needs other tasks, a higher "
            "algorithm.temperature, a reward that tells its answers apart, or training on gold answers first"
        )
