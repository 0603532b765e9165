"""Options of the studies of generalisation: solved examples in the prompt, tasks of other families and other sets, and what
success owes to the training tasks and to the seed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from rlvr_exp.config.options import configures, option
from rlvr_exp.config.study import Arms, Measured, Rated
from rlvr_exp.core.errors import InputProblem

GREEDY = "pass_at_1_greedy"


@configures("rlvr_exp.studies.few_shot.FewShot")
@dataclass
class FewShot(Rated):
    """How success depends on the number of solved examples that a prompt shows, for a policy that is not trained."""

    of_success = True
    shots: list[int] = option([0, 1, 2, 4, 8], low=0)
    """Numbers of solved examples (data.prompt.shots), rising."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if len(self.shots) < 2 or any(later <= one for one, later in pairwise(self.shots)):
            yield InputProblem("shots", "they rise", str(self.shots), "two or more, each above the last")


@configures("rlvr_exp.studies.zero_shot.ZeroShot")
@dataclass
class ZeroShot(Rated, Measured):
    """What a training gains on tasks of which nothing was in it: no task, no family, no program."""

    of_success = True
    target: list[str] = field(default_factory=lambda: ["evaluation.split=test_unseen"])
    """The words by which a run measures on the target: another split, or another set of data."""
    families: list[str] = field(default_factory=list)
    """Families that are held out of the training, whose tasks are then `test_unseen` (data.unseen_families); empty: those
    that the data hold out."""

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "target", self.target


@configures("rlvr_exp.studies.transfer.Transfer")
@dataclass
class Transfer(Rated, Measured, Arms):
    """How training on one group of tasks changes success on each other one: every arm is a group, by the words that choose
    its data."""

    of_success = True
    compared: int = option(400, low=1)
    """Training tasks of a group, the first of it, by which its likeness to the others is computed."""
    embed: list[str] = field(default_factory=list)
    """The words that the commands begin with which measure where the initial policy puts each group's tasks; empty: none."""

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "embed", self.embed

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if self.arms and len(self.only or self.arms) < 2:
            got, allowed = ", ".join(self.only or self.arms), "two groups and more"
            yield InputProblem(
                "arms", "there is no other group", got, allowed, "", "name more in study.arms or study.only"
            )


@configures("rlvr_exp.studies.bias_variance.BiasVariance")
@dataclass
class BiasVariance(Rated):
    """Which share of the failures is the training's bias and which its variance, and whether the training tasks or the seed
    make it vary: every arm trains on another bootstrap sample of the tasks, with each seed."""

    of_success = True
    metric: str = option(GREEDY, choices=(GREEDY,))
    """Success of greedy answers: 0 or 1 for a task."""
    resamples: int = option(3, low=2)
    """Bootstrap samples of the training tasks (data.resample)."""
