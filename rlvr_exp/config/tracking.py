"""Options of the `tracking` group: where metrics go besides the run directory's own files, which are always written."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures, option


@configures("rlvr_exp.records.tracking.Files")
@dataclass
class Files:
    """The run directory's files alone."""


@dataclass
class Viewer:
    """Options of every viewer."""

    samples: int = option(4, low=0)
    """Samples of each logged step shown with their verdicts: the best and the worst paid, then others by chance."""


@configures("rlvr_exp.training.tensorboard.TensorBoard")
@dataclass
class TensorBoard(Viewer):
    """TensorBoard event files in the run directory."""


@configures("rlvr_exp.records.tracking.WandB")
@dataclass
class WandB(Viewer):
    """Weights & Biases."""

    project: str = "rlvr_exp"
    """Project that the run appears in."""
    mode: str = option("offline", choices=("offline", "online"))
    """offline: written in the run directory, to be synchronised later."""
    entity: str = ""
    """Team or user; empty: the account's default."""
