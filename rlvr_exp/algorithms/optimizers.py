"""Optimizers and learning-rate schedules by name. Their options are documented in rlvr_exp.config.algorithm.

Each optimizer builds a torch optimizer for a model. All decay only matrices, never norms and biases. Schedules are arguments
of Transformers' trainer, which steps them; gradient clipping is the trainer's.

Step s, counted from 1, is taken at the rate of position s - 1: the first step of a warm-up from 0 moves nothing. Every
parameter group follows the same curve from its own highest rate.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from rlvr_exp.config import algorithm as options
from rlvr_exp.core.errors import InputError, InputProblem

Parameters = list[nn.Parameter]


class OptimizerChoice(options.Optimizer, ABC):
    """An option of the `optimizer` group."""

    @abstractmethod
    def make(self, model: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of every parameter that takes a gradient."""


class Split(OptimizerChoice):
    """One torch optimizer of two groups: matrices, which are decayed, and everything else."""

    weight_decay: float

    def make(self, model: nn.Module) -> torch.optim.Optimizer:
        return self.of(*split(model, lambda value: value.ndim >= 2))

    def of(self, decayed: Parameters, plain: Parameters) -> torch.optim.Optimizer:
        groups = [{"params": decayed, "weight_decay": self.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        return self._made([group for group in groups if group["params"]])

    @abstractmethod
    def _made(self, groups: list[Mapping[str, Any]]) -> torch.optim.Optimizer: ...


class Adam(Split, options.Adam):
    """Kingma and Ba 2015 (arXiv 1412.6980), with weight decay as an L2 penalty in the gradient."""

    def _made(self, groups: list[Mapping[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.Adam(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=_fused(groups))


class AdamW(Split, options.AdamW):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv 1711.05101)."""

    def _made(self, groups: list[Mapping[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps, fused=_fused(groups))


def _fused(groups: list[Mapping[str, Any]]) -> bool | None:
    """On CPUs one pass over the weights in place of ten; elsewhere torch's own choice (None)."""
    return all(value.device.type == "cpu" for group in groups for value in group["params"]) or None


class AdamW8bit(AdamW, options.AdamW8bit):
    """AdamW with block-wise quantized states (Dettmers et al. 2022, arXiv 2110.02861), by bitsandbytes."""

    def _made(self, groups: list[Mapping[str, Any]]) -> torch.optim.Optimizer:
        """Raises InputError if bitsandbytes is not installed."""
        try:
            from bitsandbytes.optim import AdamW8bit as Made
        except ModuleNotFoundError as fault:
            remedy = "pip install bitsandbytes, or optimizer=adamw"
            raise InputError(
                InputProblem("optimizer", "bitsandbytes is not installed", "AdamW8bit", remedy=remedy)
            ) from fault
        betas = (self.beta1, self.beta2)
        return Made(groups, lr=self.lr, betas=betas, eps=self.eps)


class SGD(Split, options.SGD):
    """Descent along the gradient, with heavy-ball momentum; weight decay is an L2 penalty."""

    def _made(self, groups: list[Mapping[str, Any]]) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=self.lr, momentum=self.momentum)


class Adafactor(Split, options.Adafactor):
    """Shazeer and Stern 2018 (arXiv 1804.04235), by Transformers, at a rate that the schedule sets.

    Differences from the paper: its relative step sizes and its scaling by parameters are off.
    """

    def _made(self, groups: list[Mapping[str, Any]]) -> torch.optim.Optimizer:
        from transformers.optimization import Adafactor as Made

        return Made(
            groups,
            lr=self.lr,
            beta1=self.beta1 or None,
            scale_parameter=False,
            relative_step=False,
        )


class Muon(AdamW, options.Muon):
    """Momentum orthogonalised by Newton-Schulz for hidden matrices (Jordan 2024); AdamW for everything else.

    Needs fewer steps than AdamW to train a model from scratch. Embeddings, heads and norms do not map one hidden space
    to another and stay with AdamW, as its author advises.
    """

    def make(self, model: nn.Module) -> torch.optim.Optimizer:
        outer = {id(part.weight) for part in (model.get_input_embeddings(), model.get_output_embeddings())}
        hidden, rest = split(model, lambda value: value.ndim == 2 and id(value) not in outer)
        muon = torch.optim.Muon(hidden, lr=self.matrix_lr, momentum=self.momentum, weight_decay=self.weight_decay)
        return Chained([self.of([], rest), muon])  # `lr` is the rate that is logged


def parts_of(optimizer: Any) -> list[torch.optim.Optimizer]:
    """The optimizers that hold the states, below their wrappers."""
    inner = getattr(optimizer, "optimizer", optimizer)
    return getattr(inner, "parts", [inner])


class Chained(torch.optim.Optimizer):
    """Several optimizers of disjoint parameters behind one: a scheduler and a checkpoint see a single optimizer."""

    def __init__(self, parts: list[torch.optim.Optimizer]):
        self.parts: list[torch.optim.Optimizer] = []
        # A schedule that ends at a share of the rate reads the default rate: that of the first part.
        super().__init__([group for part in parts for group in part.param_groups], {"lr": parts[0].defaults["lr"]})
        self.parts = parts
        self._share()

    def _share(self) -> None:
        """Share the group objects, so that a learning rate set here is read by the parts."""
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Further parameters go to the first part."""
        if not self.parts:  # Called by torch's own constructor, which registers the groups.
            super().add_param_group(param_group)
            return
        self.parts[0].add_param_group(param_group)
        self._share()

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None if closure is None else closure()
        for part in self.parts:
            part.step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raises ValueError for another number of parts; each part rejects groups that differ from its own."""
        if set(state_dict) != {"parts"} or len(state_dict["parts"]) != len(self.parts):
            raise ValueError(
                f"Chained: expected the state of {len(self.parts)} optimizers, got keys {sorted(state_dict)}"
            )
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self._share()


def split(model: nn.Module, chosen: Callable[[nn.Parameter], bool]) -> tuple[Parameters, Parameters]:
    """Trained parameters for which `chosen` holds, and the others; both in the model's order."""
    trained = [value for value in model.parameters() if value.requires_grad]
    return [value for value in trained if chosen(value)], [value for value in trained if not chosen(value)]


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
