"""A step's samples as rows of `rollouts/`: prompt, completion, verdict, reward, and whether each was trained on."""

from collections.abc import Mapping
from dataclasses import dataclass

from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.records.rollout_files import VerifiedCompletion
from rlvr_exp.rollouts.groups import Group, Groups
from rlvr_exp.training.step_log import trained_rows


@dataclass(frozen=True)
class _Step:
    """The state that determines a sample's fate."""

    number: int
    """Counted from 1, as in the metrics."""
    waiting: frozenset[int]
    advantages: Mapping[tuple[int, int], float]
    """Advantages of the samples trained on, by group id and index in the group."""


def rollout_rows(groups: Groups, learned: TrainingBatch | None, regularised: bool) -> list[VerifiedCompletion]:
    """One row per sample of the step: first samples carried in from earlier steps, then those sampled in it.

    Args:
        learned: None where no policy is trained on them.
    """
    advantages = {} if learned is None else _advantages(learned, regularised)
    step = _Step(groups.step + 1, frozenset(group.id for group in groups.carried_over), advantages)
    return [row for place, group in enumerate(groups.at_hand) for row in _rows(step, place, group)]


def _advantages(learned: TrainingBatch, regularised: bool) -> dict[tuple[int, int], float]:
    trained = trained_rows(learned, regularised).tolist()
    first = learned.advantages[:, 0].tolist()
    places = [(group, row % learned.group_size) for row, group in enumerate(learned.group_ids.tolist())]
    return {place: value for place, value, counts in zip(places, first, trained, strict=True) if counts}


def _rows(step: _Step, place: int, group: Group) -> list[VerifiedCompletion]:
    return [_row(step, place, group, member) for member in range(len(group.completions))]


def _row(step: _Step, place: int, group: Group, member: int) -> VerifiedCompletion:
    answer, rewarded = group.completions[member], group.rewarded[member]
    verdict = answer.verdict
    return VerifiedCompletion(
        step=step.number,
        task=answer.task.id,
        family=answer.task.family,
        group=place,
        sample=answer.sample,
        prompt=group.prompt,
        completion=answer.text,
        tokens=len(answer.sampled.ids),
        truncated=answer.sampled.truncated,
        outcome=verdict.outcome,
        bucket=verdict.bucket,
        rule=verdict.rule,
        passed=verdict.passed,
        total=verdict.total,
        reward=rewarded.total,
        terms=rewarded.terms,
        advantage=step.advantages.get((group.id, member)),
        log=verdict.log,
        fate=_fate(step, group, member),
        waited=step.number - 1 - group.step,
    )


def _fate(step: _Step, group: Group, member: int) -> str:
    if group.id in step.waiting:
        return "pending"
    if group.rewards[member] is None:
        return "no_verdict"
    return "trained" if (group.id, member) in step.advantages else "filtered"
