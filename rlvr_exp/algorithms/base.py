"""The contract of an algorithm: how judged completions become a loss. What a stage that trains by RL knows of one.

An algorithm is a small frozen class, built from the `algorithm` group, whose defaults (rlvr_exp.config.algorithm) are
the published method's. It owns advantages, loss weights and the settings of the trainer; it never samples, judges or
decides which tasks are asked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import TrainerCallback
from trl import GRPOConfig

from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config.batching import BatchLimits
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.group_filter import GroupFilter
from rlvr_exp.rollouts.groups import Groups

Collect = Callable[[int], TrainingBatch]


@dataclass(frozen=True)
class Algorithm(ABC):
    """Fields are documented in rlvr_exp.config.algorithm.ReinforcementLearning."""

    max_steps: int
    prompts_per_step: int
    group_size: int
    max_tokens_per_device: int
    temperature: float
    trl: Mapping[str, Any]
    max_completion_tokens: int
    """From the `model` node."""

    @property
    def regularised(self) -> bool:
        """The loss has terms beside the reward's, so that groups without an advantage are learned from as well."""
        return False

    def plan(self) -> BatchPlan:
        """How many groups are asked, and when."""
        return BatchPlan(self.prompts_per_step, self.group_size, self.max_steps)

    def group_filter(self) -> GroupFilter:
        """What is done with groups that have nothing to teach."""
        return GroupFilter("keep", eps=1e-6)

    def shaped(self, reward: float, tokens: int) -> float:
        """The reward as the algorithm sees it, for a completion of so many tokens."""
        return reward

    @abstractmethod
    def experience(self, groups: Groups, pad_id: int) -> TrainingBatch:
        """What the step's groups (`groups.batch`) teach: their samples with advantages and loss weights."""

    def trl_arguments(self) -> Mapping[str, Any]:
        """What TRL's GRPOConfig has to know; everything that decides the loss beyond this is in the experience."""
        return {
            "max_steps": self.max_steps,
            "num_generations": self.group_size,
            "max_completion_length": self.max_completion_tokens,
            "temperature": self.temperature,
            "beta": 0.0,
            # Weights carry the aggregation; TRL's "dapo" form is the one that adds nothing of its own to them.
            "loss_type": "dapo",
            "use_bias_correction_kl": False,
            **self.trl,
        }

    def trainer(
        self,
        policy: Policy,
        args: GRPOConfig,
        optimizer: torch.optim.Optimizer,
        collect: Collect,
        callbacks: Sequence[TrainerCallback],
        limits: BatchLimits,
    ) -> PolicyTrainer:
        """The trainer that updates `policy` on what `collect(step)` returns."""
        return PolicyTrainer(policy, args, optimizer, 0.0, collect, callbacks, limits)
