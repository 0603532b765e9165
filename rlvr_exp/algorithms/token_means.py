"""Means over the tokens of an update, however it is split into passes and processes."""

from collections.abc import Mapping

import torch
from accelerate import Accelerator


class TokenMeans:
    """Weighted sums of per-token metrics since the last `means`."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._weight: torch.Tensor | float = 0.0

    def add(self, weights: torch.Tensor, figures: Mapping[str, torch.Tensor]) -> None:
        """Add a pass: (N, T) weights, zero where a token does not count, and (N, T) metrics by name."""
        for name, values in figures.items():
            counted = values.detach().masked_fill(weights == 0, 0)  # What does not count may be infinite.
            self._sums[name] = self._sums.get(name, 0.0) + (weights * counted).sum()
        self._weight = self._weight + weights.sum()

    def means(self, accelerator: Accelerator) -> dict[str, float]:
        """The mean of each metric over all processes, NaN where nothing counted; resets the sums. All processes call it."""
        names, sums = list(self._sums), torch.stack([*self._sums.values(), self._weight])
        self._sums, self._weight = {}, 0.0
        *totals, weight = accelerator.reduce(sums, "sum").tolist()
        return {name: total / weight if weight else float("nan") for name, total in zip(names, totals, strict=True)}
