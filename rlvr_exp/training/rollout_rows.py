"""A step's samples as rows of `rollouts/`: each completion with its reward, and whether it was trained on."""

from dataclasses import replace
from itertools import count, groupby

from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.rollouts.groups import Group, Groups
from rlvr_exp.training.step_log import trained_rows


def rollout_rows(groups: Groups, learned: TrainingBatch | None, regularised: bool) -> list[RolloutRow]:
    """One row per sample of the step: first samples carried in from earlier steps, then those sampled in it.

    Args:
        learned: None where no policy is trained on them.
    """
    advantages = {} if learned is None else _advantages(learned, regularised)
    waiting = {group.id for group in groups.carried_over}
    places = count()
    return [
        RolloutRow(
            replace(
                group.completions[member], sample=sample
            ),  # Of turns with one prompt, each may be the first of its own.
            step=groups.step + 1,
            group=place,
            prompt=group.prompts[member],
            reward=group.rewarded[member].total,
            terms=group.rewarded[member].terms,
            advantage=(advantage := advantages.get((group.id, member))),
            fate="pending" if group.id in waiting else _fate(group, member, advantage),
            waited=groups.step - group.step,
            about=group.about[member] if group.about else None,
        )
        for group in groups.at_hand
        for _, same in groupby(range(len(group.completions)), key=group.prompt_ids.__getitem__)
        for place in [next(places)]  # Rows of one number have one prompt.
        for sample, member in enumerate(same)
    ]


def _advantages(learned: TrainingBatch, regularised: bool) -> dict[tuple[int, int], float]:
    """Advantages of the samples trained on, by group id and index in the group."""
    trained = trained_rows(learned, regularised).tolist()
    first = learned.advantages[:, 0].tolist()
    places = [(group, member) for group, same in groupby(learned.group_ids.tolist()) for member, _ in enumerate(same)]
    return {place: value for place, value, counts in zip(places, first, trained, strict=True) if counts}


def _fate(group: Group, member: int, advantage: float | None) -> str:
    if group.rewards[member] is None:
        return "no_verdict"
    return "filtered" if advantage is None else "trained"
