"""What a run used up to learn: completions, their tokens, seconds of its steps. Arms are compared fairly where it is equal."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.studies.study import Run

TOLERANCE = 0.05
"""Budgets that differ by a smaller share count as equal."""
SAMPLED, LENGTH, SECONDS = "samples/sampled", "tokens/completion_mean", "time/step"
SEEN = "tokens/seen"
"""Of imitation: tokens that were learned from up to a row, their prompts included."""
EVALUATE_MORE_OFTEN = "an algorithm.eval_every_steps that is smaller and divides the steps, or more steps"
"""What helps where a run was not measured in time, or not at its end."""


def used(directory: Path, kind: str) -> float:
    """By the run's rows of metrics, of all of its roles; 0 where none were counted. Tokens of imitation, which samples
    nothing, are those that it saw."""
    rows = read_metrics(directory)
    if kind == "seconds":
        return max(seconds_until(rows), default=0.0)
    if kind == "tokens" and not any(name.endswith(SAMPLED) for row in rows for name in row):
        return max((row.get(SEEN) or 0.0 for row in rows), default=0.0)
    return sum(sampled(row, kind) for row in rows)


def seconds_until(rows: Sequence[Row]) -> Iterator[float]:
    """The seconds of all steps up to each row, of which one may stand for several steps. A row of measurements alone is in
    the midst of the steps of the next that has seconds."""
    rates, rate = list[float](), 0.0
    for row in reversed(rows):
        rate = row.get(SECONDS) or rate
        rates.append(rate)
    total, before = 0.0, 0
    for row, rate in zip(rows, reversed(rates), strict=True):
        step = int(row["step"] or 0)
        total, before = total + rate * (step - before), step
        yield total


def metric_at(directory: Path, metric: str, kind: str, amount: float) -> float | None:
    """A metric of a run's rows when it had used up so many seconds, or seen so many tokens of imitation: in proportion between
    the measurements around it, else runs that are measured seldom would have older ones. None where the run was not measured
    before it, or not from then on.
    """
    rows = read_metrics(directory)
    spent = [*(seconds_until(rows) if kind == "seconds" else _tokens_until(rows))]
    found = [(at, row[metric]) for at, row in zip(spent, rows, strict=True) if metric in row]
    if not found or not found[0][0] <= amount <= found[-1][0]:
        return None
    return float(np.interp(amount, [at for at, _ in found], [value for _, value in found]))


def _tokens_until(rows: Sequence[Row]) -> Iterator[float]:
    """The tokens of imitation up to each row, some of which have measurements alone."""
    known = {0: 0.0} | {int(row["step"] or 0): row[SEEN] or 0.0 for row in rows if SEEN in row}
    yield from (float(np.interp(int(row["step"] or 0), [*known], [*known.values()])) for row in rows)


def sampled(row: Row, kind: str = "rollouts") -> float:
    """Completions of the row, or their tokens; names of several roles end alike."""
    roles = [name.removesuffix(SAMPLED) for name in row if name.endswith(SAMPLED)]
    return sum(
        (row[role + SAMPLED] or 0.0) * ((row.get(role + LENGTH) or 0.0) if kind == "tokens" else 1.0) for role in roles
    )


def budgets(runs: Sequence[Run], kind: str) -> dict[str, float]:
    """By arm, the mean over its completed runs."""
    each: dict[str, list[float]] = {}
    for run in runs:
        if run.completed:
            each.setdefault(run.job.arm, []).append(used(run.directory, kind))
    return {arm: fmean(values) for arm, values in each.items()}


def unequal(by_arm: Mapping[str, float], kind: str) -> str:
    """A sentence where arms had different budgets; ''."""
    least, most = (choose(by_arm, key=by_arm.__getitem__, default="") for choose in (min, max))
    if not by_arm or by_arm[most] - by_arm[least] <= TOLERANCE * by_arm[most]:
        return ""
    amounts = f"{least} had {by_arm[least]:,.0f} {kind}, {most} {by_arm[most]:,.0f}"
    return f"Unequal budgets: {amounts}; a difference may come from that. study.equal chooses what is compared."
