"""Given tasks, answered and judged: one function for training, evaluation and inference.

Which tasks are asked, and what an answer is worth, is not decided here.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_exp.core.seeds import Key
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.judge import Answer, judge
from rlvr_exp.rollouts.sampler import Sampling, sample_groups
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier


@dataclass(frozen=True)
class Question:
    """A task as it is put to the policy."""

    task: Task
    prompt: tuple[int, ...]
    """Token ids; never cut."""
    keys: tuple[tuple[Key, ...], ...]
    """The key of each wanted completion's draws, e.g. (run seed, "rollout", step, place, task id, sample)."""


@dataclass(frozen=True)
class Answered:
    """What came of the questions asked together."""

    answers: tuple[tuple[Answer, ...], ...]
    """For each question its completions, in the order of its keys."""
    seconds: Mapping[str, float]
    """Wall seconds: `generate`, and `verify`, what waiting for verdicts cost once sampling had ended."""


def answer(
    policy: Policy, domain: Domain, verifier: Verifier, questions: Sequence[Question], sampling: Sampling
) -> Answered:
    """Sample every completion that the questions ask for, and judge it."""
    began = time.perf_counter()
    prompts, keys = [list(one.prompt) for one in questions], [one.keys for one in questions]
    sampled = sample_groups(policy.model, prompts, keys, sampling)
    generated = time.perf_counter()
    answers = judge(policy, domain, verifier, [one.task for one in questions], sampled)
    seconds = {"generate": generated - began, "verify": time.perf_counter() - generated}
    return Answered(tuple(map(tuple, answers)), seconds)
