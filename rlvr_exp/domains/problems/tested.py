"""Programs and tests of an episode: the matrix of tests and programs, the credits that follow, further attempts, and measures.

All sets of tests run against all programs: `Suite` is the result of one set, `Matrix` that of a whole episode. Credits are in [0, 1]
and depend on the matrix alone. `gated` is our own: discrimination only multiplies validity. The other variants follow published
methods. Where a method uses ground truth, the reference program takes its place, because hidden tests are in no reward.

- `gated`: the solver earns the pass rate on all valid tests, with those of the book, to a power. A program that fails a test of the
  problem's text earns 0; without a tester the pass rate on these tests counts. The tester earns validity times the share of wrong
  programs, current and past, that its valid tests catch. `penalty` times the share of its lines that are invalid, repeat a test or
  catch no program is subtracted.
- `seed`: the solver earns the pass rate on valid tests. The tester earns 1 minus the mean pass rate of the programs on its own valid
  tests, minus half its share of invalid lines.
- `utrl` (arXiv:2508.21107, as coded): solver 0.9 pass rate + 0.1 format. Tester 0.1 format + 0.85 share of programs failed by some
  valid test + 0.05 valid tests of max(`count`, different tests).
- `code_a1` (arXiv:2603.15611, as coded): the solver earns the mean of the pass rates on new valid tests and on those of the book.
  The tester earns the mean of validity = clip(min(valid / count, 1 - invalid / count)) and attack = failures / count; with a book
  attack = (new failure rate - failure rate of the book + 1) / 2.
- `cure` (arXiv:2506.03136, as coded): the solver earns the pass rate on valid tests. The tester earns the mean over its tests: a valid
  test counts the share of wrong programs that it catches, an invalid one minus the share that passes it. [-1, 1] maps to [0, 1].

Measures of single episodes in an evaluation are in [0, 1], besides success:

| measure | is |
| --- | --- |
| `tests_pass_rate`, `tests_failure_rate` | the share of the tester's valid tests that the program passes, and fails |
| `validity`, `duplicates` | of the lines of tests |
| `mutation_score` | the share of the problem's known wrong programs that the valid tests catch |
| `distinct_behaviour` | different columns of these programs caught, of the valid tests |
| `distinct_shape` | different tests once numbers and texts are masked, of the different tests |
| `coherence`, `coherence_STAGE` | the agreement of outputs with the next ones, up to the output of STAGE |

Measures of a later attempt end with `_attempt_N`. Two outputs agree by the share of checkable items that they have in common: names of
the problem (its function and arguments) and literals (numbers, quoted texts). The last output is also compared with the examples
that were worked out before it and run against it.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import Any

from rlvr_exp.domains.problems.options import SOLVER, TESTER
from rlvr_exp.domains.problems.reasoning import InStages
from rlvr_exp.episodes.episode import Episode, Sample
from rlvr_exp.episodes.types import Completion
from rlvr_exp.tasks.base import WritesTests
from rlvr_exp.verifiers.base import Verdict


@dataclass(frozen=True)
class Suite:
    """A set of tests and its results on a reference and on programs."""

    lines: int
    """Lines that were written: different tests, repeated ones, and lines that are none."""
    duplicates: int
    valid: tuple[bool, ...]
    """Of each different test, whether the reference passes it."""
    catches: Mapping[str, tuple[bool, ...]]
    """By program, whether each test catches it; an invalid test catches nothing."""

    @classmethod
    def of(cls, verdict: Verdict, programs: Sequence[str]) -> "Suite":
        """From a verdict of tests on these programs, with its outputs (rlvr_exp.verifiers.python_tests)."""
        valid, catches = verdict.outputs or ((), ())
        lines = verdict.total or 0
        duplicates = round(lines * verdict.measures.get("duplicates", 0.0))
        return cls(lines, duplicates, tuple(valid), dict(zip(programs, map(tuple, catches), strict=False)))

    @property
    def held(self) -> int:
        """Valid tests."""
        return sum(self.valid)

    @property
    def validity(self) -> float:
        """Valid tests of all lines: a repeated test and a line that is no test count against it."""
        return self.held / self.lines if self.lines else 0.0

    @property
    def invalid(self) -> int:
        """Different tests that the reference fails, and lines that are none."""
        return self.lines - self.duplicates - self.held

    def catching(self, programs: Sequence[str]) -> list[bool]:
        """Of each different test, whether it catches any of these programs."""
        columns = [self.catches[one] for one in programs if one in self.catches]
        return [any(column[place] for column in columns) for place in range(len(self.valid))]

    def caught(self, programs: Sequence[str]) -> float:
        """The share of at least one program that some test catches."""
        return fmean(any(self.catches.get(one, ())) for one in programs)

    def pass_rate(self, program: str) -> float:
        """The share of at least one valid test that a program passes."""
        return 1 - sum(self.catches[program]) / self.held


@dataclass(frozen=True)
class Matrix:
    """All sets of a problem's episode against all its programs."""

    programs: tuple[str, ...]
    """Those of the episode."""
    past: tuple[str, ...]
    """Earlier wrong programs; the sets ran against them, too."""
    suites: Mapping[int, Suite]
    """By turn."""
    book: Suite | None = None
    """Tests that failed earlier programs, run against those of this episode."""
    shown: Suite | None = None
    """Likewise the tests that the problem shows."""

    @cached_property
    def wrong(self) -> tuple[str, ...]:
        """Programs that some valid test catches: no other knowledge of wrong programs is used here."""
        tests = [*self.suites.values(), *filter(None, (self.book, self.shown))]
        return tuple(
            one for one in (*self.programs, *self.past) if any(any(each.catches.get(one, ())) for each in tests)
        )

    def pass_rate(self, program: str) -> float | None:
        """The share of all valid tests run on a program that it passes; of the empty program 0. None: no test is valid."""
        return _rate(self.suites.values(), program)

    def book_rate(self, program: str) -> float | None:
        """Likewise, of the book's tests."""
        return _rate([self.book], program)

    def all_rate(self, program: str) -> float | None:
        """Likewise, of the tester's and the book's tests."""
        return _rate([*self.suites.values(), self.book], program)

    def shown_rate(self, program: str) -> float | None:
        """Likewise, of the tests in the problem's text."""
        return _rate([self.shown], program)


