"""Options of the `study` group: the runs that answer a question, and what makes their answer fair."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem

OWN = ("run.dir=", "run.resume=", "seed=", "evaluation.remember=")
"""Words that a study says itself."""
FULL = "full"
"""The arm of an ablation from which nothing is removed."""
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
    metric: str = "pass_at_1"
    """The rate of an evaluation that the answer is about."""
    equal: str = option("rollouts", choices=("none", *BUDGETS))
    """What the runs of all arms should have used up equally; where they have not, the answer begins with it."""

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


@configures("rlvr_exp.studies.ablation.Ablation")
@dataclass
class Ablation(Arms):
    """What each component is worth: every arm removes or replaces one."""
