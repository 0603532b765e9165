"""Group Sequence Policy Optimization (Zheng et al. 2025, GSPO, arXiv 2507.18071).

The objective is its eq. 5, with the group's advantage of eq. 6 and a single ratio for the entire answer, the geometric
mean of its tokens' ratios (eq. 7), clipped to [1 - 3e-4, 1 + 4e-4]. A batch of rollouts serves four updates (section 5.1).
No KL term: the paper leaves it out of its formulas.

Differences from the paper:
- The sizes of a batch are the experiment's.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.
"""

from collections.abc import Mapping
from typing import Any

import torch

from rlvr_exp.algorithms.advantages import group_advantages
from rlvr_exp.algorithms.group import RatioAlgorithm
from rlvr_exp.algorithms.loss import token_weights
from rlvr_exp.config import algorithm as options


class GSPO(RatioAlgorithm, options.GSPO):
    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, "group", self.zero_variance_eps)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        # Equal over a sample's tokens, so that TRL's weighted mean of their log-ratios is the plain mean of eq. 7.
        return token_weights(mask, "grpo", self.max_completion_tokens)

    def clipping(self) -> Mapping[str, Any]:
        return {
            "epsilon": self.clip_low,
            "epsilon_high": self.clip_high,
            "importance_sampling_level": "sequence",
        }
