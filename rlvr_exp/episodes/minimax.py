"""What a solver and a tester earn from each other, in [0, 1]: pure functions of one problem's matrix of tests and programs.

`gated` is ours: discrimination only ever multiplies validity. The others are documented variants; where they use ground truth, the
reference takes its place, since hidden tests are in no reward.

- `gated`: solver, the pass rate on all valid tests, old ones of the book among them, to a power; nothing where a test that the problem
  shows fails, and without a tester the pass rate on those. Tester, validity times the share of wrong
  programs, current and past, that its valid tests catch, less `penalty` times the share of its lines that are invalid, repeat a test
  or catch no program.
- `seed`: solver, the pass rate on valid tests. Tester, one less the mean pass rate of the programs on its own valid tests, less half
  its share of invalid lines.
- `utrl` (arXiv:2508.21107, as coded): solver 0.9 pass rate + 0.1 format. Tester 0.1 format + 0.85 share of programs failed by some
  valid test + 0.05 valid tests of max(`count`, different tests).
- `code_a1` (arXiv:2603.15611, as coded): solver, the mean of the pass rates on new valid tests and on the book's. Tester, the mean of
  validity = clip(min(valid / count, 1 - invalid / count)) and attack = failures / count, or with a book
  (new failure rate - the book's + 1) / 2.
- `cure` (arXiv:2506.03136, as coded): solver, the pass rate on valid tests. Tester, the mean over its tests of the share of wrong
  programs that a valid one catches, or of minus the share that passes an invalid one, from [-1, 1] to [0, 1].
"""

from collections.abc import Callable
from statistics import fmean

from rlvr_exp.episodes.matrix import Matrix, Suite


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
