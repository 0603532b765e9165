"""Programs vote on the outputs of held-back inputs: equal outputs add up, and count by the shown cases that their programs
have right.

The weight of an output is the number of completions that give it, plus 1000 times the mean share of shown cases that these
have right (SOAR, arXiv 2507.14172). SOAR weighs the outputs of all test inputs of a task together; here each input has a
vote of its own, as ARC judges it, so that a program that fails on one input still counts on another.

A vote is a function of ballots, which hold nothing of what is expected. `solved_with` compares what came of it.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

ACCURACY_WEIGHT = 1000
"""Votes that a mean share of 1 of the shown cases is worth."""


@dataclass(frozen=True)
class Ballot:
    """What a completion's program says."""

    program: str
    outputs: tuple[Hashable | None, ...]
    """Its answer to each held-back input; None: it has none."""
    shown_right: int
    """Shown cases that it has right."""


@dataclass(frozen=True)
class VotedAnswer:
    """An output and the completions that give it."""

    output: Hashable
    votes: int
    """Number of these completions."""
    shown_right: float
    """Mean share of the shown cases that they have right, in [0, 1]."""
    program: str
    """Stands for them: that with the most shown cases right, the shortest of those, the first in the order of texts."""

    @property
    def weight(self) -> float:
        return self.votes + ACCURACY_WEIGHT * self.shown_right


def vote(ballots: Sequence[Ballot], inputs: int, shown: int, answers: int) -> tuple[tuple[VotedAnswer, ...], ...]:
    """For each held-back input the answers of most weight, the first the best; fewer where there are no others.

    Equal weights are ordered by the length and the text of the programs that stand for them, which differ: the order of the
    ballots decides nothing.

    Args:
        inputs: number of held-back inputs.
        shown: number of shown cases.
        answers: the most answers to an input.
    """
    return tuple(_of_input(ballots, place, shown)[:answers] for place in range(inputs))


def _of_input(ballots: Sequence[Ballot], place: int, shown: int) -> tuple[VotedAnswer, ...]:
    groups: dict[Hashable, list[Ballot]] = defaultdict(list)
    for one in ballots:
        if one.outputs[place] is not None:
            groups[one.outputs[place]].append(one)
    found = []
    for output, group in groups.items():
        best = min(group, key=lambda one: (-one.shown_right, len(one.program), one.program))
        right = sum(one.shown_right for one in group)  # Of integers: no order of addition changes it.
        found.append(VotedAnswer(output, len(group), right / (len(group) * shown), best.program))
    return tuple(sorted(found, key=lambda one: (-one.weight, len(one.program), one.program)))


def solved_with(voted: Sequence[Sequence[VotedAnswer]], right: Sequence[Hashable]) -> int:
    """The fewest answers to each input among which the right one is for every input; 0: not among them.

    Args:
        voted: of each input, as from `vote`.
        right: the right answer to each.
    """
    places = [
        next((place for place, one in enumerate(answers, 1) if one.output == wanted), 0)
        for answers, wanted in zip(voted, right, strict=True)
    ]
    return max(places) if all(places) else 0
