"""Scaling of rewards across tasks, after the terms are summed. Affine with a positive slope: order is never changed."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev

from rlvr_exp.config import verifier as options
from rlvr_exp.core.errors import InputError, InputProblem

_FLOOR = 1e-4


class Normalizer(ABC):
    """Maps the totals of a batch; stateful ones are part of every checkpoint."""

    @abstractmethod
    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        """The scaled totals, in order; adds the batch to the statistics first. `tasks`: the id of each total's task."""

    @abstractmethod
    def state_dict(self) -> dict[str, float]: ...

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Raises InputError for unknown or missing keys."""

    @abstractmethod
    def metrics(self) -> dict[str, float]: ...


class Identity(Normalizer, options.Identity):
    """Totals as they are."""

    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        return list(totals)

    def state_dict(self) -> dict[str, float]:
        return {}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        _check_keys(self, state)

    def metrics(self) -> dict[str, float]:
        return {}


class PerTask(Identity, options.PerTask):
    """(total - mean) / std with the mean and standard deviation of the totals of the same task in this batch, so that a
    task paid 0 or 10 weighs as much as one paid 0 or 1. No state; a task's level is lost, only its order stays."""

    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        """Raises ValueError unless each total has a task."""
        of: dict[str, list[float]] = {}
        for total, task in zip(totals, tasks, strict=True):
            of.setdefault(task, []).append(total)
        means = {task: math.fsum(own) / len(own) for task, own in of.items()}
        scales = {task: _divisor(pstdev(own)) for task, own in of.items()}
        return [(total - means[task]) / scales[task] for total, task in zip(totals, tasks, strict=True)]


@dataclass
class RunningScale(Normalizer, options.RunningScale):
    """(total - mean) / std with the mean and standard deviation of every total so far, including this batch.

    Welford's sums in Chan's batch form: accurate at any count, and equal batches give equal states. Where there is no
    spread the divisor is 1; `_FLOOR` keeps near-equal rewards from being amplified.
    """

    def __post_init__(self) -> None:
        self._count, self._mean, self._squares = 0.0, 0.0, 0.0

    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        self._take(totals)
        scale = self._scale()
        return [(total - self._mean) / scale for total in totals]

    def state_dict(self) -> dict[str, float]:
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        _check_keys(self, state)
        self._count, self._mean, self._squares = state["count"], state["mean"], state["squares"]

    def metrics(self) -> dict[str, float]:
        return {"count": self._count, "mean": self._mean, "scale": self._scale()}

    def _scale(self) -> float:
        return _divisor(math.sqrt(self._squares / self._count) if self._count else 0.0)

    def _take(self, totals: Sequence[float]) -> None:
        if not totals:
            return
        count = len(totals)
        mean = math.fsum(totals) / count
        squares = math.fsum((total - mean) ** 2 for total in totals)
        joint, shift = self._count + count, mean - self._mean
        self._squares += squares + shift * shift * self._count * count / joint
        self._mean += shift * count / joint
        self._count = joint


def _divisor(spread: float) -> float:
    return max(spread, _FLOOR) if spread > 0 else 1.0


def _check_keys(normalizer: Normalizer, state: Mapping[str, float]) -> None:
    name, wanted = type(normalizer).__name__, set(normalizer.state_dict())
    if set(state) == wanted:
        return
    remedy = "resume with the reward.normalizer that wrote the checkpoint"
    got, allowed = (", ".join(sorted(keys)) or "no keys" for keys in (state, wanted))
    raise InputError(InputProblem(f"state of {name}", "has other keys", got, allowed, remedy=remedy))
