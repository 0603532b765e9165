"""Choose the rows of a round to imitate, and turn them into training examples.

The limits keep few rows of a task and of a family: the best ones and the most different ones. SOAR measured 25 best with 25
others of a task above the 50 best (36.5% against 34.3% of train tasks). Each limit can be switched off. The choice depends
on the rows and a seed alone.

Refining failed answers, which one first by REx (Tang et al. 2024, arXiv 2405.17503): Thompson sampling on

    Beta(1 + C h, 1 + C (1 - h) + N)

with h the share of an answer's pairs that are right, N how often it was refined, and C how much h counts. A program that
raises an error is no candidate.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from rlvr_exp.algorithms.sft import Example, Examples, example, length
from rlvr_exp.core.seeds import stream
from rlvr_exp.models.policy import Policy
from rlvr_exp.self_play.found import Found
from rlvr_exp.solutions.store import kept
from rlvr_exp.tasks.base import Domain


@dataclass(frozen=True)
class Limits:
    """0: no limit."""

    choose: str
    """diverse, best or random: the choice among a task's rows."""
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


BINS = (0.0, 0.34, 0.98)
"""Upper bounds of the bins of accuracy over which refinement is learned evenly (SOAR, arXiv 2507.14172)."""


def chosen_to_refine(candidates: Sequence[Found], refined: Mapping[str, int], exploit: float, rng: Random) -> Found:
    """The failed answer of a task that is refined next.

    Args:
        candidates: of one task, at least one.
        refined: how often each was, by the key of its solution.
        exploit: C.
    """
    draws = [drawn(one.accuracy, refined.get(one.solution.key, 0), exploit, rng) for one in candidates]
    return candidates[max(range(len(candidates)), key=draws.__getitem__)]


def drawn(accuracy: float, refined: int, exploit: float, rng: Random) -> float:
    """A draw from the posterior of an answer."""
    return rng.betavariate(1 + exploit * accuracy, 1 + exploit * (1 - accuracy) + refined)


def candidates(found: Iterable[Found]) -> dict[str, list[Found]]:
    """By task the sampled answers that may be refined: of tasks that nothing solved, without those that raised an error."""
    by_task: dict[str, list[Found]] = defaultdict(list)
    solved = set()
    for one in found:
        if one.correct:
            solved.add(one.host.id)
        elif one.text and one.solution.verdict.bucket == "wrong_answer":
            by_task[one.host.id].append(one)
    return {task: own for task, own in by_task.items() if task not in solved}


def corrections(
    found: Sequence[Found], golds: Mapping[str, Found], domain: Domain, seed: int, number: int
) -> list[Found]:
    """Failed answers, each followed by one that passed: the refined one, else another of the task, else its gold. One a
    task, and as many from each bin of accuracy that there are answers of.

    Args:
        golds: by task.
    """
    answers = {**golds} | {one.host.id: one for one in reversed(found) if one.correct}
    by_bin: dict[int, list[Found]] = defaultdict(list)
    order = [one for one in found if not one.correct and one.text and one.host.id in answers]
    stream(seed, "self_play", "corrections", number).shuffle(order)
    for one in {one.host.id: one for one in order}.values():
        answer = answers[one.host.id]
        said = domain.feedback(one.host, one.solution.verdict)
        refined = replace(answer, kind="refined", previous=one.text, feedback=said)
        by_bin[sum(one.accuracy > bound for bound in BINS)].append(refined)
    least = min(map(len, by_bin.values()), default=0)
    return [row for place in sorted(by_bin) for row in by_bin[place][:least]]
