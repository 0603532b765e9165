"""Options of the `data` group: the domain, where its tasks come from and how they are worded."""

from dataclasses import dataclass, field

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import Problem


@dataclass
class Prompt:
    """How a task is worded."""

    style: str = option("bare", choices=("bare", "instruct"))
    """bare: the task alone; instruct: with instructions in words."""
    grid: str = option("compact", choices=("compact", "spaced", "json"))
    """How a grid is written."""
    shots: int = option(0, low=0)
    """Solved examples of other tasks shown before the task."""


@dataclass
class Data:
    """What every domain's node has."""

    path: str = ""
    """Folder or file of real data; empty: the embedded corpus."""
    limit: int = option(0, low=0)
    """The first N tasks of each split after a seeded shuffle; 0: all."""


@configures("rlvr_exp.tasks.arc.domain.Arc")
@dataclass
class Arc(Data):
    """Grid puzzles: embedded, or real ARC files."""

    dev_fraction: float = option(0.1, low=0, high=1)
    """Share of real training data that becomes `dev`."""
    test_fraction: float = option(0.1, low=0, high=1)
    """Share of real data without splits that becomes `test`."""
    seed: int = option(0, low=0)
    """Of the splits, the shuffle before `limit` and the choice of shots. Not the run's: all runs measure the same tasks."""
    prompt: Prompt = field(default_factory=Prompt)
    """How a task is worded."""

    def problems(self) -> list[Problem]:
        if self.dev_fraction + self.test_fraction <= 1:
            return []
        got = f"{self.dev_fraction} + {self.test_fraction}"
        return [Problem("dev_fraction", "the shares of dev and test pass the whole", got, "a sum of at most 1")]
