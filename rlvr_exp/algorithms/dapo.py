"""Decoupled Clip and Dynamic Sampling Policy Optimization (Yu et al. 2025, DAPO, arXiv 2503.14476).

The objective is its eq. 8: the ratio and the group's advantage of eq. 9, clipped to [1 - 0.2, 1 + 0.28] ("clip-higher",
eq. 10); prompts whose answers are all alike are replaced by others (dynamic sampling, eq. 11: `zero_variance=resample`);
the loss is a mean over tokens (eq. 12); rewards fall over the last fifth of the completion limit (soft overlong
punishment, eq. 13; the paper's cache is 4096 of 20480 tokens), so that a right answer at the limit can earn less than a short
wrong one. No KL term. A batch of rollouts serves 16 updates.

Differences from the paper:
- Eq. 11 counts correct answers; here a group is alike when its rewards are, by max - min <= `zero_variance_eps`.
- Sampling for a batch ends after `resample_budget` times its groups; the paper continues until it is full. Surplus
  useful groups wait for the next step; their ratio is to the policy that sampled them.
- Tokens are averaged over one prompt's answers and then over prompts, as eq. 8 is printed; the authors' code averages
  over all tokens of a mini-batch (`algorithm=grpo algorithm.loss=token` does).
- Groups have 8 members by default, the paper's 16. A member without a verdict leaves baseline and loss.
"""

from collections.abc import Mapping
from typing import Any

import torch

from rlvr_exp.algorithms.advantages import group_advantages
from rlvr_exp.algorithms.group import RatioAlgorithm
from rlvr_exp.algorithms.loss import token_weights
from rlvr_exp.config import algorithm as options


class DAPO(RatioAlgorithm, options.DAPO):
    def shaped(self, reward: float, tokens: int) -> float:
        return reward + overlong_punishment(tokens, self.max_completion_tokens, self.overlong_share)

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, "group", self.zero_variance_eps)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "dapo", self.max_completion_tokens, groups)

    def clipping(self) -> Mapping[str, Any]:
        return {"epsilon": self.clip_low, "epsilon_high": self.clip_high}


def overlong_punishment(tokens: int, limit: int, share: float) -> float:
    """DAPO, eq. 13: 0 up to limit - cache tokens, falling to -1 at the limit; cache = share * limit."""
    cache = share * limit
    return max(-1.0, min(0.0, (limit - cache - tokens) / cache)) if cache else 0.0
