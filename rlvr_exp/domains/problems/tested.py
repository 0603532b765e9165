"""Episodes of programs and tests: roles, attempts, and verdicts of tests on programs."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rlvr_exp.domains.problems.matrix import Matrix, Suite
from rlvr_exp.domains.problems.reasoning import InStages
from rlvr_exp.episodes.episode import Episode, Sample
from rlvr_exp.episodes.types import Completion
from rlvr_exp.tasks.base import WritesTests
from rlvr_exp.verifiers.base import Verdict

SOLVER, TESTER = "solver", "tester"
OLD_TESTS, SHOWN_TESTS = "old tests", "shown tests"


@dataclass(frozen=True)
class Given:
    """What an episode begins with."""

    stage: int | None = None
    """The place of the stage of reasoning that is trained; None: all are."""
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests that run besides those of the tester: `OLD_TESTS`, which failed earlier programs, and `SHOWN_TESTS`."""
    programs: tuple[str, ...] = ()
    """Wrong programs that are known of the problem: earlier ones in training, those of the data where it is measured."""
    verdicts: dict[Any, Verdict] = field(default_factory=dict)
    """By label, of what ran and is no turn: these tests, and pairs of a program and the examples before it."""


class Tested(InStages):
    """What is read from episodes of a solver and a tester: programs, sets of tests, critiques."""

    solver = SOLVER
    testing: WritesTests

    def programs(self, episode: Episode, earlier_than: int | None = None) -> tuple[str, ...]:
        """The different programs of an episode, in the order of their chains; those before a turn."""
        found = (self.program(episode, index) for index in range(len(episode.turns))[:earlier_than])
        return tuple(dict.fromkeys(filter(None, found)))

    def program(self, episode: Episode, index: int) -> str:
        """The program of a turn; empty where it is none that can run."""
        one = episode.turns[index].completion
        return one.candidate.text or "" if self.is_code(episode, index) and _runs(one) else ""

    def suites(self, episode: Episode) -> list[int]:
        """The tester's sets of tests."""
        written = (index for index, turn in enumerate(episode.turns) if turn.role == TESTER)
        return [index for index in written if not self.is_critique(episode, index)]

    def critiques_in(self, episode: Episode) -> list[int]:
        written = (index for index, turn in enumerate(episode.turns) if turn.role == TESTER)
        return [index for index in written if self.is_critique(episode, index)]

    def critiques_of(self, episode: Episode, index: int) -> list[int]:
        return [place for place in episode.children(index) if episode.turns[place].role == TESTER]

    @staticmethod
    def criticised(episode: Episode, index: int) -> int:
        """The output that a critique is about."""
        return episode.turns[index].parent or 0

    @staticmethod
    def is_critique(episode: Episode, index: int) -> bool:
        parent = episode.turns[index].parent
        return parent is not None and episode.turns[parent].role == SOLVER

    def attempt_of(self, episode: Episode, index: int) -> int:
        """Attempts before that of a program, or of a set of tests."""
        depth = episode.depth(index)
        return depth if episode.turns[index].role == TESTER else depth + 1 - len(self._domain.stages)

    def attempts_of(self, episode: Episode, role: str = SOLVER) -> int:
        """Attempts so far: programs written, or tests of them judged."""
        places = [index for index in range(len(episode.turns)) if self.program(episode, index)]
        found = places if role == SOLVER else self.suites(episode)
        return max((self.attempt_of(episode, index) + 1 for index in found), default=0)

    def lines(self, episode: Episode, index: int) -> Sequence[str]:
        """The different tests of a turn, as its verdict counts them; none of an answer that was cut, which is not run."""
        one = episode.turns[index].completion
        if not one.verdict.outputs:
            return ()
        return self.testing.tests_in(one.candidate.text or "", one.task)

    @abstractmethod
    def teaches(self, episode: Episode, matrix: Matrix) -> bool:
        """Whether the programs of an episode differ in what they earn: problems that everybody or nobody solves teach nothing."""

    @abstractmethod
    def earned(self, matrix: Matrix, program: str) -> float | None:
        """What a program earns, in [0, 1]; of the empty program what a chain without one does. None: nothing is known of it."""

    @staticmethod
    def opinion(matrix: Matrix, program: str) -> float | None:
        """What the tests say of a program; without a tester those that the problem shows. None: nothing."""
        rate = matrix.all_rate(program)
        return matrix.shown_rate(program) if rate is None and not matrix.suites else rate

    def matrix(self, episode: Episode) -> Matrix:
        past = tuple(one for one in episode.given.programs if one not in self.programs(episode))
        suites = {}
        for index in self.suites(episode):
            one = episode.turns[index].completion
            if one.verdict.outcome not in ("no_verdict", "pending"):
                suites[index] = Suite.of(one.verdict, (*self.programs(episode, index), *episode.given.programs))
        old, shown = (self._ran(episode, label) for label in (OLD_TESTS, SHOWN_TESTS))
        return Matrix(self.programs(episode), past, suites, old, shown)

    def _ran(self, episode: Episode, label: str) -> Suite | None:
        """These tests run once, on the programs of first attempts."""
        verdict = episode.given.verdicts.get(label)
        if verdict is None or verdict.outcome == "no_verdict":
            return None
        first = self.suites(episode)[:1]
        return Suite.of(verdict, self.programs(episode, first[0] if first else None))

    def examples(self, episode: Episode, index: int) -> tuple[str, ...]:
        """Examples that are worked out in the chain of a program."""
        earlier = [text for stage, text in self.chain(episode, index).items() if stage != self._domain.stages[-1]]
        return tuple(dict.fromkeys(line for text in earlier for line in self.testing.tests_in(text, episode.task)))

    def examples_held(self, episode: Episode, index: int) -> float | None:
        """The share of these that the program fulfils; None where there are none, or they did not run."""
        verdict = episode.given.verdicts.get((self.program(episode, index), self.examples(episode, index)))
        holds = verdict.outputs[0] if verdict is not None and verdict.outputs else ()
        return fmean(holds) if holds else None

    def says_right(self, episode: Episode, index: int) -> bool | None:
        """Whether a critique says that an output is right; None: it says neither."""
        one = episode.turns[index].completion
        return None if one.truncated else self.testing.approves(one.text)

    def verdict_of_critique(self, episode: Episode, index: int) -> Verdict:
        """Whether it says of the output what the tests say of the programs that follow: that it is right where they earn all."""
        matrix, about = self.matrix(episode), self.criticised(episode, index)
        earned = [self.earned(matrix, self.program(episode, end)) for end in self.ends_after(episode, about)]
        known = [one for one in earned if one is not None]
        if not known:
            return Verdict("no_verdict", log="no test is valid")
        said = self.says_right(episode, index)
        if said == (min(known) == 1.0):
            return Verdict("passed", passed=1, total=1)
        return Verdict("failed", "wrong_answer", passed=0, total=1, log="the tests say otherwise")


