"""Groups that wait, as plain values of a checkpoint's state and back: nothing of them is lost or sampled again."""

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
"""Fields of a verdict that no two runs share."""
PLAIN_NAMES = {"kept_token_ids": "support"}
"""Fields of a sample that have another key in a checkpoint's state."""


def as_plain(group: Group) -> dict[str, Any]:
    """What JSON can hold; the task by its id alone."""
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
    """Raises InputError where the data has the group's task no longer."""
    if state["task"] not in tasks:
        remedy = "resume with the data that the run was started with"
        raise InputError(
            InputProblem("data", "a task that waits to be learned from is gone", state["task"], remedy=remedy)
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
    """All but times, and whether a cache knew the verdict: what is the machine's is no part of a run's state."""
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
    """Under the keys of a checkpoint's state."""
    return {PLAIN_NAMES.get(name, name): value for name, value in asdict(sample).items()}


def sample_from_plain(state: Mapping[str, Any]) -> TokenSample:
    names = {key: name for name, key in PLAIN_NAMES.items()}
    return TokenSample(**{names.get(key, key): _tuples(value) for key, value in state.items()})


def _tuples(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(_tuples(part) for part in value) if isinstance(value, list | tuple) else value
