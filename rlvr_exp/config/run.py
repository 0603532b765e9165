"""Options of the nodes `run` and `evaluation`, and of the nodes that exist under one stage alone."""

from dataclasses import dataclass, field

from rlvr_exp.config.options import option
from rlvr_exp.core.errors import Problem


@dataclass
class Checkpoint:
    """When the state of training is written."""

    every_steps: int = option(50, low=1)
    """Steps between checkpoints; the last step always has one."""
    keep: int = option(3, low=1)
    """Newest checkpoints kept, beside the best one."""


@dataclass
class Run:
    """The run itself."""

    dir: str = ""
    """Run directory; empty: outputs/DATE/TIME_STAGE, below multirun/ for a sweep."""
    dry: bool = False
    """Compose, check and print the plan; run nothing."""
    inline: bool = False
    """Run in this process, for a debugger."""
    log_every_steps: int = option(1, low=1)
    """Steps between rows of metrics."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    """When the state of training is written."""
    searchpath: list[str] = field(default_factory=list)
    """Folders with further YAML and the classes it names; written by hydra.searchpath=[DIR,...]."""


@dataclass
class Evaluation:
    """How success is measured, before and after training and by +stage=evaluate."""

    split: str = "test"
    """Split of the data that is held out for it."""
    tasks: int = option(400, low=0)
    """Tasks asked; 0: all of the split."""
    samples: int = option(8, low=1)
    """Completions sampled for each task."""
    temperature: float = option(1.0, above=0)
    """Sampling temperature: the one at which rates are compared."""
    greedy: bool = True
    """Also answer greedily."""
    batch_size: int = option(512, low=1)
    """Completions generated at once."""


@dataclass
class Evaluate:
    """Options of +stage=evaluate."""

    baseline: str = ""
    """Run directory to compare with, paired by task; empty: none."""


@dataclass
class Compare:
    """Options of +stage=compare."""

    runs: list[str] = field(default_factory=list)
    """Run directories to lay side by side."""

    def problems(self) -> list[Problem]:
        if len(self.runs) >= 2:
            return []
        return [
            Problem(
                "runs",
                "nothing to compare",
                str(self.runs),
                "two or more run directories",
                remedy="compare.runs=[RUN,RUN]",
            )
        ]
