"""Options of the groups `data`, `environment` and `curriculum`: tasks, turns, and the order of tasks."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rlvr_exp.config.engine import is_server
from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Data:
    """Options of every domain's node."""

    path: str = ""
    """File or folder with your own data. Empty: the embedded corpus."""
    limit: int = option(0, low=0)
    """Use the first N tasks of each split after a seeded shuffle. 0: all tasks."""
    mix: dict[str, float] = field(default_factory=dict)
    """Shares of the sources in the training tasks, {SOURCE: SHARE}. Shares need not add up to 1. Sources that are not named
    are not used. Empty: every task equally often."""
    folds: int = option(0, low=0, rare=True)
    """Number of folds of a cross-validation. One fold becomes the split `test`, the others are trained on. 0: the splits of
    the data."""
    fold: int = option(0, low=0, rare=True)
    """Index of the fold that is held out, from 0."""
    folds_of: list[str] = option([], rare=True)
    """Splits whose tasks are divided into folds. The other splits stay unchanged. Empty: train, practice and test, if they
    exist."""
    families: list[str] = field(default_factory=list)
    """Keep only tasks of these families. Empty: all families."""
    unseen_families: list[str] = option([], rare=True)
    """Families held out for the split `test_unseen`. No other split has tasks of them. Empty: the splits of the data."""
    resample: int = option(0, low=0, rare=True)
    """Seed of a bootstrap sample: the training tasks are drawn with replacement. 0: each task once."""

    @property
    def as_read(self) -> bool:
        """Whether the splits are those of the data."""
        return not (self.folds or self.families or self.unseen_families or self.resample)

    def problems(self) -> list[InputProblem]:
        return list(self._problems())

    def _problems(self) -> Iterator[InputProblem]:
        wrong = [f"{source}: {share}" for source, share in self.mix.items() if not (math.isfinite(share) and share > 0)]
        if wrong:
            yield InputProblem("mix", "no share", ", ".join(wrong), "numbers above 0")
        if self.folds == 1:
            what, allowed = "one fold leaves nothing to train on", "0, or 2 and more"
            yield InputProblem("folds", what, "1", allowed, "", "data.folds=5")
        elif not self.folds and (self.fold or self.folds_of):
            got = f"fold={self.fold}, folds_of={self.folds_of}"
            yield InputProblem("folds", "there are no folds", got, "2 and more", "", "data.folds=5, or drop it")
        elif self.folds and self.fold >= self.folds:
            yield InputProblem("fold", f"there are {self.folds} folds", str(self.fold), f"0 to {self.folds - 1}")
        if both := ", ".join(sorted({*self.families} & {*self.unseen_families})):
            what = "these families are to be kept and to be held out"
            yield InputProblem("unseen_families", what, both, remedy="name them in one of the two")


@dataclass
class SplitData(Data):
    """Options of the domains that draw splits which the data do not have."""

    dev_fraction: float = option(0.1, low=0, high=1)
    """Share of the tasks without a split that becomes `dev`."""
    test_fraction: float = option(0.1, low=0, high=1)
    """Share of the tasks without a split that becomes `test`."""
    seed: int = option(0, low=0)
    """Seed of the splits, the shuffle before `limit` and the choice of shots. It is not the seed of the run, so that all runs measure
    the same tasks."""

    def problems(self) -> list[InputProblem]:
        found = super().problems()
        if self.dev_fraction + self.test_fraction > 1:
            what, got = (
                "the shares of dev and test add up to more than 1",
                f"{self.dev_fraction} + {self.test_fraction}",
            )
            found.append(InputProblem("dev_fraction", what, got, "a sum of at most 1"))
        return found


@dataclass
class Shots:
    """Options of the wording of tasks."""

    shots: int = option(0, low=0)
    """Solved examples of other tasks shown before the task."""


@dataclass
class Style:
    """The style of the wording of tasks."""

    style: str = option("bare", choices=("bare", "instruct"))
    """bare: the task without instructions, for models trained here. instruct: with instructions in words."""


@dataclass
class Styled(Shots, Style):
    """Options of the wording of tasks in two styles."""


SINGLE_TURN = "rlvr_exp.episodes.environments.SingleTurn"


@configures(SINGLE_TURN)
@dataclass
class SingleTurn:
    """One prompt, one completion, one verdict."""


RETRY = "rlvr_exp.episodes.environments.Retry"


@configures(RETRY)
@dataclass
class Retry:
    """After a completion that does not pass, the policy answers again. The new prompt shows the completion and the
    verifier's feedback."""

    attempts: int = option(2, low=2, high=10)
    """Most completions for a task, the first included."""


