"""Groups as plain values of a checkpoint's state and back: nothing is lost or sampled twice."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.episodes.serialize import STATE, from_plain, to_plain
from rlvr_exp.episodes.types import RewardBreakdown
from rlvr_exp.rollouts.groups import Group
from rlvr_exp.tasks.base import Task

KEYS = {"step", "index", "task", "family", "prompts", "completions", "rewarded", "rewards"}


def group_state(group: Group) -> dict[str, Any]:
    """The group as values that JSON can hold; the task only by its id and family."""
    task, plain = group.completions[0].task, map(to_plain, group.completions)
    pairs = zip(group.prompts, group.prompt_ids, strict=True)
    return {
        "step": group.step,
        "index": group.index,
        "task": task.id,
        "family": task.family,
        "prompts": [[text, list(ids), len(list(same))] for (text, ids), same in groupby(pairs)],
        "completions": [{name: values[name] for name in STATE} for values in plain],
        "rewarded": [vars(one) for one in group.rewarded],
        "rewards": list(group.rewards),
    }


def group_from(state: Mapping[str, Any], tasks: Mapping[str, Task] | None = None) -> Group:
    """The group of a state.

    Args:
        tasks: the tasks of the data by id; None: only id and family of the group's task are known.

    Raises:
        InputError: unknown or missing keys, or the group's task is no longer in the data.
    """
    if set(state) != KEYS:
        got, allowed = ", ".join(sorted(state)), ", ".join(sorted(KEYS))
        remedy = "resume with the version that wrote the checkpoint"
        raise InputError(InputProblem("state of a group", "has other keys", got, allowed, remedy=remedy))
    task = None if tasks is None else tasks.get(state["task"])
    if tasks is not None and task is None:
        what, remedy = "the task of a waiting group is gone", "resume with the data that the run was started with"
        raise InputError(InputProblem("data", what, state["task"], remedy=remedy))
    prompts = [(text, tuple(ids)) for text, ids, count in state["prompts"] for _ in range(count)]
    return Group(
        step=state["step"],
        index=state["index"],
        prompts=tuple(text for text, _ in prompts),
        prompt_ids=tuple(ids for _, ids in prompts),
        completions=tuple(from_plain({**state, **one}, task) for one in state["completions"]),
        rewarded=tuple(RewardBreakdown(**one) for one in state["rewarded"]),
        rewards=tuple(state["rewards"]),
    )
