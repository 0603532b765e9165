"""Entropy held at a target by the weight of its bonus: the adaptive entropy control of Skywork-OR1 (He et al. 2025, arXiv
2505.22312, its section on adaptive entropy control).

After each update the weight rises by a fixed step where the policy's mean entropy of a token was below the target, and
falls by it otherwise.

Differences from the paper:
- The weight never falls below 0, and acts whenever it is above: the paper's also requires that the entropy of its step is
  at most the target, which is known here only after the pass that the bonus is part of.
- The entropy is that of the trained tokens, weighted as in the loss.
"""

import math
from collections.abc import Mapping


class EntropyControl:
    """The weight of the entropy bonus, and how it follows the entropy.

    Args:
        coef: the weight at the start.
        target: mean entropy of a token, in nats, that is held; 0: the weight is constant.
        step: change of the weight after each update.
    """

    def __init__(self, coef: float, target: float = 0.0, step: float = 0.0):
        self.coef, self._target, self._step = coef, target, step

    @property
    def adapts(self) -> bool:
        return self._target > 0

    @property
    def active(self) -> bool:
        """The entropy of every counted sample is needed, also in updates in which its weight is 0."""
        return self.adapts or self.coef != 0.0

    def observe(self, entropy: float) -> None:
        """Move the weight after an update on tokens of this mean entropy, in nats; NaN, of no token, leaves it."""
        if self.adapts and not math.isnan(entropy):
            self.coef = max(0.0, self.coef + (self._step if entropy < self._target else -self._step))

    def state_dict(self) -> dict[str, float]:
        return {"coef": self.coef}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self.coef = state["coef"]
