"""Feeds a trainer with the rollouts of each step: the step's batch, its rollout file, its row of metrics."""

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import VerifiedCompletion, write_rollouts
from rlvr_exp.rollouts.collect import Collector
from rlvr_exp.rollouts.distributed import all_reduce_counters
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.stages.components import RunComponents
from rlvr_exp.stages.verifier_setup import system_metrics
from rlvr_exp.training.rollout_rows import rollout_rows
from rlvr_exp.training.step_log import StepLog


class RolloutFeed:
    """Connects the collector with the trainer.

    Args:
        guard: receives rewards that no update may use.
    """

    def __init__(
        self,
        components: RunComponents,
        context: RunContext,
        algorithm: Algorithm,
        collector: Collector,
        guard: NonFiniteGuard,
    ):
        self._components, self._directory, self._algorithm, self._collector = (
            components,
            context.directory,
            algorithm,
            collector,
        )
        self._guard = guard
        self.log = StepLog(algorithm.regularised, algorithm.group_filter().mode != "keep")
        self._groups: Groups | None = None
        self.rows: list[VerifiedCompletion] = []
        """Rollouts of the current step."""

    def experience(self, step: int) -> TrainingBatch:
        """The batch of a step, counted from 0. Raises GuardStop where its sample accounting does not add up."""
        self._groups = self._collector.collect(step)
        self._guard.rewards(self._collector.reward.pop_nonfinite())
        learned = self._algorithm.experience(self._groups, self._components.policy.pad_id)
        self.log.record(self._groups, learned)
        return learned

    def on_batch(self, learned: TrainingBatch) -> None:
        """Write the rollouts, with the advantages that the update uses: a model may have contributed to them."""
        self.rows = rollout_rows(self._groups, learned, self._algorithm.regularised)
        write_rollouts(self._directory, self._groups.step + 1, self.rows)

    def row(self) -> dict[str, float]:
        """Metrics since the last row."""
        normalizer = {f"reward/normalizer_{name}": value for name, value in self._collector.reward.metrics().items()}
        collected = {f"collected/{name}": value for name, value in self._collector.metrics().items()}
        counted = all_reduce_counters(system_metrics(self._components.verifier))
        return {
            **self.log.metrics(),
            **collected,
            **normalizer,
            **adapter_metrics(self._components.policy.model),
            **counted,
        }

    def check(self, done: int, wanted: int) -> None:
        """Raises GuardStop where no step had anything to learn from."""
        if self.log.steps_with_signal == 0:
            raise GuardStop(
                f"{done} of {wanted} steps were done and none had anything to learn from: in every group all rewards were "
                "equal. Look at rollouts/: a policy that always fails or always passes needs other tasks, a higher "
                "algorithm.temperature or a reward that tells its answers apart"
            )
