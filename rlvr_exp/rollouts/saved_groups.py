"""Groups carried over, as plain values of a checkpoint's state and back: nothing is lost or sampled twice."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.rewards.compose import RewardBreakdown
from rlvr_exp.rollouts.completion import Completion
from rlvr_exp.rollouts.groups import Group
from rlvr_exp.rollouts.sampler import TokenSample
from rlvr_exp.tasks.base import Candidate, Task
from rlvr_exp.verifiers.base import Verdict

OF_MACHINE = ("seconds", "cached")
"""Fields of a verdict that depend on the machine and differ between runs."""
PLAIN_NAMES = {"kept_token_ids": "support"}
"""Fields of a sample that have another key in a checkpoint's state."""


def as_plain(group: Group) -> dict[str, Any]:
    """The group as values that JSON can hold; the task only by its id."""
    return {
        "step": group.step,
        "place": group.index,
        "task": group.completions[0].task.id,
        "prompt": group.prompt,
        "prompt_ids": list(group.prompt_ids),
        "answers": [_plain_completion(completion) for completion in group.completions],
        "rewarded": [asdict(one) for one in group.rewarded],
        "rewards": list(group.rewards),
    }


def from_plain(state: Mapping[str, Any], tasks: Mapping[str, Task]) -> Group:
    """Raises InputError where the group's task is no longer in the data."""
    if state["task"] not in tasks:
        remedy = "resume with the data that the run was started with"
        raise InputError(
            InputProblem("data", "the task of a group that waits for training is gone", state["task"], remedy=remedy)
        )
    task = tasks[state["task"]]
    return Group(
        step=state["step"],
        index=state["place"],
        prompt=state["prompt"],
        prompt_ids=tuple(state["prompt_ids"]),
        completions=tuple(_completion(completion, task) for completion in state["answers"]),
        rewarded=tuple(RewardBreakdown(**one) for one in state["rewarded"]),
        rewards=tuple(state["rewards"]),
    )


def _plain_completion(completion: Completion) -> dict[str, Any]:
    """All fields except times and whether the verdict came from a cache: these depend on the machine, not on the run."""
    return {
        "sample": completion.sample,
        "sampled": plain_sample(completion.sampled),
        "text": completion.text,
        "candidate": asdict(completion.candidate),
        "verdict": {name: value for name, value in asdict(completion.verdict).items() if name not in OF_MACHINE},
    }


def _completion(state: Mapping[str, Any], task: Task) -> Completion:
    sampled = sample_from_plain(state["sampled"])
    candidate, verdict = Candidate(**state["candidate"]), Verdict(**state["verdict"])
    return Completion(task, state["sample"], sampled, state["text"], candidate, verdict)


def plain_sample(sample: TokenSample) -> dict[str, Any]:
    """The fields of a sample under the keys of a checkpoint's state."""
    return {PLAIN_NAMES.get(name, name): value for name, value in asdict(sample).items()}


def sample_from_plain(state: Mapping[str, Any]) -> TokenSample:
    names = {key: name for name, key in PLAIN_NAMES.items()}
    return TokenSample(**{names.get(key, key): _tuples(value) for key, value in state.items()})


def _tuples(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(_tuples(part) for part in value) if isinstance(value, list | tuple) else value
