"""Skipped updates: where a loss, a gradient or a reward is not finite, weights and optimizer stay unchanged.

The gradient is the signal for every parallel strategy. Where a loss or a reward is not finite on some rank, its gradient
becomes NaN, and the sum over ranks carries that to all, so that all skip together without further communication.
DeepSpeed skips such a step by itself; everywhere else the gradients are dropped, so that optimizers have nothing to do.
The schedule stands still with the optimizer. Counts and stops; leaves every applied update bit for bit as it is.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.rollouts.distributed import any_rank

REWARD, LOSS, GRADIENT = CAUSES = ("reward", "loss", "gradient")
"""Possible causes; a skipped update counts for the first that applies."""
BORNE = 5


class NonFiniteGuard:
    """Counts the skipped updates of a trainer.

    Args:
        most: consecutive skipped updates that are tolerated; `check` stops the run at the next.
    """

    def __init__(self, most: int = BORNE):
        self._most = most
        self._in_a_row = self._skipped = self._first = 0
        self._description = ""
        self._row: Counter[str] = Counter()
        """Counts of the steps since the last row of metrics."""
        self._rewards: tuple[str, ...] = ()
        self._losses: list[torch.Tensor] = []
        """Losses of this update's passes; read only when it is skipped, to avoid synchronising the device."""

    def rewards(self, nonfinite: Sequence[str]) -> None:
        """Set the descriptions of the next batch's rewards that are not finite. Empty: all are finite."""
        self._rewards = tuple(nonfinite)

    def poisoned(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss of a pass; where it or a reward is not finite, its gradient is NaN."""
        self._losses.append(loss.detach())
        sound = torch.isfinite(loss.detach()) & (not self._rewards)
        # A factor, not a sum or a branch: it reaches every gradient, and a factor of 1 leaves each unchanged.
        return loss * torch.where(sound, 1.0, torch.nan).to(loss.dtype)

    def applies(self, step: int, norm: float) -> bool:
        """Whether an update is applied. All ranks call this with the same norm.

        Args:
            step: its number, counted from 1.
            norm: of its gradient, over all ranks.
        """
        finite = math.isfinite(norm)
        if finite:
            self._in_a_row = 0
        else:
            self.skipped(step, self._broken_loss(), norm)
        self._losses = []
        return finite

    def skipped(self, step: int, loss: str, norm: float) -> None:
        """An update was skipped.

        Args:
            step: its number, counted from 1.
            loss: the first loss that was not finite, as text; empty where all were finite, on every rank.
            norm: the gradient's norm.
        """
        cause = REWARD if self._rewards else LOSS if loss else GRADIENT
        descriptions = {REWARD: "; ".join(self._rewards[:3]), LOSS: f"the loss is {loss}"}
        self._description = descriptions.get(cause, f"the gradient's norm is {norm}")
        if not self._in_a_row:
            self._first = step
        self._in_a_row += 1
        self._skipped += 1
        self._row.update((cause, "skipped"))

    def _broken_loss(self) -> str:
        """The first loss of the update that is not finite, here or on another rank; empty where all are finite."""
        own = next((str(value) for one in self._losses if not math.isfinite(value := one.item())), "")
        somewhere = any_rank(bool(own))  # Collective: all ranks call it, even those with a non-finite loss.
        return own or ("no finite number on another process" if somewhere else "")

    def check(self, steps: int, ended: bool = False) -> None:
        """Raises GuardStop after too many consecutive skipped updates, or at the end of a run that applied none.

        Args:
            steps: completed so far.
        """
        none = ended and 0 < steps == self._skipped
        if self._in_a_row <= self._most and not none:
            return
        count = f"none of {steps} updates was taken" if none else f"the last {self._in_a_row} updates were skipped"
        raise GuardStop(
            f"step {steps}: {count}, from step {self._first} on: {self._description}. Weights and optimizer are those of step "
            f"{self._first - 1}. Lower optimizer.lr, or look at what step {self._first} learned from (rollouts/) and "
            f"at the reward's terms; run.guards.max_skipped={self._most} skipped updates in a row are borne"
        )

    def metrics(self) -> dict[str, float]:
        """Skipped updates since the last call, in total and by cause."""
        row, self._row = self._row, Counter()
        return {f"guard/{name}": float(row[name]) for name in ("skipped", *CAUSES)}

    def state_dict(self) -> dict[str, Any]:
        counts = {"in_a_row": self._in_a_row, "skipped": self._skipped, "first": self._first}
        return {**counts, "told": self._description, "row": dict(self._row), "rewards": list(self._rewards)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError for unknown or missing keys."""
        if set(state) != set(self.state_dict()):
            got = ", ".join(sorted(state)) or "no keys"
            raise InputError(
                InputProblem("state of NonFiniteGuard", "has other keys", got, ", ".join(self.state_dict()))
            )
        self._in_a_row, self._skipped, self._first = state["in_a_row"], state["skipped"], state["first"]
        self._description, self._row, self._rewards = state["told"], Counter(state["row"]), tuple(state["rewards"])
