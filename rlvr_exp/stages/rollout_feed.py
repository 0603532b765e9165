"""Feeds a training run with the rollouts of each step: the groups, the rollout file, the metrics of the collection."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvr_exp.core.errors import GuardStop
from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.rollouts.collect import Collector
from rlvr_exp.rollouts.distributed import all_reduce_counters
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.stages.fit import POLICY
from rlvr_exp.stages.verifier_setup import system_metrics
from rlvr_exp.training.rl_learner import RLLearner, Rollouts
from rlvr_exp.training.rollout_rows import rollout_rows
from rlvr_exp.verifiers.base import Verifier


class RolloutFeed:
    """The rollouts of a policy that learns alone."""

    def __init__(self, collector: Collector, verifier: Verifier, directory: Path):
        self._collector, self._verifier, self._directory = collector, verifier, directory
        self._groups: Groups | None = None
        self.rows: Sequence[RolloutRow] = ()

    def collect(self, step: int) -> Rollouts:
        self._groups = self._collector.collect(step)
        return Rollouts(step, {POLICY: self._groups}, self._collector.reward.pop_nonfinite())

    def write(self, learners: Mapping[str, RLLearner]) -> None:
        """Write the rollouts, with the advantages that the update uses: a model may have contributed to them."""
        learner = learners[POLICY]
        self.rows = rollout_rows(self._groups, learner.learned, learner.algorithm.regularised)
        write_rollouts(self._directory, self._groups.step + 1, self.rows)

    def metrics(self) -> dict[str, float]:
        return collection_metrics(self._collector, self._verifier)


def collection_metrics(collector, verifier: Verifier) -> dict[str, float]:
    """Metrics of a collector and of the verifier on all ranks, since the last call."""
    normalizer = {f"reward/normalizer_{name}": value for name, value in collector.reward.metrics().items()}
    collected = {f"collected/{name}": value for name, value in collector.metrics().items()}
    return {**collected, **normalizer, **all_reduce_counters(system_metrics(verifier))}


def check_signal(learners: Mapping[str, RLLearner], done: int, wanted: int) -> None:
    """Raises GuardStop where no step had anything to learn from, for any role."""
    if not any(learner.log.steps_with_signal for learner in learners.values()):
        raise GuardStop(
            f"{done} of {wanted} steps were done and none had anything to learn from: in every group all rewards were "
            "equal. Look at rollouts/: a policy that always fails or always passes needs other tasks, a higher "
            "algorithm.temperature, a reward that tells its answers apart, or training on gold answers first"
        )
