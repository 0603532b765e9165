"""Options of the `curriculum` group: which task comes next."""

from dataclasses import dataclass, field
from itertools import pairwise

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


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


@configures("rlvr_exp.curriculum.success_rate.Learnability")
@dataclass
class Learnability:
    """Tasks that are solved sometimes, by p(1 - p) of what was observed."""

    unexplored: float = option(0.25, low=0, high=1)
    """Share of the tasks picked that were never observed, while there are any."""
    decay: float = option(0.98, above=0, high=1)
    """Factor of a task's observed successes and failures for each further step that samples."""


@configures("rlvr_exp.curriculum.success_rate.Families")
@dataclass
class Families:
    """Families of tasks by the share of their groups that teach, and in each the tasks picked least often."""

    decay: float = option(0.98, above=0, high=1)
    """Factor of a family's observed groups for each further step that samples."""


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