def _rate(suites: Collection[Suite | None], program: str) -> float | None:
    ran = [each for each in suites if each and each.held and (not program or program in each.catches)]
    held = sum(each.held for each in ran)
    if not held:
        return None
    return 1 - sum(sum(each.catches[program]) for each in ran) / held if program else 0.0


def solver_reward(variant: str, matrix: Matrix, program: str, power: float = 1.0) -> float | None:
    """The credit of a program; None if no test is valid, so that nothing is known of it.

    Args:
        program: empty: the chain has no program.
        power: of the pass rate under `gated`.
    """
    fresh = matrix.pass_rate(program)
    if variant == "utrl":
        return None if fresh is None else 0.9 * fresh + 0.1 * bool(program)
    if variant == "code_a1":
        known = [one for one in (fresh, matrix.book_rate(program)) if one is not None]
        return fmean(known) if known else None
    if variant != "gated":
        return fresh
    shown = matrix.shown_rate(program)
    if not matrix.suites and shown is not None:
        return shown**power
    if shown is not None and shown < 1:
        return 0.0
    rate = matrix.all_rate(program)
    return None if rate is None else rate**power


def tester_reward(variant: str, matrix: Matrix, tests: Suite, penalty: float, count: int) -> float:
    """The credit of one set if some program is wrong.

    Args:
        count: tests that a set should have.
    """
    return min(1.0, max(0.0, _TESTER[variant](matrix, tests, penalty, count)))


def _gated(matrix: Matrix, tests: Suite, penalty: float, count: int) -> float:
    if not tests.lines:
        return 0.0
    useful = sum(tests.catching(matrix.wrong))
    return tests.validity * tests.caught(matrix.wrong) - penalty * (1 - useful / tests.lines)


def _seed(matrix: Matrix, tests: Suite, penalty: float, count: int) -> float:
    if not tests.held:
        return 0.0
    passed = fmean(tests.pass_rate(one) for one in matrix.programs if one in tests.catches)
    return 1 - passed - 0.5 * (1 - tests.validity)


def _utrl(matrix: Matrix, tests: Suite, penalty: float, count: int) -> float:
    different = len(tests.valid)
    ran = [one for one in matrix.programs if one in tests.catches]
    caught = tests.caught(ran) if ran else 0.0
    return 0.1 * bool(different) + 0.85 * caught + 0.05 * tests.held / max(count, different)


