"""Further attempts: programs that fail valid tests are written anew, and tests of what came of them, each told what was wrong."""

from collections.abc import Iterator

from rlvr_exp.episodes.environments.tested import SOLVER, TESTER, Tested
from rlvr_exp.episodes.episode import Episode, Sample
from rlvr_exp.episodes.matrix import Matrix, Suite


class Attempts(Tested):
    """`attempts`: of a chain, with the first."""

    attempts: int

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
                keys = (None if turn.key is None else (*turn.key, "again"),)
                yield Sample(SOLVER, task, self._domain.task_prompt(task), keys, index)

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
                keys = (None if turn.key is None else (*turn.key, "again"),)
                yield Sample(TESTER, task, self.testing.tester.task_prompt(task), keys, index, pending=True)

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
