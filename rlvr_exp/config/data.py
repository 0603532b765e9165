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


CODE_SETS = (
    "human_eval",
    "human_eval_plus",
    "mbpp",
    "mbpp_plus",
    "canitedit",
    "humanevalpack",
    "edit_eval",
    "quixbugs",
)
"""The sets that rlvr_exp/tasks/code reads."""


@configures("rlvr_exp.tasks.code.domain.Code")
@dataclass
class Code(Data):
    """Programs to write, to repair and to edit, from public sets in their own formats; `path` is needed."""

    set: str = option("auto", choices=("auto", *CODE_SETS))
    """Which set, where a folder holds several; auto: told by its rows or folders."""
    judge: str = "pytest"
    """Form of the problems: pytest or python_io, or the path of a verifier's class that names one of them."""
    seed: int = option(0, low=0)
    """Of the shuffle before `limit`. Not the run's: all runs measure the same tasks."""

    def problems(self) -> list[Problem]:
        if self.path:
            return []
        remedy = "data.path=DIR, a folder or file of one of the sets in its own format"
        return [Problem("path", "no code set comes with rlvr_exp", "nothing", ", ".join(CODE_SETS), "", remedy)]
