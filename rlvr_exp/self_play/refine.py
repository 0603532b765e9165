"""Refining failed answers, which one first by REx (Tang et al. 2024, arXiv 2405.17503): Thompson sampling on

    Beta(1 + C h, 1 + C (1 - h) + N)

with h the share of an answer's pairs that are right, N how often it was refined, and C how much h counts. A program that
raises an error is no candidate.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from rlvr_exp.core.seeds import stream
from rlvr_exp.episodes.environments.retry import feedback
from rlvr_exp.self_play.found import Found

BINS = (0.0, 0.34, 0.98)
"""Upper bounds of the bins of accuracy over which refinement is learned evenly (SOAR, arXiv 2507.14172)."""


def chosen(candidates: Sequence[Found], refined: Mapping[str, int], exploit: float, rng: Random) -> Found:
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


def corrections(found: Sequence[Found], golds: Mapping[str, Found], seed: int, number: int) -> list[Found]:
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
        refined = replace(answer, kind="refined", previous=one.text, feedback=feedback(one.solution.verdict))
        by_bin[sum(one.accuracy > bound for bound in BINS)].append(refined)
    least = min(map(len, by_bin.values()), default=0)
    return [row for place in sorted(by_bin) for row in by_bin[place][:least]]
