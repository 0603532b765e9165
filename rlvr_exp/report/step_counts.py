"""The counts of a step's completions: the data of charts and of the diagnosis of long runs.

Pure functions of rows. The counts are small however long the completions are, so that every step of a run can be kept.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rlvr_exp.records.rollout_files import EvalSample, RolloutRow
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG

KINDS = (
    "one_text",
    "dead_solved",
    "dead_failed",
    "mixed",
    "mixed_equal",
    "mixed_blind",
    "mixed_inverted",
    "mixed_reversed",
)
"""Kinds of groups that are counted."""
EQUAL = 1e-6
"""Rewards with at most this difference are equal: the default of algorithm.zero_variance_eps."""


@dataclass(frozen=True)
class StepCounts:
    """A step's completions, counted. An evaluation is a step too: its tasks are its groups."""

    step: int
    samples: int
    verdicts: Mapping[str, int]
    """By bucket where there is one, else by outcome."""
    cheats: int
    """Rejected completions, except those that only failed to keep the given code."""
    truncated: int
    """Completions that reached their token limit."""
    empty: int
    """Completions without a character other than whitespace."""
    families: Mapping[str, tuple[int, int]]
    """(passed, judged) of each family."""
    tasks: Mapping[str, tuple[int, int]]
    """(passed, judged) of each task."""
    group_success: Sequence[float]
    """Share of passes in each group that has a verdict."""
    group_reward: Sequence[float]
    """Mean reward of each group that has one, before the normaliser, which removes the level."""
    group_tokens: Sequence[float]
    """Mean length of each group's completions."""
    groups: int
    one_text: int
    """Groups of two and more whose completions are all the same text. (Truncated texts are alike because they are
    short.)"""
    dead_solved: int
    """Groups whose rewards are all equal, some member of which passed."""
    dead_failed: int
    """Groups whose rewards are all equal, none of which passed."""
    mixed: int
    """Groups with a reward for a passed and for a failed member."""
    mixed_equal: int
    """Mixed groups with equal rewards."""
    mixed_blind: int
    """Mixed groups in which each passed member has the reward of the best failed member, but not all are equal."""
    mixed_inverted: int
    """Mixed groups in which failed members have at least the reward of passed ones on average, but not all are
    equal."""
    mixed_reversed: int
    """Of these, groups in which every failed member has a higher reward than every passed member."""

    def met(self, *verdicts: str) -> int:
        """Completions with one of these verdicts."""
        return sum(self.verdicts.get(verdict, 0) for verdict in verdicts)

    def unread(self, *verdicts: str) -> int:
        """Completions with one of these verdicts or without any text."""
        return min(self.samples, self.met(*verdicts) + self.empty)


def is_empty(row: RolloutRow) -> bool:
    """Without a text, though the policy was asked."""
    return not row.completion.text.strip() and row.verdict.bucket != PROMPT_TOO_LONG


def is_cheat(row: RolloutRow) -> bool:
    """Rejected, and not for a changed program: an annotator gains nothing by changing the writer's code."""
    return row.verdict.outcome == "rejected" and row.verdict.rule != "program-changed"


def count_step(step: int, rows: Iterable[RolloutRow]) -> StepCounts:
    """Count a step's rows, except those sampled in an earlier step, which counted them."""
    own = [row for row in rows if not row.waited]
    groups: dict[int, list[RolloutRow]] = defaultdict(list)
    for row in own:
        groups[row.group].append(row)
    members = list(groups.values())
    kinds = Counter(kind for group in members for kind in _kinds(group))
    judged = [[row.completion.correct for row in group if row.verdict.outcome != "no_verdict"] for group in members]
    paid = [[paid_of(row) for row in group if row.reward is not None] for group in members]
    return StepCounts(
        step=step,
        samples=len(own),
        verdicts=Counter(row.verdict.bucket or row.verdict.outcome for row in own),
        cheats=sum(map(is_cheat, own)),
        truncated=sum(row.completion.truncated for row in own),
        empty=sum(is_empty(row) for row in own),
        families=_passed(own, lambda task: task.family),
        tasks=_passed(own, lambda task: task.id),
        group_success=[fmean(group) for group in judged if group],
        group_reward=[fmean(group) for group in paid if group],
        group_tokens=[fmean(row.completion.tokens for row in group) for group in members],
        groups=len(members),
        **{kind: kinds[kind] for kind in KINDS},
    )


def as_rollouts(step: int, answers: Iterable[EvalSample]) -> list[RolloutRow]:
    """The sampled answers of an evaluation as rows without a reward, each task a group; greedy answers where there are
    no samples."""
    rows = []
    places: dict[str, int] = {}
    for one in sampled_answers(answers):
        group = places.setdefault(one.completion.task.id, len(places))
        rows.append(RolloutRow(one.completion, step, group, one.prompt, fate="measured"))
    return rows


def sampled_answers(answers: Iterable[EvalSample]) -> list[EvalSample]:
    """The sampled answers, or the greedy ones where there are no samples."""
    answers = list(answers)
    return [one for one in answers if one.mode == "sampled"] or answers


def paid_of(row: RolloutRow) -> float:
    """The reward before the normaliser."""
    return math.fsum(row.terms.values()) if row.terms else float(row.reward or 0.0)


def _passed(rows: Iterable[RolloutRow], key: Callable[[Task], str]) -> dict[str, tuple[int, int]]:
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.verdict.outcome != "no_verdict":
            count = counts.setdefault(key(row.completion.task), [0, 0])
            count[0] += row.completion.correct
            count[1] += 1
    return {name: (passed, judged) for name, (passed, judged) in counts.items()}


def _kinds(group: Sequence[RolloutRow]) -> Iterable[str]:
    if len(group) > 1 and len({row.completion.text for row in group}) == 1 and not group[0].completion.truncated:
        yield "one_text"
    right, wrong = ([row.reward for row in group if row.reward is not None and row.completion.correct is passed]
                    for passed in (True, False))  # fmt: skip
    if not right and not wrong:
        return
    spread = max(*right, *wrong, float("-inf")) - min(*right, *wrong, float("inf"))
    if spread <= EQUAL:
        yield "dead_solved" if right else "dead_failed"
    if right and wrong:
        yield "mixed"
        yield from _reward_order(right, wrong)


def _reward_order(right: Sequence[float], wrong: Sequence[float]) -> Iterable[str]:
    """How the rewards of passed and of failed members compare, where they are not ordered as they should be."""
    low, high = min(*right, *wrong), max(*right, *wrong)
    if high - low <= EQUAL:
        yield "mixed_equal"
        return
    best = max(wrong)
    if all(abs(reward - best) <= EQUAL for reward in right):
        yield "mixed_blind"
    if fmean(right) <= fmean(wrong):
        yield "mixed_inverted"
    if max(right) < min(wrong) - EQUAL:
        yield "mixed_reversed"
