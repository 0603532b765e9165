"""The smallest real update: our optimizer, schedule and clipping, on a convex loss."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn
from transformers import Trainer, TrainingArguments
from updating import updated

from rlvr_exp.algorithms.base import shared_arguments
from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.stepped import Stepped
from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build


class Bowl(nn.Module):
    """|A x - b|^2 / 2 over a matrix and a vector, with a minimum of 0."""

    def __init__(self, seed: int = 0, scale: float = 1.0):
        super().__init__()
        draw = torch.Generator().manual_seed(seed)
        self.matrix = nn.Parameter(torch.randn(6, 4, generator=draw))
        self.vector = nn.Parameter(torch.randn(6, generator=draw))
        self.scale = scale
        self.register_buffer("goal", torch.randn(6, 4, generator=draw))

    def forward(self, row: torch.Tensor) -> dict[str, torch.Tensor]:
        off = (self.matrix - self.goal).square().sum() + self.vector.square().sum()
        return {"loss": self.scale * off / 2}


class TinyTrainer(Stepped, Trainer):
    """Every update is one pass over the loss, which reads no data."""

    def __init__(self, **given: Any):
        super().__init__(**given)
        self._metrics: dict[str, dict[str, list[float]]] = {"train": {}}

    def take(self, batch: None) -> None: ...

    def passes(self) -> tuple[list[dict[str, torch.Tensor]], None]:
        return [{"row": torch.zeros(1)}], None


def trainer(model: nn.Module, config, scratch: Path, guard: NonFiniteGuard | None = None) -> TinyTrainer:
    """A trainer with the optimizer, schedule and clipping of a configuration."""
    arguments = shared_arguments(config, scratch, torch.float32)
    return TinyTrainer(
        model=model,
        args=TrainingArguments(**arguments, max_steps=config.algorithm.max_steps),
        optimizer=build(config.optimizer).make(model),
        guard=guard or NonFiniteGuard(),
    )


def trained(model: nn.Module, *words: str) -> tuple[TinyTrainer, list[dict[str, float]]]:
    """The trainer after its last step, and the rows of a run's metrics."""
    config = compose(["+stage=grpo", *words]).config
    with TemporaryDirectory() as scratch:
        made = trainer(model, config, Path(scratch))
        return made, updated(made, lambda _: None, config.run.log_every_steps)


def logged_rows(*words: str) -> list[dict[str, float]]:
    return trained(Bowl(), *words)[1]


def tiny_language_model() -> nn.Module:
    """The parts that Muon distinguishes: an embedding, a head, and a hidden matrix between them."""
    torch.manual_seed(0)
    model = Bowl()
    model.inner, model.outer = nn.Embedding(3, 4), nn.Linear(4, 3, bias=False)
    model.get_input_embeddings = lambda: model.inner  # type: ignore[method-assign]
    model.get_output_embeddings = lambda: model.outer  # type: ignore[method-assign]
    return model
