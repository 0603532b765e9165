"""Choose the rows of a round to imitate, and turn them into training examples.

The limits keep few rows of a task and of a family: the best ones and the most different ones. SOAR measured 25 best with 25
others of a task above the 50 best (36.5% against 34.3% of train tasks). Each limit can be switched off. The choice depends
on the rows and a seed alone.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from rlvr_exp.algorithms.examples import Example, Examples, example, length
from rlvr_exp.core.seeds import stream
from rlvr_exp.models.policy import Policy
from rlvr_exp.self_play.found import Found
from rlvr_exp.solutions.store import kept
from rlvr_exp.tasks.base import Domain


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


class Fixed:
    """Examples that have one form."""

    def __init__(self, examples: Sequence[Example]):
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def variant(self, index: int, rng: Random) -> Example:
        return self._examples[index]


def pool_of(policy: Policy, domain: Domain, rows: Sequence[Found], kind: str, longest: int) -> Examples | Fixed:
    """The examples of rows of one kind; those above `longest` tokens are left out."""
    if kind != "refined":
        return Examples(policy, domain, [row.solved for row in rows], longest)
    made = []
    for row in rows:
        answer = domain.gold_completion(row.solved)
        prompt = domain.retry_prompt(row.host, row.previous, row.feedback)
        made.append(example(policy, prompt, answer or row.solution.program))
    return Fixed([one for one in made if length(one) <= longest])