def _code_a1(matrix: Matrix, tests: Suite, penalty: float, count: int) -> float:
    validity = min(1.0, max(0.0, min(tests.held / count, 1 - tests.invalid / count)))
    ran = [one for one in matrix.programs if one in tests.catches]
    if not ran or not tests.held:
        return 0.5 * validity
    fails = fmean(sum(tests.catches[one]) for one in ran)
    attack = min(1.0, fails / count)
    if matrix.book is not None and matrix.book.held:
        old = fmean(1 - (matrix.book_rate(one) or 0.0) for one in ran)
        attack = (fails / tests.held - old + 1) / 2
    return 0.5 * validity + 0.5 * attack


def _cure(matrix: Matrix, tests: Suite, penalty: float, count: int) -> float:
    """An invalid test catches nothing here, so that all wrong programs count as passing it."""
    if not tests.lines or not matrix.wrong:
        return 0.0
    caught = [
        fmean(tests.catches.get(one, (False,) * len(tests.valid))[place] for one in matrix.wrong)
        for place, holds in enumerate(tests.valid)
        if holds
    ]
    signed = [*caught, *[-1.0] * tests.invalid, *[0.0] * tests.duplicates]
    return (fmean(signed) + 1) / 2


_TESTER: dict[str, Callable[[Matrix, Suite, float, int], float]] = {
    "gated": _gated,
    "seed": _seed,
    "utrl": _utrl,
    "code_a1": _code_a1,
    "cure": _cure,
}

OLD_TESTS, SHOWN_TESTS = "old tests", "shown tests"


