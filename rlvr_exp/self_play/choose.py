"""Which of the rows that a round made are imitated: few of a task, few of a family, the best and the most different.

SOAR measured 25 best with 25 others of a task above the 50 best (36.5% against 34.3% of train tasks). Each limit can be
switched off. A function of the rows and a seed.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_exp.core.seeds import stream
from rlvr_exp.self_play.found import Found
from rlvr_exp.solutions.keep import kept


@dataclass(frozen=True)
class Limits:
    """0: no limit."""

    choose: str
    """diverse, best or random: which of a task's rows stay."""
    per_task: int
    per_family: int
    per_round: int


def chosen(rows: Sequence[Found], limits: Limits, seed: int, number: int) -> list[Found]:
    """The rows of one kind that stay, in an order that depends on the seed and the round's number."""
    order = list(rows)
    stream(seed, "self_play", "choose", number).shuffle(order)
    by_task: dict[str, list[Found]] = defaultdict(list)
    for row in order:
        by_task[row.host.id].append(row)
    found, families = [], Counter[str]()
    for own in by_task.values():
        for row in _of_task(own, limits):
            if limits.per_family and families[row.host.family] >= limits.per_family:
                continue
            families[row.host.family] += 1
            found.append(row)
    return found[: limits.per_round or None]


def _of_task(rows: list[Found], limits: Limits) -> list[Found]:
    most = limits.per_task
    if not most or len(rows) <= most or limits.choose == "random":
        return rows[: most or None]
    ranked = sorted(rows, key=lambda row: (-row.accuracy, row.solution.syntax.size))
    if limits.choose == "best":
        return ranked[:most]
    return [ranked[place] for place in kept([row.solution.outputs for row in ranked], most)]
