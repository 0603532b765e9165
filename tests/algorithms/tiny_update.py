"""The smallest real update: our optimizer, schedule and clipping in Transformers' own loop, on a convex loss."""

import gc
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainingArguments

from rlvr_exp.algorithms.arguments import shared_arguments
from rlvr_exp.algorithms.clipping import GradNormMetrics
from rlvr_exp.algorithms.nonfinite_guard import SkipNonFiniteUpdates
from rlvr_exp.config import build, compose
from rlvr_exp.training.callbacks import MetricsLogger

gc.freeze()  # Transformers collects garbage before every run; objects of imports need not be scanned each time.


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


class OneRow(Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"row": torch.zeros(1)}


class TinyTrainer(SkipNonFiniteUpdates, GradNormMetrics, Trainer):
    pass


class Rows:
    """A stand-in for a run's tracker and context."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def log(self, step: int, row: dict[str, float]) -> None:
        self.rows.append({"step": step, **row})

    def progress(self, **_: object) -> None: ...


def trained(model: nn.Module, *words: str, callbacks=()) -> tuple[TinyTrainer, list[dict[str, float]]]:
    """The trainer after its last step, and the rows of a run's metrics."""
    config = compose(["+stage=grpo", *words]).config
    rows = Rows()
    with TemporaryDirectory() as scratch:
        arguments = shared_arguments(config, Path(scratch), torch.float32)
        trainer = TinyTrainer(
            model=model,
            args=TrainingArguments(**arguments, max_steps=config.algorithm.max_steps, remove_unused_columns=False),
            train_dataset=OneRow(),
            callbacks=[MetricsLogger(rows, rows), *callbacks],
            optimizers=(build(config.optimizer).make(model), None),
        )
        trainer.remove_callback(PrinterCallback)
        for callback in callbacks:
            if hasattr(callback, "updates"):
                trainer.guard = callback.updates
        trainer.train()
    return trainer, rows.rows


def logged_rows(*words: str) -> list[dict[str, float]]:
    """Rows with a rate: the last row, of the entire run, has none."""
    return [row for row in trained(Bowl(), *words)[1] if "learning_rate" in row]


def tiny_language_model() -> nn.Module:
    """The parts that Muon distinguishes: an embedding, a head, and a hidden matrix between them."""
    torch.manual_seed(0)
    model = Bowl()
    model.inner, model.outer = nn.Embedding(3, 4), nn.Linear(4, 3, bias=False)
    model.get_input_embeddings = lambda: model.inner  # type: ignore[method-assign]
    model.get_output_embeddings = lambda: model.outer  # type: ignore[method-assign]
    return model
