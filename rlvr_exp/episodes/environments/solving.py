"""A solver and a tester at work, once they are trained: the tester's tests choose among the solver's chains, and it criticises the
chosen one.

Nothing is learned. Where no program is run, no tests are written: the chosen chain is the first one.
"""

from collections.abc import Sequence
from dataclasses import replace

from rlvr_exp.episodes.environments.adversarial import Adversarial
from rlvr_exp.episodes.environments.reasoning import before
from rlvr_exp.episodes.environments.retry import too_long
from rlvr_exp.episodes.episode import Draws, Episode, Request
from rlvr_exp.tasks.base import Task


class Solving(Adversarial):
    """An `Adversarial` with all its sets of tests beside a single chain too, and critiques of the chosen chain alone, last."""

    def reset(self, task: Task, draws: Draws, samples: Sequence[int] = (0,)) -> Episode:
        """Without the data's wrong programs, which only measure tests."""
        begun = super().reset(task, draws, samples)
        return replace(begun, given=replace(begun.given, programs=()))

    def examples(self, episode: Episode, index: int) -> tuple[str, ...]:
        return ()  # They measure a chain, and choose nothing.

    def asks(self, episode: Episode) -> Sequence[Request]:
        return super().asks(episode) or [self._critique(episode, index) for index in self._uncriticised(episode)]

    def chosen(self, episode: Episode) -> int:
        """The last output of the chain whose program passes the largest share of the valid tests; among equals one with a program,
        then the first that was sampled."""
        matrix = self.matrix(episode)

        def worth(index: int) -> tuple[float, bool]:
            program = self.program(episode, index)
            return self.opinion(matrix, program) or 0.0, bool(program)

        return max(self.in_order(episode), key=worth)

    def _worth_a_critique(self, episode: Episode) -> list[int]:
        return []  # What is not chosen is not shown.

    def _uncriticised(self, episode: Episode) -> list[int]:
        """Outputs of the chosen chain, as far as there are any; a second attempt's first program is none of them."""
        if not (self.critiques and self.tests):
            return []
        end = self.chosen(episode)
        chain = [*reversed(before(episode, end)), end]
        latest = {self.stage_of(episode, index): index for index in chain}
        return [
            index for index in latest.values() if _is_there(episode, index) and not self.critiques_of(episode, index)
        ]

    def _count(self, episode: Episode) -> int:
        """Greedy sets are all the same."""
        return min(1, self.tests) if episode.draws.greedy else self.tests


def _is_there(episode: Episode, index: int) -> bool:
    one = episode.turns[index].completion
    return one.candidate.text is not None and not one.truncated and not too_long(one)
