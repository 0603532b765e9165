"""Options of the `study` group: the runs that answer a question, and what makes their answer fair."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

from rlvr_exp.config.options import configures, option
from rlvr_exp.config.scales import SUCCESS, scale_of
from rlvr_exp.core.errors import InputProblem

OWN = ("run.dir=", "run.resume=", "seed=", "evaluation.remember=")
"""Words that a study says itself."""
FULL = "full"
"""The arm of an ablation from which nothing is removed."""
SIZE = "{size}"
BUDGETS = ("rollouts", "tokens", "seconds")


@dataclass
class Study:
    """What every study has."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Nodes of the configuration that it reads besides its own."""
    command: list[str] = field(default_factory=list)
    """The words that the commands of all runs begin with, such as +stage=grpo."""
    words: list[str] = field(default_factory=list)
    """Further words of every run's command, such as +experiment=quick or model=NAME."""
    seeds: list[int] = option([0, 1, 2], low=0)
    """Each arm is run with each of these seeds; arms are paired by them."""
    reuse: list[str] = field(default_factory=list)
    """Folders whose finished runs stand in for runs of the same options, data, initial weights and seed."""

    @property
    def rate(self) -> str:
        """The rate of evaluations that the answer is about; '' where it is about none."""
        return ""

    def problems(self) -> list[InputProblem]:
        return list(self._faults())

    def _faults(self) -> Iterator[InputProblem]:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            yield InputProblem(
                "seeds", "one run for each", str(self.seeds), "different seeds", "", "study.seeds=[0,1,2]"
            )
        for key, words in self._words():
            if own := [word for word in words if word.startswith(OWN)]:
                yield InputProblem(
                    key, "the study says that itself", own[0], "", "", "drop it; study.seeds=[...] for seeds"
                )

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        """The lists of words that it has, each with its key."""
        yield from (("command", self.command), ("words", self.words))


@dataclass
class Rated(Study):
    """Studies whose answer is about a metric of evaluations."""

    of_success: ClassVar[bool] = False
    """Whether it is in points of success, so that no other kind of metric can be answered about."""
    metric: str = SUCCESS[0]
    """The rate of an evaluation that the answer is about."""

    @property
    def rate(self) -> str:
        return self.metric

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if self.of_success and scale_of(self.metric).less_is_better:
            what = "this study is of a success rate, where more is better"
            yield InputProblem("metric", what, self.metric, ", ".join(SUCCESS))
        if self.metric.startswith("pass") and self.metric not in SUCCESS:
            allowed = f"{', '.join(SUCCESS)}, or a measure of the data by its name"
            yield InputProblem("metric", "no evaluation reports it", self.metric, allowed)


@dataclass
class Budgeted(Rated):
    """Studies that say first where their arms did not use up equally much."""

    equal: str = option("rollouts", choices=("none", *BUDGETS))
    """What the runs of all arms should have used up equally; where they have not, the answer begins with it."""


@dataclass
class Arms(Study):
    """Studies that compare arms which differ in words."""

    arms: dict[str, list[str]] = field(default_factory=dict)
    """The words in which each arm differs, by its name."""
    only: list[str] = field(default_factory=list)
    """Arms that are run; empty: all."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if not self.arms:
            yield InputProblem("arms", "no arm is named", remedy="study=ablation, or study.arms.NAME=[WORD, ...]")
        for name in self.arms:
            if not re.fullmatch(r"[\w.-]+", name) or name == FULL:
                what = f"no name of an arm: {FULL!r} is the one without a change"
                yield InputProblem(f"arms.{name}", what, name, "letters, digits, _, . and -")
        if unknown := sorted({*self.only} - {*self.arms}):
            yield InputProblem("only", "no such arm", ", ".join(unknown), ", ".join(self.arms))

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield from ((f"arms.{name}", words) for name, words in self.arms.items())


OTHER_WEIGHTS = ("model.from_scratch", "model.random_weights", "model.adapter.path")
"""Options that say where weights come from in another way than model.path."""


@dataclass
class Measured(Study):
    """Studies that train policies and then measure each of them by runs of their own."""

    measure: list[str] = field(default_factory=lambda: ["+stage=evaluate"])
    """The words that the commands of those runs begin with; `command` is of the trainings, `words` of both."""

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "measure", self.measure

    def _faults(self) -> Iterator[InputProblem]:
        """Else the first measurement would be refused, once its training is over."""
        yield from super()._faults()
        for key, words in (("command", self.command), ("words", self.words)):
            for word in words:
                name, _, value = word.lstrip("+").partition("=")
                if name in OTHER_WEIGHTS and value not in ("false", ""):
                    what = "each policy is measured by its checkpoint, as model.path, which this excludes"
                    remedy = "make the initial policy by a run of its own, then model.path=ITS_CHECKPOINT"
                    yield InputProblem(key, what, word, "", "", remedy)


@configures("rlvr_exp.studies.ablation.Ablation")
@dataclass
class Ablation(Budgeted, Arms):
    """What each component is worth: every arm removes or replaces one."""


@configures("rlvr_exp.studies.algorithms.Algorithms")
@dataclass
class Algorithms(Budgeted, Arms):
    """Which algorithm learns most from an equal budget: every arm names one, the first is the reference."""


@configures("rlvr_exp.studies.learning_curve.LearningCurve")
@dataclass
class LearningCurve(Rated):
    """How success grows with what a policy learns from."""

    of_success = True
    sizes: list[int] = option([], low=1)
    """Sizes of what is varied, rising; each is run with each seed."""
    varied: list[str] = field(default_factory=list)
    """The words that vary it: {size} stands for the size."""
    counted: str = ""
    """What the sizes count, in words."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if len(self.sizes) < 2 or any(later <= size for size, later in pairwise(self.sizes)):
            yield InputProblem("sizes", "a curve rises along them", str(self.sizes), "two or more, each above the last")
        if not any(SIZE in word for word in self.varied):
            remedy = 'study=learning_curve, or study.varied=["data.limit={size}"]'
            yield InputProblem("varied", f"no word has {SIZE}", str(self.varied), "", "", remedy)

    def _words(self) -> Iterator[tuple[str, list[str]]]:
        yield from super()._words()
        yield "varied", self.varied


@configures("rlvr_exp.studies.sample_complexity.SampleComplexity")
@dataclass
class SampleComplexity(Arms):
    """How many rollouts it takes to reach a success rate."""

    targets: list[float] = option([], above=0, high=1)
    """Success rates to reach, rising."""
    curve: str = "held_out/pass_at_1"
    """The metric of a run's rows that has to reach them; run.select.every_steps says how often the default is measured."""

    def _faults(self) -> Iterator[InputProblem]:
        yield from super()._faults()
        if not self.targets or any(later <= target for target, later in pairwise(self.targets)):
            yield InputProblem("targets", "they rise", str(self.targets), "one or more, each above the last")


@configures("rlvr_exp.studies.cross_validation.CrossValidation")
@dataclass
class CrossValidation(Rated):
    """How well a training does on tasks that it did not see: each of N runs a seed holds out another fold of the data."""

    of_success = True
    folds: int = option(5, low=2)
    """Runs of a seed; each learns from the other folds and is measured on its own."""
