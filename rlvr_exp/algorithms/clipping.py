"""Gradient clipping with its effect measured: the norm before, the norm after, and how often it acted.

Clipping is Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1, by torch: the entire gradient is scaled, its direction is kept.
"""

import math
from collections.abc import Mapping
from statistics import fmean

import torch
from torch import nn

from rlvr_exp.algorithms.stepped import Stepped


class Clipping:
    """The norms of the steps since the last row of metrics."""

    def __init__(self) -> None:
        self._steps: list[tuple[float, float, bool]] = []

    def clip(self, trainer: Stepped) -> float:
        """Clip the trainer's gradient to `max_grad_norm`; returns its norm before, over all ranks."""
        limit = trainer.args.max_grad_norm
        before = float(trainer._clip_grad_norm(trainer.model_wrapped))
        if math.isfinite(before):  # Any other update is skipped (rlvr_exp.algorithms.nonfinite_guard).
            # DeepSpeed clips inside its step, on gradients that are sharded over the processes.
            after = min(before, limit) if trainer.under_deepspeed else float(grad_norm(trainer.model_wrapped))
            self._steps.append((before, after, before > limit))
        return before

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


def grad_norm(model: nn.Module) -> torch.Tensor:
    """The current L2 norm of all gradients."""
    return torch.nn.utils.get_total_norm([value.grad for value in model.parameters() if value.grad is not None])
