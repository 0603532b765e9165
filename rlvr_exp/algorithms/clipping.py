"""Gradient clipping with its effect measured: the norm before, over all and by layer, the norm after, and how often it
acted.

Clipping is Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1, by torch: the entire gradient is scaled, its direction is kept.
"""

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import torch
from torch import nn

from rlvr_exp.algorithms.gradient_cosine import GradientCosine
from rlvr_exp.algorithms.places import place_of
from rlvr_exp.algorithms.stepped import Stepped


class Clipping:
    """The norms of the steps since the last row of metrics."""

    def __init__(self) -> None:
        self._steps: list[tuple[float, float, bool]] = []
        self._layers: dict[str, list[float]] = {}
        """Norms before clipping, by `place_of`."""
        self.cosine: GradientCosine | None = None
        """Between updates, where it is asked for."""

    def clip(self, trainer: Stepped) -> float:
        """Clip the trainer's gradient to `max_grad_norm`; returns its norm before, over all ranks."""
        limit = trainer.args.max_grad_norm
        layers = {} if trainer.under_deepspeed else layer_norms(trainer.model_wrapped)
        before = float(trainer._clip_grad_norm(trainer.model_wrapped))
        if math.isfinite(before):  # Any other update is skipped (rlvr_exp.algorithms.nonfinite_guard).
            # DeepSpeed clips inside its step, on gradients that are sharded over the processes.
            after = min(before, limit) if trainer.under_deepspeed else float(grad_norm(trainer.model_wrapped))
            self._steps.append((before, after, before > limit))
            for place, norm in layers.items():
                self._layers.setdefault(place, []).append(norm)
            if self.cosine is not None:
                self.cosine.update(trainer.model_wrapped)
        return before

    def state_dict(self) -> dict[str, object]:
        layers = {place: list(norms) for place, norms in self._layers.items()}
        cosine = {} if self.cosine is None else {"cosine": self.cosine.state_dict()}
        return {"steps": list(self._steps), "layers": layers, **cosine}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._steps = [tuple(step) for step in state["steps"]]
        layers = state.get("layers", {})  # Older checkpoints of this format have the global norm alone.
        self._layers = {place: list(norms) for place, norms in layers.items()}
        if self.cosine is not None and "cosine" in state:
            self.cosine.load_state_dict(state["cosine"])

    def metrics(self) -> Mapping[str, float]:
        """Means over the steps since the last call, and the share of them that were clipped; nothing without steps."""
        if not self._steps:
            return {}
        before, after, clipped = zip(*self._steps, strict=True)
        layers = {f"grad_norm/{place}": fmean(norms) for place, norms in sorted(self._layers.items())}
        self._steps, self._layers = [], {}
        return {
            "grad_norm": fmean(before),
            "grad_norm/max": max(before),
            "grad_norm/after": fmean(after),
            "grad_norm/clipped": sum(clipped) / len(clipped),
            **layers,
            **({} if self.cosine is None else self.cosine.metrics()),
        }


def grad_norm(model: nn.Module) -> torch.Tensor:
    """The current L2 norm of all gradients."""
    return torch.nn.utils.get_total_norm([value.grad for value in model.parameters() if value.grad is not None])


def layer_norms(model: nn.Module) -> dict[str, float]:
    """The current L2 norm of the gradients of each place of the model; of what ZeRO shards there are none here."""
    places: dict[str, list[torch.Tensor]] = {}
    for name, value in model.named_parameters():
        if value.grad is not None:
            places.setdefault(place_of(name), []).append(value.grad)
    if not places:
        return {}
    norms = torch.stack([torch.nn.utils.get_total_norm(each).float().cpu() for each in places.values()])
    return dict(zip(places, norms.tolist(), strict=True))
