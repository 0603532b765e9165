"""Options of the `tracking` group: where metrics go beside the run directory's own files, which are always written."""

from dataclasses import dataclass, field

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import Problem


@dataclass
class WandB:
    """Weights & Biases; read by kind wandb alone."""

    project: str = "rlvr_exp"
    """Project that the run appears in."""
    mode: str = option("offline", choices=("offline", "online"))
    """offline: written in the run directory, to be synchronised later."""
    entity: str | None = None
    """Team or user; null: the account's default."""


@dataclass
class Tracking:
    """A viewer's copy of the metrics."""

    kind: str = option("files", choices=("files", "tensorboard", "wandb"))
    """files: no copy, metrics.jsonl and metrics.csv alone."""
    wandb: WandB = field(default_factory=WandB)

    def problems(self) -> list[Problem]:
        if self.kind == "wandb" or self.wandb == WandB():
            return []
        return [Problem("wandb", f"has no effect with tracking={self.kind}", remedy="drop it, or tracking=wandb")]
