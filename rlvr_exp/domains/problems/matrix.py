"""One problem's matrix of tests and programs, and the credits of a solver and a tester that follow from it.

Credits are in [0, 1] and depend on the matrix alone. `gated` is our own: discrimination only multiplies validity. The other variants
follow published methods. Where a method uses ground truth, the reference program takes its place, because hidden tests are in no
reward.

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
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from rlvr_exp.verifiers.base import Verdict


@dataclass(frozen=True)
class Suite:
    """A set of tests with what came of running it on a reference and on programs."""

    lines: int
    """Lines that were written: different tests, repeated ones, and lines that are none."""
    duplicates: int
    valid: tuple[bool, ...]
    """Of each different test, whether the reference passes it."""
    catches: Mapping[str, tuple[bool, ...]]
    """By program, which tests catch it; an invalid test catches nothing."""

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
        """Valid tests of all lines, so that what repeats a test or is none counts against it."""
        return self.held / self.lines if self.lines else 0.0

    @property
    def invalid(self) -> int:
        """Different tests that the reference fails, and lines that are none."""
        return self.lines - self.duplicates - self.held

    def catching(self, programs: Sequence[str]) -> list[bool]:
        """Of each different test, whether it catches any of these programs."""
        return [
            any(self.catches[one][place] for one in programs if one in self.catches) for place in range(len(self.valid))
        ]

    def caught(self, programs: Sequence[str]) -> float:
        """The share of programs, which are not none, that some test catches."""
        return fmean(any(self.catches.get(one, ())) for one in programs)

    def pass_rate(self, program: str) -> float:
        """The share of the valid tests, which are not none, that a program passes."""
        return 1 - sum(self.catches[program]) / self.held


@dataclass(frozen=True)
class Matrix:
    """All sets of a problem's episode against all its programs."""

    programs: tuple[str, ...]
    """Those of the episode."""
    past: tuple[str, ...]
    """Earlier wrong programs, which the sets ran against too."""
    suites: Mapping[int, Suite]
    """By turn."""
    book: Suite | None = None
    """Tests that failed earlier programs, run against those of this episode."""
    shown: Suite | None = None
    """Likewise the tests that the problem shows."""

    @cached_property
    def wrong(self) -> tuple[str, ...]:
        """Programs that some valid test catches: that is all that anybody here knows."""
        tests = [*self.suites.values(), *(one for one in (self.book, self.shown) if one)]
        return tuple(
            one for one in (*self.programs, *self.past) if any(any(each.catches.get(one, ())) for each in tests)
        )

    def pass_rate(self, program: str) -> float | None:
        """Of all valid tests that ran on a program the share that it passes; of the empty program 0. None: no test is valid."""
        return _rate([each for each in self.suites.values() if each.held], program)

    def book_rate(self, program: str) -> float | None:
        """Likewise, of the book's tests."""
        return _rate([self.book] if self.book and self.book.held else [], program)

    def all_rate(self, program: str) -> float | None:
        """Likewise, of these and the book's."""
        return _rate([each for each in (*self.suites.values(), self.book) if each and each.held], program)

    def shown_rate(self, program: str) -> float | None:
        """Likewise, of those that the problem shows."""
        return _rate([self.shown] if self.shown and self.shown.held else [], program)


def _rate(sets: Sequence[Suite], program: str) -> float | None:
    ran = [each for each in sets if program in each.catches] if program else sets
    held = sum(each.held for each in ran)
    if not held:
        return None
    return 1 - sum(sum(each.catches[program]) for each in ran) / held if program else 0.0


def solver_reward(variant: str, matrix: Matrix, program: str, power: float = 1.0) -> float | None:
    """Args:
    program: empty: the chain came to none.
    power: of the pass rate under `gated`.

    Returns:
        None where no test is valid, so that nothing is known of the program.
    """
    fresh, book = matrix.pass_rate(program), matrix.book_rate(program)
    if variant == "utrl":
        return None if fresh is None else 0.9 * fresh + 0.1 * bool(program)
    if variant == "code_a1":
        known = [one for one in (fresh, book) if one is not None]
        return fmean(known) if known else None
    return _gated_solver(matrix, program, power) if variant == "gated" else fresh


def _gated_solver(matrix: Matrix, program: str, power: float) -> float | None:
    shown = matrix.shown_rate(program)
    if not matrix.suites and shown is not None:
        return shown**power
    if shown is not None and shown < 1:
        return 0.0
    rate = matrix.all_rate(program)
    return None if rate is None else rate**power


def tester_reward(variant: str, matrix: Matrix, tests: Suite, penalty: float, count: int) -> float:
    """Of one set, where some program is wrong.

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