@dataclass(frozen=True)
class Given:
    """The state that an episode begins with."""

    stage: int | None = None
    """The place of the stage of reasoning that is trained; None: all are."""
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests that run besides those of the tester: `OLD_TESTS`, which failed earlier programs, and `SHOWN_TESTS`."""
    programs: tuple[str, ...] = ()
    """Known wrong programs of the problem: earlier ones in training, those of the data in a measurement."""
    verdicts: dict[Any, Verdict] = field(default_factory=dict)
    """By label, verdicts of runs that are no turn: these tests, and pairs of a program and the examples before it."""


class Tested(InStages):
    """Reads episodes of a solver and a tester: programs, sets of tests, critiques."""

    solver = SOLVER
    testing: WritesTests

    def programs(self, episode: Episode, earlier_than: int | None = None) -> tuple[str, ...]:
        """The different programs of an episode, in the order of their chains; those before a turn."""
        found = (self.program(episode, index) for index in range(len(episode.turns))[:earlier_than])
        return tuple(dict.fromkeys(filter(None, found)))

    def program(self, episode: Episode, index: int) -> str:
        """The program of a turn; empty if it cannot run: an answer that was cut or refused, or an earlier stage."""
        one = episode.turns[index].completion
        runs = not one.truncated and one.verdict.outcome in ("passed", "failed") and one.verdict.bucket != "parse"
        return one.candidate.text or "" if runs and self.is_code(episode, index) else ""

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
        """The different tests of a turn, as its verdict counts them; none of an answer that was cut: it is not run."""
        one = episode.turns[index].completion
        return self.testing.tests_in(one.candidate.text or "", one.task) if one.verdict.outputs else ()

    @abstractmethod
    def teaches(self, episode: Episode, matrix: Matrix) -> bool:
        """Whether the programs of an episode differ in their credit: a problem that every program or none solves teaches nothing."""

    @abstractmethod
    def earned(self, matrix: Matrix, program: str) -> float | None:
        """The credit of a program, in [0, 1]; of the empty program that of a chain without one. None: nothing is known of it."""

    @staticmethod
    def opinion(matrix: Matrix, program: str) -> float | None:
        """The pass rate of a program; without a tester on the tests that the problem shows. None: no test is valid."""
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
        """The share of these examples that the program fulfils; None: there are none, or they did not run."""
        verdict = episode.given.verdicts.get((self.program(episode, index), self.examples(episode, index)))
        holds = verdict.outputs[0] if verdict is not None and verdict.outputs else ()
        return fmean(holds) if holds else None

    def says_right(self, episode: Episode, index: int) -> bool | None:
        """Whether a critique says that an output is right; None: it says neither."""
        one = episode.turns[index].completion
        return None if one.truncated else self.testing.approves(one.text)

    def verdict_of_critique(self, episode: Episode, index: int) -> Verdict:
        """Whether a critique agrees with the tests: an output is right if all programs that follow from it earn everything."""
        matrix, about = self.matrix(episode), self.criticised(episode, index)
        earned = [self.earned(matrix, self.program(episode, end)) for end in self.ends_after(episode, about)]
        known = [one for one in earned if one is not None]
        if not known:
            return Verdict("no_verdict", log="no test is valid")
        if self.says_right(episode, index) == (min(known) == 1.0):
            return Verdict("passed", passed=1, total=1)
        return Verdict("failed", "wrong_answer", passed=0, total=1, log="the tests say otherwise")


class Attempts(Tested):
    """Further attempts: programs that fail valid tests are written again, and tests of the new programs, each with the faults of the
    last attempt in the prompt."""

    attempts: int
    """The most attempts of a chain, with the first."""

    def try_again(self, episode: Episode) -> Iterator[Sample]:
        """New programs in place of those that fail valid tests, then tests of the new programs."""
        done, attempts = self.attempts_of(episode), self.attempts_of(episode, TESTER)
        if done > attempts > 0:
            yield from self._test_again(episode)
        elif 0 < done < self.attempts:
            yield from self._solve_again(episode)

    def _solve_again(self, episode: Episode) -> Iterator[Sample]:
        matrix = self.matrix(episode)
        for index in self.ends(episode):
            turn, program = episode.turns[index], self.program(episode, index)
            failed = dict.fromkeys(  # The valid tests that catch the program.
                line
                for place, suite in matrix.suites.items()
                for line, caught in zip(self.lines(episode, place), suite.catches.get(program, ()), strict=False)
                if caught
            )
            if failed:
                chain = {**self.chain(episode, index), **self.testing.failure_feedback(program, [*failed])}
                task = self._domain.at_stage(episode.task, self._domain.stages[-1], chain)
                yield episode.ask(self._domain.task_prompt(task), SOLVER, parent=turn, task=task, path=("again",))

    def _test_again(self, episode: Episode) -> Iterator[Sample]:
        programs, matrix = self.programs(episode), self.matrix(episode)
        latest = [index for index in self.ends(episode) if self.program(episode, index)]
        attempt = self.program(episode, latest[0])
        for index in self.suites(episode):
            if self.attempt_of(episode, index) + 1 == self.attempts_of(episode, TESTER):
                turn = episode.turns[index]
                words = self.testing.tests_feedback(turn.completion.text, self._faults(episode, index, matrix))
                task = self.testing.testing(episode.task, attempt, (*programs, *episode.given.programs), words)
                prompt = self.testing.tester.task_prompt(task)
                yield episode.ask(prompt, TESTER, parent=turn, task=task, path=("again",), pending=True)

    def _faults(self, episode: Episode, index: int, matrix: Matrix) -> dict[str, list[str]]:
        suite = matrix.suites.get(index)
        if suite is None:
            return {}
        one: Completion = episode.turns[index].completion
        tests = [*zip(self.lines(episode, index), suite.valid, suite.catching(matrix.wrong), strict=True)]
        return {
            "invalid": [line for line, holds, _ in tests if not holds],
            "caught nothing": [line for line, holds, catches in tests if holds and not catches],
            "repeated": list(self.testing.repeated_tests(one.candidate.text or "", one.task)),
        }


MASKED = re.compile(r"'[^'\n]*'|\d+")
WORD = re.compile(r"[A-Za-z_]\w*")
LITERAL = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|(?<![\w.])-?\d+(?:\.\d+)?")
NUMBERING = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)


def measures(of: Tested, episode: Episode) -> dict[str, float]:
    """The measures of an episode with one chain."""
    matrix, wrong = of.matrix(episode), episode.given.programs
    found = coherence(of, episode, of.ends(episode)[-1])
    for index, suite in matrix.suites.items():
        own = {"validity": suite.validity, "duplicates": suite.duplicates / max(1, suite.lines)}
        if wrong:
            own["mutation_score"] = suite.caught(wrong)
        if wrong and suite.held:
            behaviours = zip(*(suite.catches[one] for one in wrong), suite.valid, strict=True)
            own["distinct_behaviour"] = len({one for one in behaviours if one[-1]}) / suite.held
        if lines := of.lines(episode, index):
            own["distinct_shape"] = len({MASKED.sub("_", line) for line in lines}) / len(lines)
        programs = of.programs(episode, index)
        if suite.held and programs:
            own["tests_pass_rate"] = suite.pass_rate(programs[-1])
            own["tests_failure_rate"] = 1 - own["tests_pass_rate"]
        attempt = of.attempt_of(episode, index)
        ending = f"_attempt_{attempt + 1}" if attempt else ""
        found |= {name + ending: value for name, value in own.items()}
    return found


def coherence(of: Tested, episode: Episode, end: int) -> dict[str, float]:
    """The agreement of the outputs of a turn's chain, in all and by stage; empty for a chain of one output."""
    chain = of.chain(episode, end)
    agreed = by_stage([*chain.values()], of.testing.names(episode.task), of.examples_held(episode, end))
    of_stages = {f"coherence_{stage}": value for stage, value in zip([*chain][1:], agreed, strict=True)}
    return {"coherence": fmean(agreed), **of_stages} if agreed else {}


