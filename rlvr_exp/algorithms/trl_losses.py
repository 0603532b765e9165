"""Losses of TRL that are more than another average: `algorithm.trl.loss_type=sapo`, `vespo` or `luspo`.

    sapo    Soft Adaptive Policy Optimization (Qwen 2025, arXiv 2511.20347): -A f(r), f(r) = 4 / tau * sigmoid(tau (r - 1)), in
            place of a clip; tau is `sapo_temperature_pos` or `sapo_temperature_neg`, by the sign of A
    vespo   VESPO (Shen et al. 2026, arXiv 2602.10693): -phi(W) A log pi, W the ratio of the completion, the product over its
            tokens, and phi(W) = W^k exp(lambda (1 - W)), without gradient
    luspo   Length-Unbiased Sequence Policy Optimization (Liu et al. 2026, arXiv 2602.05261): GSPO, each completion times its length

The code is TRL's. TRL divides the losses of sapo and luspo by numbers of a micro-batch. Here the loss of a step is the sum of
weight * per-token loss, so that micro-batches change nothing: advantages are multiplied by the numbers that TRL divides by. These
losses are linear in the size of an advantage. A KL term is not, so sapo and luspo have none.
"""

from typing import Any

import torch
from trl import GRPOTrainer

from rlvr_exp.algorithms.trainer import PolicyTrainer

BY_ROW = ("sapo",)
"""TRL averages over the tokens of a row, then over rows."""
BY_ROWS = ("luspo",)
"""TRL sums over the tokens of a row, and averages over rows."""


class _WeightedSum(GRPOTrainer):
    """Between our trainer and TRL's: what TRL averages becomes a weighted sum over tokens."""

    def _compute_loss(self, model: torch.nn.Module, inputs: dict) -> torch.Tensor:
        if self.loss_type not in (*BY_ROW, *BY_ROWS):
            return super()._compute_loss(model, inputs)
        given, weights = inputs["advantages"], inputs["completion_mask"] * inputs["tool_mask"]
        scale = len(weights) * self.accelerator.num_processes / inputs["num_items_in_batch"]
        if self.loss_type in BY_ROW:
            scale = scale * weights.sum(1, keepdim=True).clamp(min=1.0)
        inputs["advantages"] = given * scale
        try:
            return super()._compute_loss(model, inputs)
        finally:
            inputs["advantages"] = given

    @staticmethod
    def get_gamma_weights(mask: torch.Tensor, **given: Any) -> torch.Tensor:
        """VESPO's phi(W). The ratio of a completion is a product over its tokens, whatever their weights."""
        return GRPOTrainer.get_gamma_weights(mask=(mask != 0).to(mask.dtype), **given)


class TRLLossTrainer(PolicyTrainer, _WeightedSum):
    @property
    def _joins(self) -> bool:
        """VESPO's ratio is that of a row."""
        return super()._joins and self.loss_type != "vespo"

    def _token_metrics(self, inputs: dict) -> dict[str, torch.Tensor]:
        found = super()._token_metrics(inputs)
        if self.loss_type == "luspo":
            return found
        return {name: value for name, value in found.items() if not name.startswith("clip_ratio")}
