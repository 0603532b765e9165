"""A solver works a problem out in stages; a tester writes tests of its code; each learns from what the other does.

Every set of tests runs against every program of the problem, first against the reference: a test that the reference fails is invalid.
A program is wrong, as far as anybody here knows, where a valid test catches it; the hidden tests decide success and enter no
credit.

Credits, in [0, 1]. A solver's program: the share of all valid tests that it passes, 0 where there is none to run; every output
before it has the same. A tester's set: its validity (valid tests of all lines) times the share of the wrong programs that it catches.
Where no test is valid nothing is learned of programs, where no program is wrong nothing of tests: both would reward noise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rlvr_exp.config import environment as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.environments.reasoning import InStages, before
from rlvr_exp.episodes.environments.retry import too_long
from rlvr_exp.episodes.episode import Episode, Judge, Request, Sample, Turn
from rlvr_exp.episodes.types import PENDING, Completion, RewardBreakdown
from rlvr_exp.tasks.base import Domain, WritesTests

SOLVER, TESTER = "solver", "tester"


@dataclass(frozen=True)
class Matrix:
    """Sets of tests against programs, of one problem."""

    sets: tuple[int, ...]
    """Turns of the tester that have a verdict on tests."""
    programs: tuple[str, ...]
    valid: tuple[int, ...]
    """Valid tests of each set."""
    caught: tuple[tuple[int, ...], ...]
    """Of each set, how many of its tests catch each program."""

    @property
    def wrong(self) -> list[int]:
        """Programs that some test catches."""
        return [place for place in range(len(self.programs)) if any(each[place] for each in self.caught)]

    def pass_rate(self, program: str) -> float | None:
        """Of all valid tests the share that a program passes; None: no test is valid."""
        if not sum(self.valid):
            return None
        if program not in self.programs:
            return 0.0
        place = self.programs.index(program)
        return 1 - sum(each[place] for each in self.caught) / sum(self.valid)


class Adversarial(InStages, options.Adversarial):
    """
    Raises:
        InputError: the domain's tasks have no stages, or it writes no tests.
    """

    name = "adversarial"
    roles = (SOLVER, TESTER)
    solver = SOLVER
    keeps_outputs = True

    def __init__(self, domain: Domain, **given: Any):
        super().__init__(**given)
        self.work_on(domain)
        if not isinstance(domain, WritesTests):
            what = "no tests can be written for these tasks"
            raise InputError(InputProblem("environment", what, domain.name, "data=problems"))
        self._testing = domain

    def domain(self, role: str) -> Domain:
        return self._domain if role == SOLVER else self._testing.tester

    # What is asked for, in this order: all stages of all chains, tests of one attempt, verdicts on the tests.

    def asks(self, episode: Episode) -> Sequence[Request]:
        return [*super().asks(episode)] or [*self._write_tests(episode)] or [*self._judge(episode)]

    def _write_tests(self, episode: Episode) -> Iterator[Sample]:
        programs = self.programs(episode)
        if programs and not self._sets(episode):
            task = self._testing.testing(episode.task, programs[0], programs)
            keys = tuple(
                episode.draws.key(episode.task, *episode.samples[:1], number, label=TESTER)
                for number in range(self._count(episode))
            )
            yield Sample(TESTER, task, self._testing.tester.task_prompt(task), keys, pending=True)

    def _count(self, episode: Episode) -> int:
        """Sets of tests of an attempt: one where a single chain is measured."""
        return self.tests if len(episode.samples) > 1 else 1

    def _judge(self, episode: Episode) -> Iterator[Judge]:
        for index in self._sets(episode):
            turn = episode.turns[index]
            if turn.completion.verdict == PENDING:
                yield Judge(TESTER, turn.completion.task, turn.completion.candidate, index)

    def programs(self, episode: Episode) -> tuple[str, ...]:
        """The different programs of an episode, in the order of their chains."""
        codes = (episode.turns[index].completion for index in self.ends(episode) if self.is_code(episode, index))
        return tuple(dict.fromkeys(one.candidate.text for one in codes if _runs(one) and one.candidate.text))

    def _sets(self, episode: Episode) -> list[int]:
        return [index for index, turn in enumerate(episode.turns) if turn.role == TESTER]

    # What an episode comes to.

    def matrix(self, episode: Episode) -> Matrix:
        judged = [index for index in self._sets(episode) if episode.turns[index].completion.verdict.outputs]
        outputs = [episode.turns[index].completion.verdict.outputs or ((), ()) for index in judged]
        valid = tuple(sum(holds) for holds, _ in outputs)
        caught = tuple(tuple(map(sum, catches)) for _, catches in outputs)
        return Matrix(tuple(judged), self.programs(episode), valid, caught)

    def outcome(self, episode: Episode) -> Mapping[str, Any]:
        sets, matrix = self._sets(episode), self.matrix(episode)
        tests = episode.turns[sets[0]].completion if sets else None
        measures = dict(tests.verdict.measures) if tests else {}
        program = matrix.programs[0] if matrix.programs else ""
        return {
            **super().outcome(episode),
            "tests": tests.text if tests else "",
            "validity": measures.get("validity"),
            "pass_rate": matrix.pass_rate(program) if program else None,
        }

    # Who learns from what.

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """The outputs of each stage, and the sets of tests of the attempt."""
        sets = [index for index in self._sets(episode) if not too_long(episode.turns[index].completion)]
        return [*super().groups(episode), *([sets] if sets else [])]

    def rewarded(self, episode: Episode) -> Sequence[int]:
        """None: who is credited with what follows from the tests, and the verdict of the hidden ones is never paid."""
        return ()

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        matrix = self.matrix(episode)
        credited: dict[int, RewardBreakdown] = {}
        for index in self.ends(episode):
            value = RewardBreakdown(self._of_chain(episode, index, matrix))
            credited |= dict.fromkeys([index, *before(episode, index)], value)
        for index in self._sets(episode):
            credited[index] = RewardBreakdown(self._of_tests(episode.turns[index], index, matrix))
        return credited

    def _of_chain(self, episode: Episode, index: int, matrix: Matrix) -> float | None:
        program = episode.turns[index].completion.candidate.text
        return matrix.pass_rate(program if self.is_code(episode, index) and program else "")

    def _of_tests(self, turn: Turn, index: int, matrix: Matrix) -> float | None:
        if not matrix.wrong or turn.completion.verdict.outcome == "no_verdict":
            return None
        if index not in matrix.sets:
            return 0.0
        caught = matrix.caught[matrix.sets.index(index)]
        share = sum(bool(caught[place]) for place in matrix.wrong) / len(matrix.wrong)
        return turn.completion.verdict.measures["validity"] * share

    def shown(self, episode: Episode, index: int) -> Completion:
        turn = episode.turns[index]
        return turn.completion if turn.role == TESTER else super().shown(episode, index)

    def about(self, episode: Episode, index: int) -> Mapping[str, Any]:
        role = episode.turns[index].role
        return {"role": role} if role == TESTER else {"role": role, **super().about(episode, index)}

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """What solvers pass and testers write, and how far the tests' opinion of programs is above the hidden tests'."""
        row = super().metrics(episodes)
        tests = [episode.turns[index].completion.verdict for episode in episodes for index in self._sets(episode)]
        if tests:
            row["adversarial/validity"] = fmean(one.measures.get("validity", 0.0) for one in tests)
            row["adversarial/duplicates"] = fmean(one.measures.get("duplicates", 0.0) for one in tests)
        rates = [pair for episode in episodes for pair in self._rates(episode)]
        if rates:
            row["adversarial/pass_rate"] = fmean(rate for rate, _ in rates)
            row["adversarial/hidden"] = fmean(hidden for _, hidden in rates)
            row["adversarial/gap"] = row["adversarial/pass_rate"] - row["adversarial/hidden"]
        return row

    def _rates(self, episode: Episode) -> Iterator[tuple[float, float]]:
        """Of each program the share of the valid tests that it passes, and of the hidden ones."""
        matrix = self.matrix(episode)
        for index in self.ends(episode):
            one = episode.turns[index].completion
            rate = matrix.pass_rate(one.candidate.text or "") if self.is_code(episode, index) else None
            if rate is not None and one.verdict.outcome != "no_verdict":
                yield rate, one.verdict.score


def _runs(one: Completion) -> bool:
    """Whether there is a program to run: no answer that was cut, and none that was refused."""
    return not one.truncated and one.verdict.outcome in ("passed", "failed") and one.verdict.bucket != "parse"
