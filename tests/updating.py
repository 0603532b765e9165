"""A trainer's updates, requested as a run requests them."""

from collections.abc import Callable
from typing import Any

import torch

from rlvr_exp.algorithms.stepped import Stepped
from rlvr_exp.training.learner import Learner

After = Callable[[Learner], object]


def updated(
    trainer: Stepped, collect: Callable[[int], Any], every: int = 1, after: After | None = None
) -> list[dict[str, float]]:
    """All updates of a trainer; returns its rows of metrics. Arguments as of `driven`."""
    return driven(Learner("policy", trainer, {}), collect, every, after)


def driven(
    learner: Learner, collect: Callable[[int], Any], every: int = 1, after: After | None = None
) -> list[dict[str, float]]:
    """All updates of a learner; returns its rows of metrics.

    Args:
        collect: returns the batch of a step, counted from 0; called where the trainer needs one.
        every: updates from row to row.
        after: called after each update.
    """
    rows = []
    learner.begin()
    while learner.steps < learner.trainer.args.max_steps:
        if learner.needs_rollouts:
            learner.take(collect(learner.steps))
        learner.update()
        if learner.steps % every == 0:
            rows.append({"step": learner.steps, **learner.row()})
        if after is not None:
            after(learner)
    learner.end()
    return rows


class Gradients:
    """The gradients that an optimizer is handed, one for each of its steps, flat: a hook before its step."""

    def __init__(self, optimizer: torch.optim.Optimizer):
        self.seen: list[torch.Tensor] = []
        optimizer.register_step_pre_hook(self._note)

    def _note(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        grads = [value.grad for group in optimizer.param_groups for value in group["params"]]
        self.seen.append(torch.cat([grad.detach().flatten().double() for grad in grads if grad is not None]))
