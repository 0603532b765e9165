"""A trained solver and tester at work: the tester's tests choose among the solver's chains, and it criticises the chosen chain.

Nothing is learned. Without a verifier no tests are written, and the first chain is chosen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rlvr_exp.domains.problems.adversarial import Adversarial
from rlvr_exp.domains.problems.reasoning import InStages, before
from rlvr_exp.domains.problems.solution import SampledProgram, WrittenTest
from rlvr_exp.episodes.environment import Run
from rlvr_exp.episodes.environments.retry import too_long
from rlvr_exp.episodes.episode import Draws, Episode
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.completion import without_thoughts


class Solving(Adversarial):
    """An `Adversarial` with all its sets of tests beside a single chain too, and critiques of the chosen chain alone, last."""

    def reset(self, task: Task, draws: Draws, samples: Sequence[int] = (0,)) -> Episode:
        """Without the data's wrong programs, which only measure tests."""
        begun = super().reset(task, draws, samples)
        return replace(begun, given=replace(begun.given, programs=()))

    def examples(self, episode: Episode, index: int) -> tuple[str, ...]:
        return ()  # They measure a chain, and choose nothing.

    def run(self, episode: Episode) -> Run:
        yield from super().run(episode)
        yield [self._critique(episode, index) for index in self._uncriticised(episode)]

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
        found = []
        for index in latest.values():
            one = episode.turns[index].completion
            usable = one.candidate.text is not None and not one.truncated and not too_long(one)
            if usable and not self.critiques_of(episode, index):
                found.append(index)
        return found

    def _count(self, episode: Episode) -> int:
        """Greedy sets are all the same."""
        return min(1, self.tests) if episode.draws.greedy else self.tests


def parts_of(environment: InStages, episode: Episode, end: int, judged: bool) -> dict[str, Any]:
    """The fields of a `ProblemSolution` that its episode alone decides.

    Args:
        end: the last output of the chosen chain.
        judged: verdicts on programs are a verifier's.
    """
    order, drawn = environment.in_order(episode), Counter[str]()
    for turn in episode.turns:
        drawn[turn.role] += turn.completion.tokens
    found = {
        "sample": order.index(end),
        "stages": environment.chain(episode, end),
        "samples": tuple(sampled(environment, episode, index, judged) for index in order),
        "drawn": dict(drawn),
    }
    return found | (of_tester(environment, episode, end) if isinstance(environment, Solving) else {})


def sampled(environment: InStages, episode: Episode, index: int, judged: bool) -> SampledProgram:
    """What a chain that ends with a turn came to."""
    one = episode.turns[index].completion
    program = one.candidate.text if environment.is_code(episode, index) else None
    rate = None
    if judged and isinstance(environment, Solving):
        rate = environment.opinion(environment.matrix(episode), environment.program(episode, index))
    return SampledProgram(program, rate, one.verdict if judged else None)


def of_tester(environment: Solving, episode: Episode, end: int) -> dict[str, Any]:
    """What the tester says of the chain, and its tests with what they catch."""
    suites, matrix = environment.suites(episode), environment.matrix(episode)
    programs = [environment.program(episode, index) for index in environment.in_order(episode)]
    tests = []
    for place, index in enumerate(suites):
        suite, lines = matrix.suites.get(index), environment.lines(episode, index)
        for number, (line, holds) in enumerate(zip(lines, suite.valid if suite else (), strict=False)):
            columns = ((suite.catches.get(one) if suite and one else None) for one in programs)
            caught = (at for at, column in enumerate(columns) if column and column[number])
            tests.append(WrittenTest(line, place, holds, tuple(caught)))
    return {
        "critiques": critiques_of(environment, episode, end),
        "tests": tuple(tests),
        "written": tuple(episode.turns[index].completion.text for index in suites),
        "validity": fmean(one.validity for one in matrix.suites.values()) if matrix.suites else None,
    }


def critiques_of(environment: Solving, episode: Episode, end: int) -> dict[str, str]:
    """By stage, of the chain that ends with a turn."""
    chain = [*reversed(before(episode, end)), end]
    found = {
        environment.stage_of(episode, index): without_thoughts(episode.turns[place].completion.text).strip()
        for index in chain
        for place in environment.critiques_of(episode, index)
    }
    return {stage: text for stage, text in found.items() if text}
