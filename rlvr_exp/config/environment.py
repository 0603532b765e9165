"""Options of the `environment` group: how many turns an episode has, and who takes them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem

VARIANTS = ("gated", "seed", "utrl", "code_a1", "cure")
"""Rewards of a solver and a tester."""

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


REASONING = "rlvr_exp.episodes.environments.reasoning.Reasoning"


@configures(REASONING)
@dataclass
class Reasoning:
    """A problem worked out in the stages of `data.reasoning`, each shown to those after it; success is that of the code."""

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        yield from without_reasoning(config.data)


ADVERSARIAL = "rlvr_exp.episodes.environments.adversarial.Adversarial"


@configures(ADVERSARIAL)
@dataclass
class Adversarial:
    """A solver works a problem out in stages, a tester criticises its outputs and writes tests of its code; each is paid by what the
    other does. Two roles."""

    tests: int = option(8, low=0)
    """Sets of tests sampled of one attempt in training; 0: no tester, the solver is paid by the tests that the problem shows."""
    shown_first: bool = True
    """Reward gated: a program that fails a test that the problem shows earns nothing; passing these alone is worth nothing either, but
    for a solver without a tester, which has no others."""
    wanted_tests: int = option(3, low=1)
    """Tests that a set should have: reward utrl and code_a1 pay up to so many."""
    attempts: int = option(1, low=1, high=8)
    """Attempts, each after the first with what was wrong: the solver is told which valid tests failed, the tester which of its tests
    were invalid, repeated others or caught nothing."""
    reward: str = option("gated", choices=VARIANTS)
    """What the roles earn (rlvr_exp.episodes.minimax): ours, or as seed, utrl, code_a1 or cure have it."""
    power: float = option(1.0, low=1)
    """Reward gated: the power of the pass rate that a program earns; above 1 it is worth little to pass some of the tests."""
    penalty: float = option(0.1, low=0, high=1)
    """Reward gated: what a set loses where all its tests are invalid, repeated or catch nothing; a share of it for a share."""
    mask: str = option("solver", choices=("both", "solver", "none"))
    """Who does not learn from problems whose programs all earn everything, or all nothing: what everybody or nobody solves teaches
    nothing. solver: where nobody solves a problem a tester still learns which of its tests are valid."""
    book: int = option(8, low=0)
    """Tests that failed earlier programs of a problem, and such programs, that it keeps for the next time; 0: none."""
    critiques: bool = True
    """The tester criticises the solver's outputs, and is paid where it agrees with the tests."""
    critique_weight: float = option(0.0, low=0, high=1)
    """Share of an output's credit that is its critique's opinion; the rest is what its code achieves."""

    def problems(self) -> list[InputProblem]:
        return list(self._unread())

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        yield from without_reasoning(config.data)
        if reads("optimizer") and not reads("schedule"):
            what, remedy = "a solver and a tester are paid by each other", "+stage=adversarial"
            yield InputProblem("environment", what, f"adversarial, with +stage={config.stage}", "", "", remedy)

    def _unread(self) -> Iterator[InputProblem]:
        """Options that have no effect next to the others."""
        reads = {
            "wanted_tests": (self.reward in ("utrl", "code_a1"), "environment.reward=utrl"),
            "penalty": (self.reward == "gated", "environment.reward=gated"),
            "shown_first": (self.reward == "gated", "environment.reward=gated"),
            "power": (self.reward == "gated", "environment.reward=gated"),
            "critique_weight": (self.critiques, "environment.critiques=true"),
        }
        for name in ("reward", "attempts", "critiques", "book", "shown_first"):
            reads[name] = (self.tests > 0, "environment.tests=8")
        for name, (read, remedy) in reads.items():
            if not read and getattr(self, name) != getattr(Adversarial, name):
                got = str(getattr(self, name))
                yield InputProblem(name, "has no effect here", got, "its default", "", f"{remedy}, or drop it")


def without_reasoning(data: Any) -> Iterator[InputProblem]:
    """The problem of data whose tasks have no stages of reasoning."""
    if not hasattr(data, "reasoning"):
        what, target = "has no stages of reasoning", getattr(data, "_target_", "")
        remedy = "data=problems, which reads the rows of data=code that have a solution; or environment=single_turn"
        yield InputProblem("data", what, target, "data=problems", "", remedy)
