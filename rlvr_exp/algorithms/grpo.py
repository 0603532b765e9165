"""Methods with a group baseline: a sample's advantage is its reward compared with the rewards of the same prompt.

`GroupAlgorithm` builds the training batch from two pure functions of each method, `advantages` and `weights`.
`RatioAlgorithm` adds the options of methods with an importance ratio: several updates on a batch, clipping by the trainer,
regularisers, resampling.

Group Relative Policy Optimization (Shao et al. 2024, DeepSeekMath, arXiv 2402.03300).

The objective is its eq. 3, the KL estimate eq. 4, the advantage that of section 4.1.2 (outcome supervision):
A_{i,t} = (r_i - mean(r)) / std(r). Defaults: kl_coef 0.04 and one update on each batch, as in its section 4.2; the clip
range, which the paper does not state, is PPO's 0.2.

Differences from the paper:
- The sizes of a batch are the experiment's: 32 prompts of 8 completions; the paper has 64 completions of a prompt.
- `loss` and `advantage_scale` offer other aggregations and scales; the defaults are the paper's.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.

Dr. GRPO, "GRPO done right" (Liu et al. 2025, Understanding R1-Zero-Like Training, arXiv 2503.20783).

GRPO without its two biases (section 3.2): the advantage is r_i - mean(r), undivided, and token losses are summed and divided
by a constant, the completion limit, in place of each answer's length. No KL term; clip range 0.2.

Differences from the paper:
- The sizes of a batch are the experiment's.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.

Decoupled Clip and Dynamic Sampling Policy Optimization (Yu et al. 2025, DAPO, arXiv 2503.14476).

The objective is its eq. 8: the ratio and the group's advantage of eq. 9, clipped to [1 - 0.2, 1 + 0.28] ("clip-higher",
eq. 10); prompts whose answers are all alike are replaced by others (dynamic sampling, eq. 11: `zero_variance=resample`);
the loss is a mean over tokens (eq. 12); rewards fall over the last fifth of the completion limit (soft overlong
punishment, eq. 13; the paper's cache is 4096 of 20480 tokens), so that a right answer at the limit can earn less than a short
wrong one. No KL term. A batch of rollouts serves 16 updates.

Differences from the paper:
- Eq. 11 counts correct answers; here a group is alike when its rewards are, by max - min <= 1e-6.
- Sampling for a batch ends after `resample_budget` times its groups; the paper continues until it is full. Surplus
  useful groups wait for the next step; their ratio is to the policy that sampled them.
- Tokens are averaged over one prompt's answers and then over prompts, as eq. 8 is printed; the authors' code averages
  over all tokens of a mini-batch (`algorithm=grpo algorithm.loss=token` does).
- Groups have 8 members by default, the paper's 16. A member without a verdict leaves baseline and loss.

Clipped Importance-Sampling-weight Policy Optimization (MiniMax 2025, MiniMax-M1, arXiv 2506.13585).

The objective is its eq. 4: every token's log-probability, weighted by its advantage and by the ratio, which is capped at
1 + `clip_high` and takes no gradient (eq. 5), so that no token is dropped. No lower bound and no KL term, as in the
paper; the token-level loss, dynamic sampling and the punishment of overlong answers are DAPO's (section 3.1). A batch of
rollouts serves 16 updates.

Differences from the paper:
- The paper states no cap; the default of 5 (`clip_high` 4) is that of ScaleRL (arXiv 2510.13786).
- The differences in DAPO's sampling, averages and group sizes (rlvr_exp.algorithms.grpo) apply here as well.

Group Sequence Policy Optimization (Zheng et al. 2025, GSPO, arXiv 2507.18071).

The objective is its eq. 5, with the group's advantage of eq. 6 and a single ratio for the entire answer, the geometric
mean of its tokens' ratios (eq. 7), clipped to [1 - 3e-4, 1 + 4e-4]. A batch of rollouts serves four updates (section 5.1).
No KL term: the paper leaves it out of its formulas.

Differences from the paper:
- The sizes of a batch are the experiment's.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.

Maximum Likelihood Reinforcement Learning (Tajwar et al. 2026, MaxRL, arXiv 2602.02710).

The expected gradient is that of -sum_k (1 - p)^k / k, k = 1 to G, with p the probability of success: log p, cut off after as many
terms as a group has members. Rare successes weigh more than with GRPO. The advantage is that of its algorithm 1,
(r_i - mean(r)) / mean(r), 0 if the mean is 0; the step is GRPO's, without a KL term. Token losses are averaged over all tokens of
the step, as in the authors' code: up to one factor of the step, the sum over the tokens of its eq. 11 (the estimator with the
control variate).

Differences from the paper:
- Its rewards are 0 or 1 (`reward=binary`). Partial rewards count as they are. A negative reward counts as 0, so that the mean is
  0 only if no reward is above 0, and no advantage exceeds G - 1.
- The sizes of a batch are the experiment's: 8 completions of a prompt, so 8 terms; the paper has 16 to 128.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.

Group reward-Decoupled Normalization Policy Optimization (Liu et al. 2026, GDPO, arXiv 2601.05242).

For rewards of several terms. Each term is normalised in its group before the sum, so that two combinations of terms with the same
total have different advantages:
A_sum,i = sum_k w_k (r_i^k - mean(r^k)) / std(r^k), and A_i = (A_sum,i - mean(A_sum)) / std(A_sum) over the batch. The weights w_k
are those of the reward's terms; the loss is GRPO's.

Differences from the paper:
- A term that is equal in all members adds 0; the authors' code divides by std + 1e-4, ours by std + 1e-6.
- The normaliser of the reward, which scales totals, has no part. The order of rewards (`reward.ordered`) is that of the terms'
  sum: after the normalisation a wrong completion may have a higher advantage than a correct one.
- A reward without terms, such as a credit of an environment, is one term.
- No KL term by default. The sizes of a batch are the experiment's.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rlvr_exp.algorithms.advantages import (
    group_advantages,
    normalized_terms,
    over_mean,
    rewards_at_k,
    unlikeliness,
    weighted,
)
from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.loss import EntropyControl, token_weights
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch, collate, completion_mask, members_of, rewards_of
from rlvr_exp.algorithms.trl_losses import TRLLossTrainer
from rlvr_exp.config import algorithm as options
from rlvr_exp.episodes.types import Completion, RewardBreakdown
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.collect import BatchPlan
from rlvr_exp.rollouts.groups import Group, GroupFilter, Groups


class GroupAlgorithm(Algorithm, options.GroupMethod):
    @abstractmethod
    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        """(groups, G) rewards, NaN without a verdict -> (groups, G), 0 without an advantage."""

    @abstractmethod
    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        """(N, T) mask of the tokens that count, (N,) group of each sample -> (N, T) weights of the per-token loss."""

    def group_filter(self) -> GroupFilter:
        return GroupFilter(self.zero_variance, options.EQUAL_REWARDS)

    def shaped_group(
        self, rewarded: Sequence[RewardBreakdown], completions: Sequence[Completion]
    ) -> tuple[float | None, ...]:
        found = super().shaped_group(rewarded, completions)
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
    clip_low: float
    clip_high: float

    @property
    def regularised(self) -> bool:
        return self.kl_coef > 0 or self.entropy_coef > 0 or self.entropy_target > 0

    def plan(self) -> BatchPlan:
        return BatchPlan(self.prompts_per_step, self.group_size, self.max_steps, self.iterations, self.rollout_steps)

    def group_filter(self) -> GroupFilter:
        return GroupFilter(self.zero_variance, options.EQUAL_REWARDS, self.resample_budget)

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, "group", options.EQUAL_REWARDS)

    def clipping(self) -> Mapping[str, Any]:
        """The method's own fields of GRPOConfig: the level of the ratio, its range, the form of the loss."""
        return {"epsilon": self.clip_low, "epsilon_high": self.clip_high}

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

    def trainer(self, policy: Policy, *common: Any) -> PolicyTrainer:
        control = EntropyControl(self.entropy_coef, self.entropy_target, self.entropy_step, self.entropy_unit)
        kind = TRLLossTrainer if "loss_type" in self.trl else PolicyTrainer
        return kind(policy, *common, entropy=control)


