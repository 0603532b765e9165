"""Methods with a group baseline: a sample's advantage is its reward compared with the rewards of the same prompt.

`GroupAlgorithm` builds the training batch from two pure functions of each method, `advantages` and `weights`.
`RatioAlgorithm` adds the options of methods with an importance ratio: several updates on a batch, clipping by the trainer,
regularisers, resampling.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from trl import GRPOConfig

from rlvr_exp.algorithms.advantages import rewards_at_k, unlikeliness, weighted
from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.loss import EntropyControl
from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch, collate, completion_mask, members_of, rewards_of
from rlvr_exp.config import algorithm as options
from rlvr_exp.config.parallel import BatchLimits
from rlvr_exp.episodes.types import Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.groups import Group, GroupFilter, Groups


class GroupAlgorithm(Algorithm, options.GroupMethod):
    @abstractmethod
    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        """(groups, G) rewards, NaN without a verdict -> (groups, G), 0 where there is no advantage."""

    @abstractmethod
    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        """(N, T) mask of the tokens that count, (N,) group of each sample -> (N, T) weights of the per-token loss."""

    def group_filter(self) -> GroupFilter:
        return GroupFilter(self.zero_variance, self.zero_variance_eps)

    def shaped_group(
        self, rewards: Sequence[float | None], completions: Sequence[Completion]
    ) -> tuple[float | None, ...]:
        found = super().shaped_group(rewards, completions)
        if self.unlikeliness:
            found = unlikeliness(found, completions, self.unlikeliness)
        return found if self.pass_k == 1 else rewards_at_k(found, self.pass_k, self.pass_k_weight)

    def experience(self, groups: Groups, pad_id: int) -> TrainingBatch:
        rewards, members = rewards_of(groups.batch), members_of(groups.batch)
        counted = self._counted(groups.batch, rewards)[members][:, None] * completion_mask(groups.batch)
        advantages = weighted(self.advantages(rewards), self.positive_weight)
        return collate(
            groups.batch,
            pad_id,
            advantages=advantages[members][:, None] * counted,
            weights=self.weights(counted, members.nonzero()[:, 0]),
            off_policy=any(group.step < groups.step for group in groups.batch),
        )

    def _counted(self, groups: Sequence[Group], rewards: torch.Tensor) -> torch.Tensor:
        """(groups, G): which samples are part of the loss. Samples without a verdict never are."""
        masked = torch.tensor([self.group_filter().masks(group) for group in groups])
        return ~rewards.isnan() & ~masked[:, None]


class RatioAlgorithm(GroupAlgorithm, options.RatioMethod):
    @property
    def regularised(self) -> bool:
        return self.kl_coef > 0 or self.entropy_coef > 0 or self.entropy_target > 0

    def plan(self) -> BatchPlan:
        return BatchPlan(self.prompts_per_step, self.group_size, self.max_steps, self.iterations, self.rollout_steps)

    def group_filter(self) -> GroupFilter:
        return GroupFilter(self.zero_variance, self.zero_variance_eps, self.resample_budget)

    @abstractmethod
    def clipping(self) -> Mapping[str, Any]:
        """The method's own fields of GRPOConfig: the ratio's level, where it is clipped, the form of the loss."""

    def trl_arguments(self) -> Mapping[str, Any]:
        return {
            **super().trl_arguments(),
            "beta": self.kl_coef,
            "sync_ref_model": self.reference_sync_steps > 0,
            "ref_model_sync_steps": max(1, self.reference_sync_steps),
            "ref_model_mixup_alpha": 1.0,
            "num_iterations": self.iterations,
            **self.clipping(),
            **self.trl,
        }

    def trainer(
        self,
        policy: Policy,
        args: GRPOConfig,
        optimizer: torch.optim.Optimizer,
        guard: NonFiniteGuard,
        limits: BatchLimits,
    ) -> PolicyTrainer:
        control = EntropyControl(self.entropy_coef, self.entropy_target, self.entropy_step, self.entropy_unit)
        return PolicyTrainer(policy, args, optimizer, control, guard, limits)
