"""Dr. GRPO, "GRPO done right" (Liu et al. 2025, Understanding R1-Zero-Like Training, arXiv 2503.20783).

GRPO without its two biases (section 3.2): the advantage is r_i - mean(r), undivided, and token losses are summed and divided
by a constant, the completion limit, in place of each answer's length. No KL term; clip range 0.2.

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


class DrGRPO(RatioAlgorithm, options.DrGRPO):
    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, "none", self.zero_variance_eps)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "dr_grpo", self.max_completion_tokens)

    def clipping(self) -> Mapping[str, Any]:
        return {"epsilon": self.clip_low, "epsilon_high": self.clip_high}
