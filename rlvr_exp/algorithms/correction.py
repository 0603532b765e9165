"""Correction between the policy that sampled and the policy that is trained, which differ if another engine samples.

Both have the same weights, but another engine computes in another order, type or quantization, so that a token's
log-probability differs. The gradient is then that of the sampler's policy. Importance sampling corrects it: the policy loss of a
token has the weight w = pi_trainer / pi_sampler, of the policy before the update. Weights above a cap would give single samples a
large variance, so they are truncated or masked:

    token_truncate   w of the token, at most the cap (Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You
                     Off-Policy RL Training")
    sequence_mask    w of the completion, the product over its tokens; above the cap the completion counts as 0 (TRL's
                     `vllm_importance_sampling_mode`)

Truncation changes the gradient by the part of w above the cap, masking by the masked completions. Without any, the gradient is
exact in expectation. The KL penalty and the entropy bonus are not weighted, as in TRL.
"""

from typing import Any

import torch
from accelerate import Accelerator


class SamplingCorrection:
    """
    Args:
        mode: "sequence_mask", "token_truncate", or "none": no token is weighted.
        cap: the largest weight.
    """

    def __init__(self, mode: str = "none", cap: float = 3.0):
        self.mode, self._cap = mode, cap
        self._sums: torch.Tensor | None = None
        self._largest = torch.zeros(())

    @property
    def active(self) -> bool:
        return self.mode != "none"

    def weights(self, logprobs: torch.Tensor, drawn: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        """The weights of tokens, and their figures for `metrics`.

        Args:
            logprobs: (samples, T) by the trainer, before the update.
            drawn: (samples, T) by the engine that sampled.
            counted: (samples, T) whether a token is part of the loss.

        Returns:
            (samples, T), or (samples, 1) if completions are weighted.
        """
        gaps = torch.where(counted, logprobs - drawn, torch.zeros_like(drawn))
        whole = self.mode == "sequence_mask"
        ratios = gaps.sum(1, keepdim=True).exp() if whole else gaps.exp()
        over = ratios > self._cap
        weights = ratios.masked_fill(over, 0.0) if whole else ratios.clamp(max=self._cap)
        of = counted.any(1, keepdim=True) if whole else counted
        figures = (counted, gaps.abs(), of, of & over, weights * of, weights.square() * of)
        sums = torch.stack([one.sum().double() for one in figures])
        self._sums = sums if self._sums is None else self._sums + sums
        self._largest = torch.maximum(self._largest.to(gaps.device), gaps.abs().max())
        return weights

    def metrics(self, accelerator: Accelerator) -> dict[str, float]:
        """Since the last call, over all processes: the mean and the largest gap |log pi_trainer - log pi_sampler| of a token, the
        share of tokens (of completions) above the cap, and the effective sample size (sum w)^2 / sum w^2 as a share of their
        number. Empty if no token was weighted. All processes call it."""
        if not self.active:
            return {}
        sums = torch.zeros(6, dtype=torch.float64) if self._sums is None else self._sums
        tokens, gap, number, over, total, squares = accelerator.reduce(sums.to(accelerator.device), "sum").tolist()
        largest = accelerator.gather(self._largest.to(accelerator.device).reshape(1)).max().item()
        self._sums, self._largest = None, torch.zeros(())
        if not tokens:
            return {}
        return {
            "sampling/gap": gap / tokens,
            "sampling/gap_max": largest,
            "sampling/over_cap": over / number,
            "sampling/ess": total * total / squares / number if squares else 0.0,
        }


def correction_of(options: Any, exact: bool) -> SamplingCorrection:
    """The correction of an algorithm's options.

    Args:
        exact: whether the engine's log-probabilities are the trainer's own.
    """
    mode = options.correction
    if mode == "auto":
        mode = "none" if exact else "sequence_mask"
    return SamplingCorrection(mode, options.correction_cap)
