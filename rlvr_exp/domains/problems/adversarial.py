"""A solver works a problem out in stages; a tester criticises its outputs and writes tests of its code; each learns from the
work of the other.

Every set of tests runs against every program of the problem, first against the reference: a test that the reference fails is invalid.
A program counts as wrong if a valid test catches it; the hidden tests decide success and enter no credit. Credits are in [0, 1]
(rlvr_exp.domains.problems.tested).

Under a schedule a step is spent on one stage of reasoning: the earlier outputs are sampled once for a problem, or for each output
of the stage, and the schedule selects the outputs that the solver learns from.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.problems import options
from rlvr_exp.domains.problems.options import SOLVER, TESTER, Schedule
from rlvr_exp.domains.problems.reasoning import with_equal_tasks
from rlvr_exp.domains.problems.tested import (
    OLD_TESTS,
    SHOWN_TESTS,
    Attempts,
    Given,
    Matrix,
    curves,
    measures,
    solver_reward,
    tester_reward,
)
from rlvr_exp.episodes.environment import Run
from rlvr_exp.episodes.environments import too_long
from rlvr_exp.episodes.episode import Draws, Episode, Judge, Sample
from rlvr_exp.episodes.types import PENDING, VERDICT_OF, Completion, RewardBreakdown
from rlvr_exp.tasks.base import Candidate, Domain, Task, WritesTests

MASKED = {"both": (SOLVER, TESTER), "solver": (SOLVER,), "none": ()}
ROLLOUT = "rollout"
"""The purpose of episodes that are trained on."""


class Adversarial(Attempts, options.Adversarial):
    """
    Args:
        schedule: the stage that a step of training is spent on; None: all.

    Raises:
        InputError: the domain's tasks have no stages, or it writes no tests.
    """

    name = "adversarial"
    roles = (SOLVER, TESTER)
    keeps_outputs = True

    def __init__(self, domain: Domain, schedule: Schedule | None = None, **given: Any):
        super().__init__(**given)
        self.work_on(domain)
        if not isinstance(domain, WritesTests):
            what = "no tests can be written for these tasks"
            raise InputError(InputProblem("environment", what, domain.name, "data=problems"))
        self.testing, self._schedule = domain, schedule
        self._book = Book(self.book)

    def domain(self, role: str) -> Domain:
        return self._domain if role == SOLVER else self.testing.tester

    def reset(self, task: Task, draws: Draws, samples: Sequence[int] = (0,)) -> Episode:
        trains = draws.purpose == ROLLOUT
        stage = self._schedule.stage(draws.place[0], len(self._domain.stages)) if self._schedule and trains else None
        shown = tuple(self.testing.shown_tests(task))
        old = self._book.tests(task.id) if self.tests and trains else ()
        tests = {OLD_TESTS: tuple(one for one in old if one not in shown), SHOWN_TESTS: shown}
        given = Given(stage, tests, self._book.programs(task.id) if trains else tuple(task.negatives))
        if trains and self._schedule and self._schedule.chains:
            step = draws.place[0]
            if SOLVER not in self._schedule.learning(step, self._schedule.learn or (TESTER, SOLVER)):  # It is frozen.
                samples = samples[: self._schedule.chains]
        begun = super().reset(task, draws, samples)
        begun.given = given
        return begun

    def run(self, episode: Episode) -> Run:
        """All stages of all chains with their critiques, tests of the programs, verdicts on the tests, the next attempts."""
        asked = [self._first(episode)]
        while asked:
            yield asked
            while onward := self._onward(episode):
                yield onward
            runs = dict(self._runs(episode))
            answers = yield [*runs.values()]
            episode.given.verdicts.update(zip(runs, answers, strict=True))
            yield [*self._write_tests(episode)]
            yield [*self._judge(episode)]
            asked = [*self.try_again(episode)]

    def _onward(self, episode: Episode) -> list[Sample]:
        return [*super()._onward(episode), *with_equal_tasks([*self._criticise(episode)])]

    @property
    def _shares(self) -> bool:
        """The outputs of a stage have one prefix."""
        return self._schedule is not None and self._schedule.prefix == "shared"

    def first_samples(self, episode: Episode) -> Sequence[int]:
        return episode.samples if episode.given.stage in (None, 0) or not self._shares else episode.samples[:1]

    def branches(self, episode: Episode, depth: int) -> Sequence[int]:
        return episode.samples if self._shares and depth == episode.given.stage else ()

    def _criticise(self, episode: Episode) -> Iterator[Sample]:
        """A critique of each output of the stage that a step is spent on."""
        for index in self._worth_a_critique(episode) if self.critiques and self.tests else ():
            if not self.critiques_of(episode, index):
                yield self._critique(episode, index)

    def _critique(self, episode: Episode, index: int) -> Sample:
        task = self.testing.critique(episode.task, self.stage_of(episode, index), self.output_of(episode, index))
        prompt, turn = self.testing.tester.task_prompt(task), episode.turns[index]
        return episode.ask(prompt, TESTER, parent=turn, task=task, path=("critique",), pending=True)

    def _worth_a_critique(self, episode: Episode) -> list[int]:
        """The outputs of the stage that a step is spent on. One chain alone is measured without, since nobody learns from it."""
        outputs = enumerate(episode.turns) if len(episode.samples) > 1 else ()
        return [
            index
            for index, turn in outputs
            if turn.role == SOLVER
            and self._is_due(episode, index)
            and (turn.completion.verdict == PENDING or self.is_code(episode, index))
        ]

    def _runs(self, episode: Episode) -> Iterator[tuple[Any, Judge]]:
        """By label: old and shown tests on the programs, and examples that were worked out before a program on that program."""
        given, programs = episode.given, self.programs(episode)
        for label, tests in given.tests.items():
            if tests and label not in given.verdicts and programs:
                task = self.testing.testing(episode.task, "", programs)
                yield label, Judge(SOLVER, task, Candidate("\n".join(tests)))
        pairs = dict.fromkeys((self.program(episode, end), self.examples(episode, end)) for end in self.ends(episode))
        for program, examples in pairs:
            if program and examples and (program, examples) not in given.verdicts:
                task = self.testing.holding(episode.task, program)
                yield (program, examples), Judge(SOLVER, task, Candidate("\n".join(examples)))

    def _write_tests(self, episode: Episode) -> Iterator[Sample]:
        programs, count = self.programs(episode), self._count(episode)
        if programs and count and not self.suites(episode):
            task = self.testing.testing(episode.task, programs[0], (*programs, *episode.given.programs))
            first = episode.samples[:1]
            keys = [episode.draws.key(episode.task, *first, number, label=TESTER) for number in range(count)]
            yield episode.ask(self.testing.tester.task_prompt(task), TESTER, task=task, keys=keys, pending=True)

    def _count(self, episode: Episode) -> int:
        """Sets of tests of an attempt: one if a single chain is measured."""
        return self.tests if len(episode.samples) > 1 else min(1, self.tests)

    def _judge(self, episode: Episode) -> Iterator[Judge]:
        """All sets of an attempt together: each program runs once."""
        written = {index: episode.turns[index].completion for index in self.suites(episode)}
        pending = {index: one for index, one in written.items() if one.verdict == PENDING}
        texts = [one.candidate.text or "" for one in pending.values()]
        for index, one in pending.items():
            yield Judge(TESTER, self.testing.together(one.task, texts), one.candidate, index)

    def result(self, episode: Episode) -> Completion:
        """The last program, with the measures of the episode beside its verdict."""
        done = super().result(episode)
        found = {**done.verdict.measures, **measures(self, episode)}
        return replace(done, verdict=replace(done.verdict, measures=found))

    def outcome(self, episode: Episode) -> Mapping[str, Any]:
        suites, matrix = self.suites(episode), self.matrix(episode)
        tests = episode.turns[suites[0]].completion if suites else None
        program = matrix.programs[0] if matrix.programs else ""
        return {
            **super().outcome(episode),
            "tests": tests.text if tests else "",
            "validity": tests.verdict.measures.get("validity") if tests else None,
            "pass_rate": self.opinion(matrix, program) if program else None,
        }

    def groups(self, episode: Episode) -> Sequence[Sequence[int]]:
        """The outputs of each stage, the sets of tests of each attempt, and the critiques of each stage."""
        found: dict[tuple[str, int], list[int]] = {}
        kinds = ((SOLVER, self._learned), (TESTER, self.suites), ("critique", self.critiques_in))
        for kind, turns in kinds:
            for index in turns(episode):
                if not too_long(episode.turns[index].completion):
                    found.setdefault((kind, episode.depth(index)), []).append(index)
        return list(found.values())

    def _learned(self, episode: Episode) -> list[int]:
        """The solver's outputs that are learned from: all, those of the step's stage, or those from this stage onward."""
        own = [index for index, turn in enumerate(episode.turns) if turn.role == SOLVER]
        outputs = self._schedule.outputs if self._schedule else "all"
        if outputs == "all" or (outputs == "onward" and episode.given.stage is None):
            return own
        if outputs == "onward":
            return [index for index in own if self._place(episode, index) >= episode.given.stage]
        return [index for index in own if self._is_due(episode, index)]

    def _is_due(self, episode: Episode, index: int) -> bool:
        """Whether an output is of the stage that a step is spent on; if it is spent on all, every output is."""
        return episode.given.stage in (None, self._place(episode, index))

    def _place(self, episode: Episode, index: int) -> int:
        """The place of an output's stage; further attempts are of the last one."""
        return min(episode.depth(index), len(self._domain.stages) - 1)

    def rewarded(self, episode: Episode) -> Sequence[int]:
        """None: `credit` follows the tester's tests, and the verdict of the hidden tests enters no credit."""
        return ()

    def credit(self, episode: Episode, rewards: Mapping[int, RewardBreakdown]) -> Mapping[int, RewardBreakdown]:
        """A program has the credit of the tests; every output before it has the mean of the programs that follow from it, partly
        replaced by its critique under `critique_weight`; a critique has its agreement with the tests, 0 if it says nothing."""
        matrix = self.matrix(episode)
        masked = () if self.teaches(episode, matrix) else MASKED[self.mask]
        programs = {index: self.program(episode, index) for index in range(len(episode.turns))}
        of_code = {
            index: None if self._is_unjudged(episode, index) else self.earned(matrix, programs[index])
            for index in {*self.ends(episode), *(index for index, program in programs.items() if program)}
        }

        def of_chains(index: int) -> float | None:
            known = [one for end in self.ends_after(episode, index) if (one := of_code[end]) is not None]
            return fmean(known) if known else None

        credited: dict[int, float | None] = {}
        for index, turn in enumerate(episode.turns):
            if turn.role == SOLVER:
                value = of_code[index] if index in of_code else of_chains(index)
                said = [self.says_right(episode, place) for place in self.critiques_of(episode, index)]
                if value is not None and self.critique_weight and (known := [one for one in said if one is not None]):
                    value = (1 - self.critique_weight) * value + self.critique_weight * fmean(known)
            elif self.is_critique(episode, index):
                value, right = of_chains(self.criticised(episode, index)), self.says_right(episode, index)
                if value is not None:
                    value = 0.0 if right is None else value if right else 1 - value
            elif index in matrix.suites and matrix.wrong:
                value = tester_reward(self.reward, matrix, matrix.suites[index], self.penalty, self.wanted_tests)
            else:
                value = None
            credited[index] = None if turn.role in masked else value
        return {index: RewardBreakdown(value) for index, value in credited.items()}

    def teaches(self, episode: Episode, matrix: Matrix) -> bool:
        """Whether some chains earn more than others, those that came to no program among them."""
        ends = self.ends(episode)
        without = any(not self.program(episode, end) and not self._is_unjudged(episode, end) for end in ends)
        programs = [*matrix.programs, *([""] if without else [])]
        earned = {self.earned(matrix, program) for program in programs} - {None}
        return bool(earned) and earned not in ({0.0}, {1.0})

    def _is_unjudged(self, episode: Episode, index: int) -> bool:
        """Whether the grader failed: the output is neither paid nor compared."""
        verdict = episode.turns[index].completion.verdict
        return verdict.outcome == "no_verdict" and verdict != PENDING

    def earned(self, matrix: Matrix, program: str) -> float | None:
        return solver_reward(self.reward, matrix, program, self.power)

    def remember(self, episodes: Sequence[Episode]) -> None:
        for episode in episodes if self.book else ():
            matrix = self.matrix(episode)
            failed: dict[str, bool] = {}
            for index, suite in matrix.suites.items():
                catching = suite.catching(matrix.programs)
                for line, holds, fails in zip(self.lines(episode, index), suite.valid, catching, strict=True):
                    if holds:
                        failed[line] = failed.get(line, False) or fails
            self._book.note(episode.task.id, failed, [one for one in matrix.wrong if one in matrix.programs])

    @property
    def parts(self) -> Mapping[str, Any]:
        return {"book": self._book} if self.book else {}

    def shown(self, episode: Episode, index: int) -> Completion:
        turn = episode.turns[index]
        if turn.role == TESTER and self.is_critique(episode, index):
            return replace(turn.completion, verdict=self.verdict_of_critique(episode, index))
        return turn.completion if turn.role == TESTER else super().shown(episode, index)

    def about(self, episode: Episode, index: int) -> Mapping[str, Any]:
        """The role, with the stage of an output or of the output that a critique is about. A tester's answers are judged by the
        programs of the episode: a program has its number among them, and a set of tests the programs that each test catches."""
        role, programs = episode.turns[index].role, self.programs(episode)
        if role == SOLVER:
            program = self.program(episode, index)
            numbered = {"program": programs.index(program)} if program else {}
            return {"role": role, **super().about(episode, index), **numbered}
        if self.is_critique(episode, index):
            of = {"critique": self.stage_of(episode, self.criticised(episode, index))}
        else:
            of = self._caught(episode, index, programs)
        return {"role": role, **of, VERDICT_OF: "programs"}

    def _caught(self, episode: Episode, index: int, programs: Sequence[str]) -> dict[str, Any]:
        """The tests of a set with the programs that each catches, and the number of programs that the set ran against."""
        suite = self.matrix(episode).suites.get(index)
        if suite is None:
            return {}
        tests = [
            {
                "text": line,
                "valid": valid,
                "catches": [k for k, one in enumerate(programs) if one in suite.catches and suite.catches[one][place]],
            }
            for place, (line, valid) in enumerate(zip(self.lines(episode, index), suite.valid, strict=True))
        ]
        return {"tests": tests, "programs": sum(one in suite.catches for one in programs)}

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        row = {**super().metrics(episodes), **curves(self, episodes)}
        return row | ({f"book/{name}": value for name, value in self._book.metrics().items()} if self.book else {})


