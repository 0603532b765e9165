"""How far the gradients of consecutive updates point the same way: near 0 they are mostly noise, below it steps undo each
other, near 1 a higher rate, or a smaller batch, would get as far in less time."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import torch
from torch import nn

from rlvr_exp.algorithms.places import place_of

MODEL = ""


class GradientCosine:
    """Cosines of the steps since the last row of metrics, of the whole gradient and by `place_of`. The gradient of the last
    update is kept in host memory."""

    def __init__(self) -> None:
        self._last: dict[str, torch.Tensor] = {}
        self._cosines: dict[str, list[float]] = {}

    def update(self, model: nn.Module) -> None:
        """Take the current gradients; those of what has none, or had none in the last update, do not count."""
        own = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
        now = {name: gradient.detach().to("cpu", copy=True) for name, gradient in own.items()}
        products: dict[str, torch.Tensor] = {}
        for name in (one for one in now if one in self._last):  # In one order, in which sums are rounded alike.
            here, there = now[name].double().flatten(), self._last[name].double().flatten()
            found = torch.stack([here @ there, here @ here, there @ there])
            for place in (MODEL, place_of(name)):
                products[place] = products.get(place, 0) + found
        for place, (both, ours, theirs) in products.items():
            if ours and theirs:
                self._cosines.setdefault(place, []).append(float(both / (ours * theirs).sqrt()))
        self._last = now

    def metrics(self) -> dict[str, float]:
        """Means over the steps since the last call."""
        found = {f"grad_cosine/{place}".rstrip("/"): fmean(of) for place, of in sorted(self._cosines.items())}
        self._cosines = {}
        return found

    def state_dict(self) -> dict[str, Any]:
        return {"last": dict(self._last), "cosines": {place: list(of) for place, of in self._cosines.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._last = {name: value.cpu() for name, value in state["last"].items()}
        self._cosines = {place: list(of) for place, of in state["cosines"].items()}
