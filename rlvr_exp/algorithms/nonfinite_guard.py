"""Updates that are not taken: where a loss, a gradient or a reward is no finite number, weights and optimizer stay as
they are.

One sign serves every plan of processes: the gradient. Where a loss or a reward is not finite on some rank its
gradient is made NaN, and the sum over ranks carries that to all, so that all skip together without an exchange of
their own. DeepSpeed leaves such a step out by itself; everywhere else its gradients are dropped, which optimizers
take for nothing to do. The schedule stands still with the optimizer. Counts and stops; never changes an update that
is taken, not by a bit.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from accelerate.utils import DistributedType
from torch import nn

from rlvr_exp.core.errors import GuardStop, InputError, InputProblem
from rlvr_exp.rollouts.distributed import any_rank

REWARD, LOSS, GRADIENT = CAUSES = ("reward", "loss", "gradient")
"""What can be at fault; a skipped update counts for the first of them."""
BORNE = 5


class NonFiniteGuard:
    """Counts the skipped updates of one trainer.

    Args:
        most: skipped updates in a row that are borne; one more and `check` stops the run.
    """

    def __init__(self, most: int = BORNE):
        self._most = most
        self._in_a_row = self._skipped = self._first = 0
        self._told = ""
        self._row: Counter[str] = Counter()
        """Of the steps since the last row of metrics."""
        self._rewards: tuple[str, ...] = ()

    def rewards(self, nonfinite: Sequence[str]) -> None:
        """Of what is learned from next: the rewards that are no finite numbers, in words. Empty: all are sound."""
        self._rewards = tuple(nonfinite)

    @property
    def nonfinite_reward(self) -> bool:
        """What is being learned from was paid a reward that is no number: no update may be taken from it."""
        return bool(self._rewards)

    def applied(self) -> None:
        """An update was applied."""
        self._in_a_row = 0

    def skipped(self, step: int, loss: str, norm: float) -> None:
        """An update was skipped.

        Args:
            step: its number, counted from 1.
            loss: the first one that was not finite, in words; empty where all were, on every rank.
            norm: the gradient's.
        """
        cause = REWARD if self._rewards else LOSS if loss else GRADIENT
        told = {REWARD: "; ".join(self._rewards[:3]), LOSS: f"the loss is {loss}"}
        self._told = told.get(cause, f"the gradient's norm is {norm}")
        if not self._in_a_row:
            self._first = step
        self._in_a_row += 1
        self._skipped += 1
        self._row.update((cause, "skipped"))

    def check(self, steps: int, ended: bool = False) -> None:
        """Raises GuardStop where too many were skipped in a row, or a run that ends took none at all.

        Args:
            steps: done so far.
        """
        none = ended and 0 < steps == self._skipped
        if self._in_a_row <= self._most and not none:
            return
        count = f"none of {steps} updates was taken" if none else f"the last {self._in_a_row} updates were skipped"
        raise GuardStop(
            f"step {steps}: {count}, from step {self._first} on: {self._told}. Weights and optimizer are those of step "
            f"{self._first - 1}. Lower optimizer.lr, or look at what step {self._first} learned from (rollouts/) and "
            f"at the reward's terms; run.guards.max_skipped={self._most} skipped updates in a row are borne"
        )

    def metrics(self) -> dict[str, float]:
        """Skipped updates since the last call, in all and by cause."""
        row, self._row = self._row, Counter()
        return {f"guard/{name}": float(row[name]) for name in ("skipped", *CAUSES)}

    def state_dict(self) -> dict[str, Any]:
        counts = {"in_a_row": self._in_a_row, "skipped": self._skipped, "first": self._first}
        return {**counts, "told": self._told, "row": dict(self._row), "rewards": list(self._rewards)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError for unknown or missing keys."""
        if set(state) != set(self.state_dict()):
            got = ", ".join(sorted(state)) or "no keys"
            raise InputError(InputProblem("state of NonFiniteGuard", "has other keys", got, ", ".join(self.state_dict())))
        self._in_a_row, self._skipped, self._first = state["in_a_row"], state["skipped"], state["first"]
        self._told, self._row, self._rewards = state["told"], Counter(state["row"]), tuple(state["rewards"])


class SkipNonFiniteUpdates:
    """Put before a Transformers Trainer and before GradNormMetrics.

    Seams of the pinned Transformers: `compute_loss` makes the loss of each pass, `training_step` has its gradient,
    `_tr_loss` adds losses up for the log, and `_clip_grad_norm(model)`, called once an update before the optimizer's
    step, returns the norm of all ranks' gradient. Of Accelerate: an optimizer's `_is_overflow` holds the schedule
    back.
    """

    guard: NonFiniteGuard
    """Set by whoever makes the trainer; a trainer of its own accord takes the default."""

    def __init__(self, *args: Any, **kwargs: Any):
        self.guard = NonFiniteGuard()
        self._losses: list[torch.Tensor] = []
        """Of each pass of this update; looked at where it is skipped alone, for a device's sake."""
        self._loss_before: torch.Tensor | None = None
        self._of_row: Counter[str] = Counter()
        """Updates taken and skipped since a loss was logged; rlvr_exp.algorithms.resumable keeps it."""
        super().__init__(*args, **kwargs)

    def compute_loss(self, model, *args, **kwargs):
        found = super().compute_loss(model, *args, **kwargs)
        if not model.training:
            return found
        loss, *rest = found if isinstance(found, tuple) else (found,)
        self._losses.append(loss.detach())
        sound = torch.isfinite(loss.detach()) & (not self.guard.nonfinite_reward)
        # A factor and not a sum or a choice: it reaches every gradient, and a factor of 1 leaves each as it is.
        loss = loss * torch.where(sound, 1.0, torch.nan).to(loss.dtype)
        return (loss, *rest) if rest else loss

    def training_step(self, *args, **kwargs):
        if self._loss_before is None:
            self._loss_before = self._tr_loss.clone()
        return super().training_step(*args, **kwargs)

    def _clip_grad_norm(self, model: nn.Module):
        norm = super()._clip_grad_norm(model)
        applied = math.isfinite(float(norm))
        if applied:
            self.guard.applied()
        else:
            self.guard.skipped(self.state.global_step + 1, self._broken_loss(), float(norm))
            self._tr_loss.copy_(self._loss_before)
        self._of_row["taken" if applied else "skipped"] += 1
        if self.accelerator.distributed_type != DistributedType.DEEPSPEED:
            self.optimizer._is_overflow = not applied
            if not applied:
                _drop_gradients(model)
        self._losses, self._loss_before = [], None
        return norm

    def _broken_loss(self) -> str:
        """The first loss of the update that is not finite, here or on another rank; empty where there is none."""
        own = next((str(value) for one in self._losses if not math.isfinite(value := one.item())), "")
        somewhere = any_rank(bool(own))  # All ranks ask, also those that have one.
        return own or ("no finite number on another process" if somewhere else "")

    def log(self, logs: dict[str, float], *args, **kwargs) -> None:
        if "loss" in logs:
            applied, steps = self._of_row["taken"], self._of_row.total()
            self._of_row.clear()
            if applied < steps:
                logs = {**logs, "loss": logs["loss"] * steps / applied if applied else math.nan}
        super().log(logs, *args, **kwargs)


def _drop_gradients(model: nn.Module) -> None:
    for value in model.parameters():
        value.grad = None
