"""Evaluating a policy: every task sampled greedily and at random, every completion verified."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.episodes.types import Completion, TokenCount, unsampled
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.rollout_loop import RolloutRequest, generate_and_verify
from rlvr_exp.rollouts.sampler import SamplingParams
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verdict, Verifier

Progress = Callable[[int, int], None]
TOO_LONG = Verdict("failed", bucket="prompt_too_long", log="the prompt is longer than the policy takes")


def evaluate_policy(
    policy: Policy,
    domain: Domain,
    verifier: Verifier,
    tasks: Sequence[Task],
    evaluation,
    limits,
    seed: int,
    progress: Progress,
) -> list[EvalSample]:
    """Sample and verify `tasks` by the `evaluation` configuration node.

    Draws depend on (seed, task, sample) alone, so two policies measured with the same seed are compared draw by draw. A
    prompt longer than the policy takes is never cut: all its answers fail with bucket `prompt_too_long`.

    Args:
        limits: `max_prompt_tokens` and `max_completion_tokens`, as the `model` node has them.
        progress: called with (tasks answered, all tasks) after each batch.
    """
    texts = {task.id: domain.prompt(task) for task in tasks}
    prompts = {name: tuple(policy.encode_prompt(text)) for name, text in texts.items()}
    room = min(limits.max_prompt_tokens, policy.max_tokens - limits.max_completion_tokens)
    fitting = sorted((t for t in tasks if len(prompts[t.id]) <= room), key=lambda t: len(prompts[t.id]))
    greedy, count = evaluation.greedy, evaluation.greedy + evaluation.samples
    scored = {
        t.id: [eval_sample(unsampled(t, i, TOO_LONG), texts[t.id], greedy) for i in range(count)]
        for t in tasks
        if len(prompts[t.id]) > room
    }
    sampling = SamplingParams.of(evaluation, policy, limits.max_completion_tokens, evaluation.batch_size, domain)
    per_batch = max(1, evaluation.batch_size // count)
    for start in range(0, len(fitting), per_batch):
        batch = fitting[start : start + per_batch]
        requests = [RolloutRequest(task, prompts[task.id], _keys(seed, task, evaluation)) for task in batch]
        found = generate_and_verify(policy, domain, verifier, requests, sampling)
        for task, completions in zip(batch, found.completions, strict=True):
            scored[task.id] = [eval_sample(one, texts[task.id], greedy) for one in completions]
        progress(len(scored), len(tasks))
    return [row for task in tasks for row in scored[task.id]]


def _keys(seed: int, task: Task, evaluation) -> tuple[tuple | None, ...]:
    """The greedy completion, where there is one, comes first; it draws nothing."""
    sampled = [(seed, "evaluate", task.id, sample) for sample in range(evaluation.samples)]
    return (*([None] * evaluation.greedy), *sampled)


def eval_sample(one: Completion, prompt: str, greedy: bool, cascade: Mapping[str, Any] | None = None) -> EvalSample:
    """Keeps the number of its tokens alone. `greedy`: the completion of index 0 is the greedy one."""
    mode, count = "greedy" if greedy and one.sample == 0 else "sampled", TokenCount(one.tokens, one.truncated)
    return EvalSample(replace(one, sample=max(0, one.sample - greedy), sampled=count), mode, prompt, cascade)