def _runs(one: Completion) -> bool:
    """Whether there is a program to run: no answer that was cut, and none that was refused."""
    return not one.truncated and one.verdict.outcome in ("passed", "failed") and one.verdict.bucket != "parse"


class Attempts(Tested):
    """Further attempts: programs that fail valid tests are written again, and tests of the new programs, each with the faults of the
    last attempt in the prompt."""

    attempts: int
    """The most attempts of a chain, with the first."""

    def try_again(self, episode: Episode) -> Iterator[Sample]:
        """First programs that fail valid tests are written anew, then tests of what came of them."""
        done, attempts = self.attempts_of(episode), self.attempts_of(episode, TESTER)
        if done > attempts > 0:
            yield from self._test_again(episode)
        elif 0 < done < self.attempts:
            yield from self._solve_again(episode)

    def _solve_again(self, episode: Episode) -> Iterator[Sample]:
        matrix = self.matrix(episode)
        for index in self.ends(episode):
            turn = episode.turns[index]
            program = self.program(episode, index)
            if failed := self._failed(episode, matrix, program):
                chain = {**self.chain(episode, index), **self.testing.failure_feedback(program, failed)}
                task = self._domain.at_stage(episode.task, self._domain.stages[-1], chain)
                yield episode.ask(self._domain.task_prompt(task), SOLVER, parent=turn, task=task, path=("again",))

    def _failed(self, episode: Episode, matrix: Matrix, program: str) -> list[str]:
        """The valid tests that catch a program."""
        found: dict[str, None] = {}
        for index, suite in matrix.suites.items():
            catches = suite.catches.get(program, ())
            found |= dict.fromkeys(
                line for line, catch in zip(self.lines(episode, index), catches, strict=False) if catch
            )
        return list(found)

    def _test_again(self, episode: Episode) -> Iterator[Sample]:
        programs, matrix = self.programs(episode), self.matrix(episode)
        latest = [index for index in self.ends(episode) if self.program(episode, index)]
        attempt = self.program(episode, latest[0])
        for index in self.suites(episode):
            if self.attempt_of(episode, index) + 1 == self.attempts_of(episode, TESTER):
                turn, suite = episode.turns[index], matrix.suites.get(index)
                words = self.testing.tests_feedback(turn.completion.text, self._faults(episode, index, suite, matrix))
                task = self.testing.testing(episode.task, attempt, (*programs, *episode.given.programs), words)
                prompt = self.testing.tester.task_prompt(task)
                yield episode.ask(prompt, TESTER, parent=turn, task=task, path=("again",), pending=True)

    def _faults(self, episode: Episode, index: int, suite: Suite | None, matrix: Matrix) -> dict[str, list[str]]:
        if suite is None:
            return {}
        one = episode.turns[index].completion
        lines, catching = self.lines(episode, index), suite.catching(matrix.wrong)
        return {
            "invalid": [line for line, holds in zip(lines, suite.valid, strict=True) if not holds],
            "caught nothing": [
                line for line, holds, any_caught in zip(lines, suite.valid, catching, strict=True) if holds > any_caught
            ],
            "repeated": list(self.testing.repeated_tests(one.candidate.text or "", one.task)),
        }