class GRPO(RatioAlgorithm, options.GRPO):
    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, self.advantage_scale, options.EQUAL_REWARDS)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, self.loss, self.max_completion_tokens, groups)


class DrGRPO(RatioAlgorithm, options.DrGRPO):
    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, "none", options.EQUAL_REWARDS)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "dr_grpo", self.max_completion_tokens)


class DAPO(RatioAlgorithm, options.DAPO):
    def shaped(self, reward: float, tokens: int) -> float:
        return reward + overlong_punishment(tokens, self.max_completion_tokens, self.overlong_share)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "dapo", self.max_completion_tokens, groups)


def overlong_punishment(tokens: int, limit: int, share: float) -> float:
    """DAPO, eq. 13: 0 up to limit - cache tokens, falling to -1 at the limit; cache = share * limit."""
    cache = share * limit
    return max(-1.0, min(0.0, (limit - cache - tokens) / cache)) if cache else 0.0


class CISPO(RatioAlgorithm, options.CISPO):
    def shaped(self, reward: float, tokens: int) -> float:
        return reward + overlong_punishment(tokens, self.max_completion_tokens, self.overlong_share)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "dapo", self.max_completion_tokens, groups)

    def clipping(self) -> Mapping[str, Any]:
        # TRL's epsilon_high is the cap itself here.
        return {"loss_type": "cispo", "epsilon_high": 1.0 + self.clip_high}


class GSPO(RatioAlgorithm, options.GSPO):
    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        # Equal over a sample's tokens, so that TRL's weighted mean of their log-ratios is the plain mean of eq. 7.
        mode = "sequence" if self.trl.get("loss_type") == "luspo" else "grpo"
        return token_weights(mask, mode, self.max_completion_tokens)

    def clipping(self) -> Mapping[str, Any]:
        return {**super().clipping(), "importance_sampling_level": "sequence"}


class MaxRL(RatioAlgorithm, options.MaxRL):
    def shaped(self, reward: float, tokens: int) -> float:
        return max(0.0, reward)

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return over_mean(rewards, options.EQUAL_REWARDS)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "token", self.max_completion_tokens)


class GDPO(RatioAlgorithm, options.GDPO):
    def shaped_group(
        self, rewarded: Sequence[RewardBreakdown], completions: Sequence[Completion]
    ) -> tuple[float | None, ...]:
        sums = normalized_terms(rewarded, self.term_weights, options.EQUAL_REWARDS)
        return super().shaped_group([RewardBreakdown(one) for one in sums], completions)

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        # The mean of a group is 0, and so that of the batch: the batch's deviation is what is left of its normalisation.
        return group_advantages(rewards, "batch", options.EQUAL_REWARDS)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "grpo", self.max_completion_tokens)
