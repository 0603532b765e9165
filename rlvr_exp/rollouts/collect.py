"""One step's groups: tasks chosen, answered, judged and rewarded. What an algorithm turns into experience."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rlvr_exp.curriculum.base import Curriculum
from rlvr_exp.models.policy import Policy
from rlvr_exp.rewards.compose import Reward, Rewarded
from rlvr_exp.rewards.base import Judged
from rlvr_exp.rollouts.judge import Answer, judge
from rlvr_exp.rollouts.sampler import Sampling, sample_groups
from rlvr_exp.tasks.base import Domain
from rlvr_exp.verifiers.base import Verifier


@dataclass(frozen=True)
class Groups:
    """What was sampled in one step; the id of a group is its place."""

    step: int
    prompts: tuple[tuple[str, tuple[int, ...]], ...]
    """Text and token ids of each group's prompt."""
    answers: tuple[tuple[Answer, ...], ...]
    rewarded: tuple[tuple[Rewarded, ...], ...]
    seconds: dict[str, float]
    """Wall seconds of each phase: generate, verify."""

    def rewards(self) -> torch.Tensor:
        """(groups, G), NaN without a verdict."""
        totals = [[float("nan") if one.total is None else one.total for one in group] for group in self.rewarded]
        return torch.tensor(totals)


@dataclass(frozen=True)
class Collector:
    """Samples and judges; holds everything a step needs but the algorithm."""

    policy: Policy
    domain: Domain
    verifier: Verifier
    reward: Reward
    curriculum: Curriculum
    prompts_per_step: int
    group_size: int
    sampling: Sampling
    seed: int
    iterations: int
    """Updates on each batch of groups: only every so many steps is one collected."""

    def collect(self, step: int) -> Groups:
        """The groups of a step, counted from 0. Draws depend on (seed, step, place, task, sample) alone."""
        tasks = self.curriculum.pick(step // self.iterations, self.prompts_per_step)
        texts = [self.domain.prompt(task) for task in tasks]
        prompts = [self.policy.encode_prompt(text) for text in texts]
        keys = [
            [(self.seed, "rollout", step, place, task.id, sample) for sample in range(self.group_size)]
            for place, task in enumerate(tasks)
        ]
        began = time.perf_counter()
        sampled = sample_groups(self.policy.model, prompts, keys, self.sampling)
        generated = time.perf_counter()
        answers = judge(self.policy, self.domain, self.verifier, tasks, sampled)
        rewarded = self._rewarded(answers)
        seconds = {"generate": generated - began, "verify": time.perf_counter() - generated}
        return Groups(
            step=step,
            prompts=tuple((text, tuple(ids)) for text, ids in zip(texts, prompts, strict=True)),
            answers=tuple(tuple(group) for group in answers),
            rewarded=rewarded,
            seconds=seconds,
        )

    def _rewarded(self, answers: Sequence[Sequence[Answer]]) -> tuple[tuple[Rewarded, ...], ...]:
        flat = self.reward([_judged(answer) for group in answers for answer in group])
        rows = iter(flat)
        return tuple(tuple(next(rows) for _ in group) for group in answers)


def _judged(answer: Answer) -> Judged:
    sampled = answer.sampled
    return Judged(answer.task, answer.text, len(sampled.ids), sampled.truncated, answer.candidate, answer.verdict)