def by_stage(outputs: Sequence[str], names: Collection[str], examples: float | None = None) -> list[float]:
    """The agreement of each output with the next.

    Args:
        examples: the share of the worked examples that the last output, a program, fulfils; None: none is worked out.
    """
    found = [agreement(first, second, names) for first, second in pairwise(outputs)]
    if found and examples is not None:
        found[-1] = fmean([found[-1], examples])
    return found


def agreement(earlier: str, later: str, names: Collection[str]) -> float:
    """The overlap coefficient of the checkable items of two outputs, in [0, 1]."""
    first, second = checkable(earlier, names), checkable(later, names)
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def checkable(output: str, names: Collection[str]) -> set[str]:
    """The names of a problem and the literals in an output; the numbers of its lines are none."""
    text = NUMBERING.sub("", output)
    found = {word for word in WORD.findall(text) if word in names}
    return found | {one.replace('"', "'") for one in LITERAL.findall(text)}


def curves(of: Tested, episodes: Sequence[Episode]) -> dict[str, float]:
    """The metrics of a training step. The pass rate and the validity are 0 if no test is valid."""
    matrices = [of.matrix(episode) for episode in episodes]
    suites = [(suite, matrix) for matrix in matrices for suite in matrix.suites.values()]
    row = {"adversarial/validity": fmean(suite.validity for suite, _ in suites) if suites else 0.0}
    if suites:
        row["adversarial/duplicates"] = fmean(suite.duplicates / max(1, suite.lines) for suite, _ in suites)
    if caught := [suite.caught(matrix.wrong) for suite, matrix in suites if matrix.wrong]:
        row["adversarial/discrimination"] = fmean(caught)

    critiques = [of.verdict_of_critique(episode, index) for episode in episodes for index in of.critiques_in(episode)]
    if judged := [one.outcome == "passed" for one in critiques if one.outcome != "no_verdict"]:
        row["adversarial/critiques_right"] = fmean(judged)  # They agree with the tests.

    chains = [coherence(of, episode, end) for episode in episodes for end in of.ends(episode)]
    for name in dict.fromkeys(name for chain in chains for name in chain):
        row[f"adversarial/{name}"] = fmean(one[name] for one in chains if name in one)

    passed, hidden = [], []  # Shares of valid and of hidden tests, of programs on which valid tests ran.
    for episode, matrix in zip(episodes, matrices, strict=True):
        for index in of.ends(episode):
            verdict = episode.turns[index].completion.verdict
            rate = of.opinion(matrix, of.program(episode, index)) if of.is_code(episode, index) else None
            if rate is not None and verdict.outcome != "no_verdict":
                passed.append(rate)
                hidden.append(verdict.score)
    row["adversarial/pass_rate"] = fmean(passed) if passed else 0.0
    if passed:
        row["adversarial/hidden"] = fmean(hidden)
        row["adversarial/gap"] = row["adversarial/pass_rate"] - row["adversarial/hidden"]
    if episodes:
        row["adversarial/teaching"] = fmean(of.teaches(*pair) for pair in zip(episodes, matrices, strict=True))
        if (stage := episodes[0].given.stage) is not None:
            row["adversarial/stage"] = stage + 1.0
    return row
