"""How often the intervals over seeds and tasks hold the truth, measured: `python tests/runs/calibration_figures.py [REPEATS]`.

Two arms without a difference on average are simulated, paired by seed and task: the chance that a task passes is drawn from
Beta(0.6, 0.9), near 0 and 1 more often than between; under the second arm a share of the tasks has a chance of its own; each
seed moves the second arm by a normal deviation, most where a task is neither easy nor hard. Prints, for each number of
seeds and deviation between them, in how many of 100 studies no difference is found, and in how many of 100 repetitions the
smallest difference that a study reports is found when it is there. A second table has the former for the two simpler
intervals: Student's t over the seeds' means alone, and over the tasks' means alone.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from rlvr_exp.core.crossed import crossed, smallest_found

SEEDS, DEVIATIONS = (2, 3, 5, 10), (0.0, 0.01, 0.02, 0.03)
TASKS, MOVED = 400, 0.3
"""Tasks, and the share of them whose chance the second arm draws anew."""
SAMPLES = {"greedy": 1, "8 samples a task": 8}
PAIRS = 40
"""Repetitions with which each study is compared."""
EASY, HARD = 0.6, 0.9
SPREAD = EASY * HARD / ((EASY + HARD) * (EASY + HARD + 1))
"""Mean of p(1-p)."""


class Figures(NamedTuple):
    """In shares of the studies; the smallest difference is the median over them."""

    none_found: float
    smallest: float
    smallest_is_found: float


def studies(
    seeds: int, deviation: float, samples: int, repeats: int, rng: np.random.Generator
) -> Iterator[list[list[float]]]:
    """Differences by seed and task."""
    for _ in range(repeats):
        first = rng.beta(EASY, HARD, TASKS)
        second = np.where(rng.random(TASKS) < MOVED, rng.beta(EASY, HARD, TASKS), first)
        moved = rng.normal(0.0, deviation, (seeds, 1)) * second * (1 - second) / SPREAD
        chances = np.clip(second + moved, 0.0, 1.0)
        passed = rng.binomial(samples, chances) - rng.binomial(samples, first, (seeds, TASKS))
        yield (passed / samples).tolist()


def measured(seeds: int, deviation: float, samples: int, repeats: int) -> Figures:
    rng = np.random.default_rng([seeds, round(1000 * deviation), samples])
    found = [(crossed(one), smallest_found(one)) for one in studies(seeds, deviation, samples, repeats, rng)]
    means, halves = (np.array(each) for each in zip(*((one.mean, one.half) for one, _ in found), strict=True))
    smallest = np.array([one for _, one in found])
    shifts = range(1, min(PAIRS, repeats - 1) + 1)
    again = [np.abs(np.roll(means, by) + smallest) > np.roll(halves, by) for by in shifts]
    return Figures(float(np.mean(np.abs(means) <= halves)), float(np.median(smallest)), float(np.mean(again)))


def alone(seeds: int, deviation: float, samples: int, repeats: int) -> tuple[float, float]:
    """In what share of the same studies intervals over seeds alone and over tasks alone find no difference."""
    rng = np.random.default_rng([seeds, round(1000 * deviation), samples])
    held = [
        [_holds(values.mean(axis)) for axis in (1, 0)]
        for values in map(np.array, studies(seeds, deviation, samples, repeats, rng))
    ]
    over_seeds, over_tasks = np.mean(held, axis=0)
    return float(over_seeds), float(over_tasks)


def _holds(means: np.ndarray) -> bool:
    error = means.std(ddof=1) / np.sqrt(len(means))
    return bool(abs(means.mean()) <= stdtrit(len(means) - 1, 0.975) * error)


def others(repeats: int) -> None:
    print("\n| values | seeds | deviation between seeds, points | over seeds alone, % | over tasks alone, % |")
    print("|---|---|---|---|---|")
    for name, samples in SAMPLES.items():
        for seeds in SEEDS:
            for deviation in DEVIATIONS:
                found = " | ".join(f"{100 * one:.1f}" for one in alone(seeds, deviation, samples, repeats))
                print(f"| {name} | {seeds} | {100 * deviation:.0f} | {found} |", flush=True)


def main(repeats: int) -> None:
    print(
        "| values | seeds | deviation between seeds, points | no difference found, % | smallest difference, points | found, % |"
    )
    print("|---|---|---|---|---|---|")
    for name, samples in SAMPLES.items():
        for seeds in SEEDS:
            for deviation in DEVIATIONS:
                one = measured(seeds, deviation, samples, repeats)
                cells = [name, seeds, f"{100 * deviation:.0f}", *(f"{100 * value:.1f}" for value in one)]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    main(repeats)
    others(repeats)