class Book:
    """The book of mistakes: for each problem the tests that failed earlier programs, and the programs that tests caught.

    As in Code-A1 (arXiv:2603.15611): a test that a program fails counts one more, a test that all programs pass counts one less, and
    the most frequent tests are kept. The book is state of a training run and part of its checkpoints.

    Args:
        size: most tests, and most programs, that are kept of a problem.
    """

    def __init__(self, size: int):
        self.size = size
        self._tests: dict[str, dict[str, int]] = {}
        self._programs: dict[str, list[str]] = {}

    def tests(self, problem: str) -> tuple[str, ...]:
        return tuple(self._tests.get(problem, ()))

    def programs(self, problem: str) -> tuple[str, ...]:
        """The newest last."""
        return tuple(self._programs.get(problem, ()))

    def note(self, problem: str, failed: Mapping[str, bool], wrong: Sequence[str]) -> None:
        """Args:
        failed: of valid tests, whether some program failed them.
        wrong: programs that some valid test catches.
        """
        counts = dict(self._tests.get(problem, {}))
        for test, fails in failed.items():
            if fails or test in counts:
                counts[test] = counts.get(test, 0) + (1 if fails else -1)
        kept = sorted((one for one in counts.items() if one[1] > 0), key=lambda one: -one[1])[: self.size]
        programs = [one for one in self._programs.get(problem, []) if one not in wrong]
        self._tests[problem] = dict(kept)
        self._programs[problem] = [*programs, *wrong][-self.size :]

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"tests": self._tests, "programs": self._programs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._tests = {name: dict(each) for name, each in state["tests"].items()}
        self._programs = {name: list(each) for name, each in state["programs"].items()}

    def metrics(self) -> dict[str, float]:
        """Tests and programs in it."""
        return {
            "tests": float(sum(map(len, self._tests.values()))),
            "programs": float(sum(map(len, self._programs.values()))),
        }
