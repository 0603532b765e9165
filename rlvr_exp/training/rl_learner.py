"""A role that learns from the verified completions of each step, and the probe that compares sampler and trainer."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import torch
from trl import GRPOConfig

from rlvr_exp.algorithms.arguments import shared_arguments
from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.load import build
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.config.run import Probe
from rlvr_exp.config.schema import Config
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.collect import Rollouts
from rlvr_exp.rollouts.sync_probe import Sequences, SyncProbe
from rlvr_exp.training.learner import Learner
from rlvr_exp.training.step_log import StepLog


class PeriodicProbe:
    """
    Args:
        options: the `run.probe` node.
        prompts: token ids of a few prompts, the same before and after a resume.
        served: (policy, prompts, completions) -> their scores by an engine with weights of its own; None: it samples with
            the policy's.
    """

    def __init__(
        self,
        options: Probe,
        trainer: PolicyTrainer,
        policy: Policy,
        prompts: list[list[int]],
        served: Callable[..., torch.Tensor] | None = None,
    ):
        self._every = options.every_steps
        self._trainer, self._sequences = trainer, Sequences.of(prompts)
        own = self._sequences
        self.probe = SyncProbe(
            policy.model,
            policy.model,
            own,
            self._trained,
            trainer.temperature,
            options.tolerance,
            served and (lambda: served(policy, own.prompts, own.completions)),
        )
        self._gap: float | None = None

    def begin(self, step: int) -> None:
        """Before the first update of a run, or of its resumption after so many steps."""
        if self._every:
            self.probe.check(step)

    def after(self, step: int) -> None:
        """After an update, counted from 1."""
        if self._every and (step == 1 or step % self._every == 0):
            self._gap = self.probe.check(step)

    def state_dict(self) -> dict[str, float | None]:
        """The gap that the next row must log; the probe itself has no saved state."""
        return {"gap": self._gap}

    def load_state_dict(self, state: Mapping[str, float | None]) -> None:
        self._gap = state["gap"]

    def metrics(self) -> Mapping[str, float]:
        """The gap, where one was measured since the last call."""
        gap, self._gap = self._gap, None
        return {} if gap is None else {"sync/probe_gap": gap}

    def _trained(self) -> torch.Tensor:
        """(completions, tokens) as the trainer scores them."""
        completions = [list(ids) for row in self._sequences.completions for ids in row]
        owners = [place for place, row in enumerate(self._sequences.completions) for _ in row]
        prompts = [list(self._sequences.prompts[owner]) for owner in owners]
        return self._trainer.scored(prompts, completions, owners).cpu()


class RLLearner(Learner):
    """
    Args:
        config: of the role: its `algorithm` node has the role's own steps and group size.
        prompts: token ids of a few prompts, for the probe.
        scratch: a folder that TRL may write to.
        served: as in `PeriodicProbe`.
    """

    # Not the loss: that of a policy gradient is near 0 whatever is learned.
    figures: ClassVar = {
        "reward": "reward/mean",
        "success": "success/mean",
        "entropy": "entropy",
        "KL(ref)": "kl",
        "KL(old)": "kl/old",
    }

    def __init__(
        self,
        role: str,
        policy: Policy,
        algorithm: Algorithm,
        config: Config,
        prompts: list[list[int]],
        scratch: Path,
        served: Callable[..., torch.Tensor] | None = None,
    ):
        self.policy, self.algorithm = policy, algorithm
        self.log = StepLog(algorithm.regularised, algorithm.group_filter().mode != "keep")
        self.learned: TrainingBatch | None = None
        """The batch of the current step; None where the role takes none in it."""
        trainer = algorithm.trainer(
            policy,
            trainer_arguments(policy, config, algorithm, scratch),
            build(config.optimizer).make(policy.model),
            NonFiniteGuard(config.run.guards.max_skipped),
            BatchLimits(config.algorithm.max_tokens_per_device, config.model.max_prompt_tokens),
        )
        self._probe = PeriodicProbe(config.run.probe, trainer, policy, prompts, served)
        super().__init__(role, trainer, {"steps": self.log, "probe": self._probe})

    def begin(self, folder: Path | None = None) -> None:
        super().begin(folder)
        self._probe.begin(self.steps)

    def take(self, rollouts: Rollouts) -> None:
        """Raises GuardStop where the step's sample accounting does not add up."""
        self.activate()
        self.ready = self.role in rollouts.groups
        if not self.ready:
            self.learned = None
            return
        groups = rollouts.groups[self.role]
        self.guard.rewards(rollouts.nonfinite)
        batch = self.algorithm.experience(groups, self.policy.pad_id)
        self.log.record(groups, batch)
        self.learned = self.trainer.take(batch)

    def update(self) -> None:
        super().update()
        self.log.updated()
        self._probe.after(self.steps)

    def row(self) -> dict[str, float]:
        self.activate()
        row = super().row()
        return (
            {**row, **self.log.metrics(), **adapter_metrics(self.policy.model), **self._probe.metrics()} if row else {}
        )


def trainer_arguments(policy: Policy, config: Config, algorithm: Algorithm, scratch: Path) -> GRPOConfig:
    """TRL's configuration of the run. Its batch size is a formality: the trainer splits each step's batch itself."""
    return GRPOConfig(
        **{**shared_arguments(config, scratch, policy.model.dtype), **algorithm.trl_arguments()},
        per_device_train_batch_size=config.algorithm.group_size,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
    )
