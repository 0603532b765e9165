"""Options of +stage=self_play: what a round samples, what it makes of it, and what is imitated."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.algorithm import Drawing
from rlvr_exp.config.options import option
from rlvr_exp.config.parallel import SHARDING
from rlvr_exp.core.errors import InputProblem

HINDSIGHT = ("relabelled", "transferred")
"""Kinds of rows whose task was made from a program."""
KINDS = (*HINDSIGHT, "correct", "refined")
"""Kinds of self-made rows; the rest of a batch is gold."""


@dataclass
class SelfPlay(Drawing):
    """Rounds in which a policy samples answers, makes tasks and golds of them, and imitates those beside the data's own."""

    rounds: int = option(2, low=1)
    """Rounds; algorithm.max_steps is divided among them."""
    weights: str = option("last", choices=("last", "base"))
    """What a round trains on from: the last round's weights; or those that the run began with, with a new optimizer and a
    schedule of its own."""
    tasks: int = option(6000, low=0)
    """Tasks sampled in a round, which the curriculum picks; 0: as many as there are."""
    samples: int = option(4, low=1)
    """Completions sampled of each task."""
    refine: int = option(0, low=0)
    """Failed answers refined for each task that no sample solved: chosen one by one by Thompson sampling, prompted with the
    verifier's words; 0: none."""
    relabelled: float = option(0.35, low=0, high=1)
    """Share of imitated rows that are programs of the policy with the task that they solve in hindsight; 0: none are made."""
    transferred: float = option(0.1, low=0, high=1)
    """The same of golds tried on other tasks; 0: none are tried."""
    correct: float = option(0.0, low=0, high=1)
    """Share of imitated rows that are answers of the policy that passed, other than the gold."""
    refined: float = option(0.0, low=0, high=1)
    """Share of imitated rows that show a failed answer with the verifier's words, and one that passed after it."""
    golds_alone: float = option(0.25, low=0, high=1)
    """Share of the run's updates, its last ones, that imitate the data's golds alone; no matter where the data have none."""
    per_behaviour: int = option(1, low=0)
    """Most rows of one behaviour on one task in all rounds; 0: any number."""
    per_family: int = option(400, low=0)
    """Most rows of a kind from tasks of one family in a round; 0: any number."""
    per_round: int = option(20_000, low=0)
    """Most rows of a kind in a round; 0: any number."""
    choose: str = option("diverse", choices=("diverse", "best", "random"))
    """Which of a task's rows stay where `per_task` is fewer: half the best and half the most different; the best; any."""
    per_task: int = option(4, low=0)
    """Most rows of a kind from one task in a round; 0: any number."""
    solutions: str = ""
    """The store of solutions, which runs share; empty: solutions.sqlite in the run directory."""

    def problems(self) -> list[InputProblem]:
        found = self.drawing_problems()
        shares = {kind: getattr(self, kind) for kind in KINDS}
        if sum(shares.values()) > 1:
            got = " + ".join(f"{kind} {share:g}" for kind, share in shares.items())
            found.append(InputProblem("relabelled", "shares of rows add up to more than 1", got, "a sum of at most 1"))
        return [*found, *self._unread()]

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        steps = getattr(config.algorithm, "max_steps", self.rounds)
        if steps < self.rounds:
            what, remedy = "a round would have no update", f"algorithm.max_steps={self.rounds} or more"
            got = f"{self.rounds} rounds, {steps} steps"
            yield InputProblem("self_play.rounds", what, got, "at most algorithm.max_steps", "", remedy)
        if self.from_base and config.parallel.strategy in SHARDING:
            what = "DeepSpeed holds weights of its own, which no round can go back from"
            yield InputProblem("self_play.weights", what, "base", "last under ZeRO", "", "self_play.weights=last")

    def _unread(self) -> Iterator[InputProblem]:
        """Options that have no effect next to the others."""
        if not self.per_task and self.choose != SelfPlay.choose:
            what, remedy = "has no effect here", "self_play.per_task=4, or drop it"
            yield InputProblem("choose", what, self.choose, "its default", "", remedy)

    @property
    def without_golds(self) -> bool:
        """There is something to imitate where the data have no golds."""
        return self.relabelled > 0 or self.correct > 0

    @property
    def from_base(self) -> bool:
        """Each round trains from the weights that the run began with."""
        return self.weights == "base"
