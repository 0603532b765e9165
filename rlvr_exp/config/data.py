"""Options of the groups `data`, `environment` and `curriculum`: which tasks there are, how many turns a task takes, and which
task comes next."""

import math
from dataclasses import dataclass, field
from itertools import pairwise

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Data:
    """Options of every domain's node."""

    path: str = ""
    """Folder or file of real data; empty: the embedded corpus."""
    limit: int = option(0, low=0)
    """The first N tasks of each split after a seeded shuffle; 0: all."""
    mix: dict[str, float] = field(default_factory=dict)
    """Shares of the sources in what is trained on, {SOURCE: SHARE}, which need not add up to 1; sources that are not named
    are not trained on. Empty: every task equally often."""
    folds: int = option(0, low=0, rare=True)
    """Parts of a cross-validation: one is the split `test`, the others are trained on; 0: the splits of the data."""
    fold: int = option(0, low=0, rare=True)
    """Which fold is held out, from 0."""
    folds_of: list[str] = option([], rare=True)
    """Splits whose tasks are in folds; the others stay as they are. Empty: train, practice and test, as far as they are
    there."""
    families: list[str] = field(default_factory=list)
    """Families whose tasks the splits keep; empty: all."""
    unseen_families: list[str] = option([], rare=True)
    """Families that no split keeps but `test_unseen`, which then holds their tasks and no others; empty: the splits of the
    data."""
    resample: int = option(0, low=0, rare=True)
    """Seed of a bootstrap: the tasks that are trained on are drawn with replacement, as many as there are; 0: each once."""

    @property
    def as_read(self) -> bool:
        """Whether the splits are those of the data."""
        return not (self.folds or self.families or self.unseen_families or self.resample)

    def problems(self) -> list[InputProblem]:
        return [*self._of_mix(), *self._of_folds(), *self._of_families()]

    def _of_families(self) -> list[InputProblem]:
        both = ", ".join(sorted({*self.families} & {*self.unseen_families}))
        what = "these families are to be kept and to be held out"
        return [InputProblem("unseen_families", what, both, remedy="name them in one of the two")] if both else []

    def _of_folds(self) -> list[InputProblem]:
        if self.folds == 1:
            return [
                InputProblem(
                    "folds", "one fold leaves nothing to train on", "1", "0, or 2 and more", "", "data.folds=5"
                )
            ]
        if not self.folds and (self.fold or self.folds_of):
            got = f"fold={self.fold}, folds_of={self.folds_of}"
            return [InputProblem("folds", "there are no folds", got, "2 and more", "", "data.folds=5, or drop it")]
        if self.folds and self.fold >= self.folds:
            return [InputProblem("fold", f"there are {self.folds} folds", str(self.fold), f"0 to {self.folds - 1}")]
        return []

    def _of_mix(self) -> list[InputProblem]:
        wrong = [f"{source}: {share}" for source, share in self.mix.items() if not (math.isfinite(share) and share > 0)]
        return [InputProblem("mix", "no share", ", ".join(wrong), "numbers above 0")] if wrong else []


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


SINGLE_TURN = "rlvr_exp.episodes.environments.single_turn.SingleTurn"


@configures(SINGLE_TURN)
@dataclass
class SingleTurn:
    """One prompt, one completion, one verdict."""


@configures("rlvr_exp.episodes.environments.retry.Retry")
@dataclass
class Retry:
    """A completion that does not pass is followed by another, whose prompt shows it with the verifier's feedback."""

    attempts: int = option(2, low=2, high=8)
    """The most completions of a branch, with the first."""


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
    """Difficulties at which bands end, rising; a task as difficult as a cut is below it. Empty: bands of equal size."""
    earlier: float = option(0.2, low=0, below=1)
    """Share of the tasks picked that comes from the bands before the current one."""
    window: int = option(64, low=1)
    """Groups of a band over which its success is measured, the newest."""
    override: int = option(-1, low=-1)
    """The band to be in, counted from 0, whatever was observed; -1: the curriculum decides. May change on a resumed run."""

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
    """Difficulty bands of equal size, where `cuts` names none; tasks of equal difficulty share a band."""
    threshold: float = option(0.7, low=0, below=1)
    """The next band opens when success over a full window is above."""


@configures("rlvr_exp.curriculum.difficulty_bands.Manual")
@dataclass
class Manual(Bands):
    """Difficulty bands that open at steps of your choice."""

    steps: list[int] = option([], low=1)
    """Steps after which the second and each further band opens, rising: one for each of the `cuts`."""

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
    """Tasks that are solved sometimes, by p(1 - p) of what was observed."""

    unexplored: float = option(0.25, low=0, high=1)
    """Share of the tasks picked that were never observed, while there are any."""


@configures("rlvr_exp.curriculum.success_rate.Families")
@dataclass
class Families(Decaying):
    """Families of tasks by the share of their groups that teach, and in each the tasks picked least often."""


@configures("rlvr_exp.curriculum.success_rate.Band")
@dataclass
class Band:
    """A pool of tasks that are neither too hard nor too easy, refilled."""

    low: float = option(0.2, low=0, high=1)
    """A task with a smaller success rate leaves the pool."""
    high: float = option(0.8, low=0, high=1)
    """A task with a larger success rate leaves the pool."""
    least_samples: int = option(8, low=1)
    """Completions with a verdict over which a task's success rate is measured, each time anew."""
    size: int = option(128, low=1)
    """Tasks in the pool; at least as many as a step picks."""

    def problems(self) -> list[InputProblem]:
        if self.low <= self.high:
            return []
        return [InputProblem("low", "no task can stay", str(self.low), f"at most curriculum.high={self.high:g}")]


def _falls(values: list[float] | list[int]) -> bool:
    return any(first >= second for first, second in pairwise(values))


def _not_rising(name: str, values: list[float] | list[int]) -> InputProblem:
    return InputProblem(name, "must rise", str(values), "each larger than the one before")
