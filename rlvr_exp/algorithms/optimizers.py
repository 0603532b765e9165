"""Optimizers by name: each makes a torch optimizer for a model. Schedules and gradient clipping are the trainer's."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


class OptimizerChoice(ABC):
    """An option of the `optimizer` group."""

    @abstractmethod
    def make(self, model: nn.Module) -> torch.optim.Optimizer:
        """The optimizer of every parameter that takes a gradient."""


@dataclass(frozen=True)
class AdamW(OptimizerChoice):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019); norms and biases are not decayed."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float

    def make(self, model: nn.Module) -> torch.optim.Optimizer:
        return self.of(*_split(model, lambda value: value.ndim >= 2))

    def of(self, decayed: list[nn.Parameter], plain: list[nn.Parameter]) -> torch.optim.AdamW:
        groups = [{"params": decayed, "weight_decay": self.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        return torch.optim.AdamW(groups, lr=self.lr, betas=(self.beta1, self.beta2), eps=self.eps)


@dataclass(frozen=True)
class Muon(AdamW):
    """Momentum orthogonalised by Newton-Schulz for hidden matrices (Jordan 2024); AdamW for everything else.

    Needs fewer steps than AdamW to train a model from scratch. Embeddings, heads and norms do not map one hidden space
    to another and stay with AdamW, as its author advises.
    """

    matrix_lr: float
    momentum: float

    def make(self, model: nn.Module) -> torch.optim.Optimizer:
        outer = {id(part.weight) for part in (model.get_input_embeddings(), model.get_output_embeddings())}
        hidden, rest = _split(model, lambda value: value.ndim == 2 and id(value) not in outer)
        muon = torch.optim.Muon(hidden, lr=self.matrix_lr, momentum=self.momentum, weight_decay=self.weight_decay)
        return Chained([self.of([], rest), muon])  # `lr` is the rate that is logged


class Chained(torch.optim.Optimizer):
    """Several optimizers of disjoint parameters behind one: a scheduler and a checkpoint see a single optimizer."""

    def __init__(self, parts: list[torch.optim.Optimizer]):
        self.parts = parts
        super().__init__([group for part in parts for group in part.param_groups], {})
        # The groups themselves, so that a learning rate set on one side is read on the other.
        self.param_groups = [group for part in parts for group in part.param_groups]

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
        """Raises ValueError for another number of parts; each part refuses groups that differ from its own."""
        if set(state_dict) != {"parts"} or len(state_dict["parts"]) != len(self.parts):
            raise ValueError(f"Chained: state of {len(self.parts)} optimizers wanted, got keys {sorted(state_dict)}")
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def _split(model: nn.Module, chosen: Callable[[nn.Parameter], bool]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Trained parameters for which `chosen` holds, and the others; both in the model's order."""
    trained = [value for value in model.parameters() if value.requires_grad]
    return [value for value in trained if chosen(value)], [value for value in trained if not chosen(value)]
