"""A contest: the same candidates verified by us and by the other side, in turns, and the ratio of their times with its interval."""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rlvr_exp.core.statistics import t_interval


@dataclass(frozen=True)
class Ratio:
    """How many times faster, with its 95% interval; `n` pairs."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def of_rounds(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Geometric mean of theirs/ours over paired rounds, both in seconds; a t-interval on the logarithms.

    Raises:
        ValueError: fewer than two pairs, or sides of different length.
    """
    logs = [math.log(other / own) for own, other in zip(ours, theirs, strict=True)]
    if len(logs) < 2:
        raise ValueError(f"of_rounds: got {len(logs)} pairs; an interval needs at least two")
    value, low, high = map(math.exp, t_interval(logs))
    return Ratio(value, low, high, len(logs))


_BATCH = 2
"""Candidates of each worker before the other side has its turn."""
_LEAST_S = 0.01
"""The kernel's unit of CPU time."""

Side = Callable[[Sequence[Any]], list[str]]
"""Candidates to outcomes, in order; `workers` of the same number on both sides."""
Progress = Callable[[str, int, int], None]
"""(contest, done, total), called before each turn; it may raise to end the run."""


@dataclass(frozen=True)
class Outcome:
    """One line of the table. `floor`: the ratio that the project promises on two cores."""

    name: str
    against: str
    ours_per_s: float
    theirs_per_s: float
    ratio: Ratio
    floor: float
    differing: int
    """Candidates on which the two sides disagree."""
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.ratio.value >= self.floor and self.differing == 0


def in_turns(
    name: str,
    against: str,
    ours: Side,
    theirs: Side,
    candidates: Callable[[int], Sequence[Any]],
    rounds: int,
    floor: float,
    progress: Progress,
) -> Outcome:
    """Time both sides on the same candidates, round by round, each side first in every other round.

    `candidates` generates those of a round; no two rounds share a candidate, so that no cache helps.
    """
    own, other, count, differing = [], [], 0, 0
    for turn in range(rounds):
        progress(name, turn, rounds)
        chosen = candidates(turn)
        sides = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
        timed = {side: _timed(side, chosen) for side in sides}
        own.append(timed[ours][0])
        other.append(timed[theirs][0])
        count += len(chosen)
        differing += sum(a != b for a, b in zip(timed[ours][1], timed[theirs][1], strict=True))
    return Outcome(name, against, count / sum(own), count / sum(other), of_rounds(own, other), floor, differing)


def one_by_one(
    name: str,
    against: str,
    ours: Callable[[Any], str],
    theirs: Callable[[Any], str],
    candidates: Sequence[Any],
    workers: int,
    floor: float,
    progress: Progress,
    used: Callable[[], float],
) -> Outcome:
    """Time each candidate on both sides, `workers` of them at once; the ratio is that of core seconds over batches.

    The sides take turns, a batch at a time, each first in every other turn, so that a drift of the machine is in both.
    A candidate on which either side ran out of time is left out of the comparison of verdicts, and counted; those
    on which they disagree are listed by their number, from 0.

    Args:
        used: the CPU seconds that this process and all processes below it have used so far.
    """
    turns: dict[Callable[[Any], str], list[tuple[float, str]]] = {ours: [], theirs: []}
    spent: dict[Callable[[Any], str], list[float]] = {ours: [], theirs: []}
    for number, start in enumerate(range(0, len(candidates), _BATCH * workers)):
        progress(name, start, len(candidates))
        batch = candidates[start : start + _BATCH * workers]
        for side in (ours, theirs) if number % 2 == 0 else (theirs, ours):
            before = used()
            turns[side] += _each_timed(side, batch, workers)
            spent[side].append(max(used() - before, _LEAST_S))
    pairs = [(a, b) for (_, a), (_, b) in zip(turns[ours], turns[theirs], strict=True)]
    timeouts = sum("timeout" in pair for pair in pairs)
    apart = [(index, a, b) for index, (a, b) in enumerate(pairs) if a != b and "timeout" not in (a, b)]
    counts = {word: sum(a == word for a, _ in pairs) for word in sorted({a for a, _ in pairs})}
    note = ", ".join(f"{count} {word}" for word, count in counts.items())
    own, other = (_percentiles([seconds for seconds, _ in turns[side]]) for side in (ours, theirs))
    note += f"; seconds of the clock: {own}, theirs {other}"
    note += f"; {timeouts} with a timeout on either side are not compared"
    if apart:
        note += "; ours and theirs disagree on " + ", ".join(f"number {index} ({a}, {b})" for index, a, b in apart)
    rates = (len(candidates) / sum(spent[ours]), len(candidates) / sum(spent[theirs]))
    return Outcome(name, against, *rates, of_rounds(spent[ours], spent[theirs]), floor, len(apart), note)


def _percentiles(seconds: Sequence[float]) -> str:
    """The median and the 95th percentile (nearest rank)."""
    ranked = sorted(seconds)
    half, most = (ranked[math.ceil(share * len(ranked)) - 1] for share in (0.5, 0.95))
    return f"p50 {half:.3g}, p95 {most:.3g}"


def remembered(
    name: str,
    side: Side,
    candidates: Callable[[int], Sequence[Any]],
    rounds: int,
    floor: float,
    progress: Progress,
) -> Outcome:
    """New candidates, then the same candidates a second time; the second pass has to be answered by the cache."""
    second, first, count, differing = [], [], 0, 0
    for turn in range(rounds):
        progress(name, turn, rounds)
        chosen = candidates(turn)
        (seconds, fresh), (again, known) = _timed(side, chosen), _timed(side, chosen)
        first.append(seconds)
        second.append(again)
        count += len(chosen)
        differing += sum(a != b for a, b in zip(fresh, known, strict=True))
    rates = (count / sum(second), count / sum(first))
    return Outcome(name, "the first pass", *rates, of_rounds(second, first), floor, differing)


def _each_timed(judge: Callable[[Any], str], candidates: Sequence[Any], workers: int) -> list[tuple[float, str]]:
    def timed(candidate: Any) -> tuple[float, str]:
        start = time.perf_counter()
        outcome = judge(candidate)
        return time.perf_counter() - start, outcome

    with ThreadPoolExecutor(workers) as threads:
        return list(threads.map(timed, candidates))


def _timed(side: Side, candidates: Sequence[Any]) -> tuple[float, list[str]]:
    start = time.perf_counter()
    outcomes = side(candidates)
    return time.perf_counter() - start, outcomes


def table(outcomes: Sequence[Outcome]) -> str:
    heads = ("contest", "against", "ours, verdicts/s", "theirs", "ratio [95%]", "floor", "disagree", "holds")
    rows = [
        (
            outcome.name,
            outcome.against,
            f"{outcome.ours_per_s:.4g}",
            f"{outcome.theirs_per_s:.4g}",
            str(outcome.ratio),
            f"{outcome.floor:g}",
            str(outcome.differing),
            "yes" if outcome.holds else "NO",
        )
        for outcome in outcomes
    ]
    notes = [f"{outcome.name}: {outcome.note}" for outcome in outcomes if outcome.note]
    return "\n".join([*aligned([heads, *rows]), *notes])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table, the first of which are the headings, that reads well as text."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
