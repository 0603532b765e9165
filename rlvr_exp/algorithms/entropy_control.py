"""Entropy held at a target by the weight of its bonus: the adaptive entropy control of Skywork-OR1 (He et al. 2025, arXiv
2505.22312, its section on adaptive entropy control).

After each update the weight rises by a fixed step where the policy's mean entropy of a token was below the target, and
falls by it otherwise.

Differences from the paper:
- The weight never falls below 0, and acts whenever it is above: the paper's also requires that the entropy of its step is
  at most the target, which is known here only after the pass that the bonus is part of.
- The entropy is that of the trained tokens, weighted as in the loss.
- The target may be a multiple of the entropy of the run's first update: policies differ in what they start from.
"""

import math
from collections.abc import Mapping
from typing import Any


class EntropyControl:
    """The weight of the entropy bonus, and how it follows the entropy.

    Args:
        coef: the weight at the start.
        target: mean entropy of a token that is held; 0: the weight is constant.
        step: change of the weight after each update.
        unit: of the target: "nats", or "start", the entropy of the run's first update.
    """

    def __init__(self, coef: float, target: float = 0.0, step: float = 0.0, unit: str = "nats"):
        self.coef, self._target, self._step = coef, target, step
        self._unit: float | None = 1.0 if unit == "nats" else None
        """In nats; None: not known before the first update."""

    @property
    def adapts(self) -> bool:
        return self._target > 0

    @property
    def active(self) -> bool:
        """The entropy of every counted sample is needed, also in updates in which its weight is 0."""
        return self.adapts or self.coef != 0.0

    def observe(self, entropy: float) -> None:
        """Move the weight after an update on tokens of this mean entropy, in nats; NaN, of no token, leaves it."""
        if not self.adapts or math.isnan(entropy):
            return
        if self._unit is None:
            self._unit = entropy
        self.coef = max(0.0, self.coef + (self._step if entropy < self._target * self._unit else -self._step))

    def state_dict(self) -> dict[str, float | None]:
        return {"coef": self.coef, "unit": self._unit}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.coef, self._unit = state["coef"], state["unit"]
