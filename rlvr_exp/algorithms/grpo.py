"""Group Relative Policy Optimization (Shao et al. 2024, DeepSeekMath, arXiv 2402.03300).

The objective is its eq. 3, the KL estimate eq. 4, the advantage that of section 4.1.2 (outcome supervision):
A_{i,t} = (r_i - mean(r)) / std(r). Defaults: kl_coef 0.04 and one update on each batch, as in its section 4.2; the clip
range, which the paper does not state, is PPO's 0.2.

Differences from the paper:
- The sizes of a batch are the experiment's: 32 prompts of 8 completions, where the paper has 64 completions of a prompt.
- `loss` and `advantage_scale` offer other aggregations and scales; the defaults are the paper's.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.
"""

from collections.abc import Mapping
from typing import Any

import torch

from rlvr_exp.algorithms.advantages import group_advantages
from rlvr_exp.algorithms.group import RatioAlgorithm
from rlvr_exp.algorithms.loss import token_weights
from rlvr_exp.config import algorithm as options


class GRPO(RatioAlgorithm, options.GRPO):
    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, self.advantage_scale, self.zero_variance_eps)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, self.loss, self.max_completion_tokens, groups)

    def clipping(self) -> Mapping[str, Any]:
        return {"epsilon": self.clip_low, "epsilon_high": self.clip_high}