@configures("rlvr_exp.episodes.tools.Tools")
@dataclass
class Tools:
    """Within an answer the policy may call tools, which run in the sandbox."""

    names: list[str] = option(["python"], choices=("python", "run_tests"))
    """python: run a program and read what it prints. run_tests: run a solution on the examples that the task shows."""
    calls: int = option(4, low=1)
    """Most calls of an answer."""
    cpu_s: float = option(2.0, above=0)
    """CPU seconds of a call."""
    output: int = option(1000, low=1)
    """Characters of a result that the policy reads."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        if reads("engine") and is_server(config.engine):
            what = "a result stands after tokens that were drawn, and the server takes words"
            yield InputProblem("environment", what, "tools with engine=server", "", "", "engine=local or engine=vllm")


@configures("rlvr_exp.curriculum.base.Uniform")
@dataclass
class Uniform:
    """Every task equally often, in a seeded order."""


@configures("rlvr_exp.curriculum.base.Ordered")
@dataclass
class Ordered:
    """From the easiest task to the hardest."""


@dataclass
class Bands:
    """Options of the curricula of difficulty bands."""

    cuts: list[float] = field(default_factory=list)
    """Difficulties at which bands end, in rising order. A task at a cut belongs to the band below it. Empty: bands of equal
    size."""
    earlier: float = option(0.2, low=0, below=1)
    """Share of the tasks that comes from the bands before the current one."""
    window: int = option(64, low=1)
    """Latest groups of a band that its success rate is measured over."""
    override: int = option(-1, low=-1)
    """Fix the current band, counted from 0. It may change when a run is resumed. -1: the curriculum decides."""

    def problems(self) -> list[InputProblem]:
        found = [_not_rising("cuts", self.cuts)] if _falls(self.cuts) else []
        if self.cuts and self.override > len(self.cuts):
            allowed = f"-1 to {len(self.cuts)}"
            found.append(InputProblem("override", "there is no such band", str(self.override), allowed))
        return found


@configures("rlvr_exp.curriculum.difficulty_bands.Staged")
@dataclass
class Staged(Bands):
    """From the easiest difficulty band on; the next one opens when success passes a threshold."""

    bands: int = option(4, low=1)
    """Number of difficulty bands of equal size, if `cuts` is empty. Tasks of equal difficulty share a band."""
    threshold: float = option(0.7, low=0, below=1)
    """The next band opens when the success rate over a full window exceeds this value."""


@configures("rlvr_exp.curriculum.difficulty_bands.Manual")
@dataclass
class Manual(Bands):
    """Difficulty bands that open at steps of your choice."""

    steps: list[int] = option([], low=1)
    """Steps after which the second and each further band opens, in rising order: one for each of the `cuts`."""

    def problems(self) -> list[InputProblem]:
        found = super().problems() + ([_not_rising("steps", self.steps)] if _falls(self.steps) else [])
        wanted = len(self.cuts) or max(1, len(self.steps))
        if len(self.steps) != wanted:
            what, remedy = "every band after the first needs its step", "curriculum.steps=[100,300] for three bands"
            found.append(InputProblem("steps", what, str(self.steps), f"{wanted} steps", remedy=remedy))
        elif self.override > wanted:
            found.append(InputProblem("override", "there is no such band", str(self.override), f"-1 to {wanted}"))
        return found


@dataclass
class Decaying:
    """Options of the curricula that forget."""

    decay: float = option(0.98, above=0, high=1)
    """Factor of the observed counts for each further step that samples."""


@configures("rlvr_exp.curriculum.success_rate.Learnability")
@dataclass
class Learnability(Decaying):
    """Tasks that are solved sometimes, by p(1 - p) of the observed success rate p."""

    unexplored: float = option(0.25, low=0, high=1)
    """Share of the tasks that have never been sampled before, while there are such tasks."""


@configures("rlvr_exp.curriculum.success_rate.Families")
@dataclass
class Families(Decaying):
    """Families of tasks by the share of their groups that teach, and in each the tasks picked least often."""


@configures("rlvr_exp.curriculum.success_rate.Band")
@dataclass
class Band:
    """A pool of tasks that are neither too hard nor too easy, refilled."""

    low: float = option(0.2, low=0, high=1)
    """A task with a lower success rate leaves the pool."""
    high: float = option(0.8, low=0, high=1)
    """A task with a higher success rate leaves the pool."""
    least_samples: int = option(8, low=1)
    """Completions with a verdict after which the success rate of a task is measured again."""
    size: int = option(128, low=1)
    """Tasks in the pool: at least as many as a step uses."""

    def problems(self) -> list[InputProblem]:
        if self.low <= self.high:
            return []
        return [InputProblem("low", "no task can stay", str(self.low), f"at most curriculum.high={self.high:g}")]


def _falls(values: list[float] | list[int]) -> bool:
    return any(first >= second for first, second in pairwise(values))


def _not_rising(name: str, values: list[float] | list[int]) -> InputProblem:
    return InputProblem(name, "must rise", str(values), "each larger than the one before")
