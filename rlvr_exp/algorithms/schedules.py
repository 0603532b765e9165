"""Schedules by name: the learning rate of each step, as arguments of Transformers' trainer, which steps them.

Step s, counted from 1, is taken at the rate of position s - 1: the first step of a warm-up from 0 moves nothing. Every
parameter group follows the same curve from its own highest rate. Options are documented in rlvr_exp.config.algorithm.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from rlvr_exp.config import algorithm as options


class Schedule(options.Scheduler, ABC):
    """An option of the `scheduler` group."""

    @abstractmethod
    def shape(self, lr: float, steps: int) -> tuple[str, Mapping[str, Any]]:
        """Transformers' name of the curve, and its own arguments.

        Args:
            lr: the highest rate.
            steps: of the entire run.
        """

    def arguments(self, lr: float, steps: int) -> Mapping[str, Any]:
        """Fields of TrainingArguments."""
        name, own = self.shape(lr, steps)
        return {"lr_scheduler_type": name, "lr_scheduler_kwargs": dict(own), "warmup_steps": self.warmup_steps}


class Constant(Schedule, options.Constant):
    def shape(self, lr: float, steps: int) -> tuple[str, Mapping[str, Any]]:
        return "constant_with_warmup", {}


class Linear(Schedule, options.Linear):
    def shape(self, lr: float, steps: int) -> tuple[str, Mapping[str, Any]]:
        return "linear", {}


class Cosine(Schedule, options.Cosine):
    """Loshchilov and Hutter 2017 (SGDR, arXiv 1608.03983), without restarts."""

    def shape(self, lr: float, steps: int) -> tuple[str, Mapping[str, Any]]:
        return "cosine_with_min_lr", {"min_lr_rate": self.min_ratio}


class Polynomial(Schedule, options.Polynomial):
    def shape(self, lr: float, steps: int) -> tuple[str, Mapping[str, Any]]:
        return "polynomial", {"power": self.power, "lr_end": self.min_ratio * lr}


class WarmupStableDecay(Schedule, options.WarmupStableDecay):
    """Hu et al. 2024 (MiniCPM, arXiv 2404.06395), section 4."""

    def shape(self, lr: float, steps: int) -> tuple[str, Mapping[str, Any]]:
        return "warmup_stable_decay", {
            "num_decay_steps": self.decay_steps or options.last_steps(steps),
            "decay_type": self.decay,
            "min_lr_ratio": self.min_ratio,
        }
