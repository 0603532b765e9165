"""Gradient clipping with its effect measured: the norm before, the norm after, and how often it acted.

Part of every trainer, since Transformers clips inside its loop and reports the norm of logged steps only. Clipping is
Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1, by torch: the entire gradient is scaled, its direction is kept.
"""

import math
from collections.abc import Mapping
from statistics import fmean

import torch
from accelerate.utils import DistributedType
from torch import nn


class Clipping:
    """The norms of the steps since the last row of metrics."""

    def __init__(self) -> None:
        self._steps: list[tuple[float, float, bool]] = []

    def record(self, before: float, after: float, limit: float) -> None:
        self._steps.append((before, after, before > limit))

    def state_dict(self) -> dict[str, object]:
        return {"steps": list(self._steps)}

    def load_state_dict(self, state: Mapping[str, list]) -> None:
        self._steps = [tuple(step) for step in state["steps"]]

    def metrics(self) -> Mapping[str, float]:
        """Means over the steps since the last call, and the share of them that were clipped; nothing without steps."""
        if not self._steps:
            return {}
        before, after, clipped = zip(*self._steps, strict=True)
        self._steps = []
        return {
            "grad_norm": fmean(before),
            "grad_norm/max": max(before),
            "grad_norm/after": fmean(after),
            "grad_norm/clipped": sum(clipped) / len(clipped),
        }


class GradNormMetrics:
    """Mixin before a Transformers Trainer: rows of metrics log the effect of clipping over all steps since the last row.

    Seams of the pinned Transformers: `_clip_grad_norm(model)` returns the norm before, `log(logs)` has every row.
    """

    def __init__(self, *args, **kwargs):
        self.clipping = Clipping()
        super().__init__(*args, **kwargs)

    def _clip_grad_norm(self, model: nn.Module):
        before = super()._clip_grad_norm(model)
        limit = self.args.max_grad_norm
        if math.isfinite(float(before)):  # Any other update is skipped (rlvr_exp.algorithms.nonfinite_guard).
            self.clipping.record(float(before), self._norm_after(model, float(before), limit), limit)
        return before

    def _norm_after(self, model: nn.Module, before: float, limit: float) -> float:
        if self.accelerator.distributed_type == DistributedType.DEEPSPEED:
            # DeepSpeed clips inside its step, on gradients that are sharded over the processes.
            return min(before, limit)
        return float(grad_norm(model))

    def log(self, logs: dict[str, float], *args, **kwargs) -> None:
        if "grad_norm" in logs:
            logs = {**logs, **self.clipping.metrics()}
        super().log(logs, *args, **kwargs)


def grad_norm(model: nn.Module) -> torch.Tensor:
    """The current L2 norm of all gradients."""
    return torch.nn.utils.get_total_norm([value.grad for value in model.parameters() if value.grad is not None])
