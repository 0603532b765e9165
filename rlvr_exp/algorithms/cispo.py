"""Clipped Importance-Sampling-weight Policy Optimization (MiniMax 2025, MiniMax-M1, arXiv 2506.13585).

The objective is its eq. 4: every token's log-probability, weighted by its advantage and by the ratio, which is capped at
1 + `clip_high` and takes no gradient (eq. 5), so that no token is dropped. No lower bound and no KL term, as in the
paper; the token-level loss, dynamic sampling and the punishment of overlong answers are DAPO's (section 3.1). A batch of
rollouts serves 16 updates.

Differences from the paper:
- The paper states no cap; the default of 5 (`clip_high` 4) is that of ScaleRL (arXiv 2510.13786).
- The differences in DAPO's sampling, averages and group sizes (rlvr_exp.algorithms.dapo) apply here as well.
"""

from collections.abc import Mapping
from typing import Any

import torch

from rlvr_exp.algorithms.advantages import group_advantages
from rlvr_exp.algorithms.dapo import overlong_punishment
from rlvr_exp.algorithms.group import RatioAlgorithm
from rlvr_exp.algorithms.loss import token_weights
from rlvr_exp.config import algorithm as options


class CISPO(RatioAlgorithm, options.CISPO):
    def shaped(self, reward: float, tokens: int) -> float:
        return reward + overlong_punishment(tokens, self.max_completion_tokens, self.overlong_share)

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return group_advantages(rewards, "group", self.zero_variance_eps)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "dapo", self.max_completion_tokens, groups)

    def clipping(self) -> Mapping[str, Any]:
        # TRL's epsilon_high is the cap itself here.
        return {"loss_type": "cispo", "epsilon_high": 1.0 + self.clip_high}
