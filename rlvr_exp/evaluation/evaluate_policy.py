"""Evaluating a policy: every task sampled greedily and at random, every completion verified."""

from collections.abc import Callable, Sequence

from rlvr_exp.evaluation.metrics import EvalSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.completion import Completion
from rlvr_exp.rollouts.rollout_loop import RolloutRequest, generate_and_verify
from rlvr_exp.rollouts.sampler import SamplingParams
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier

Progress = Callable[[int, int], None]


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
    prompts = {task.id: tuple(policy.encode_prompt(domain.prompt(task))) for task in tasks}
    room = min(limits.max_prompt_tokens, policy.max_tokens - limits.max_completion_tokens)
    fitting = sorted((t for t in tasks if len(prompts[t.id]) <= room), key=lambda t: len(prompts[t.id]))
    scored: dict[str, list[EvalSample]] = {t.id: _too_long(t, evaluation) for t in tasks if len(prompts[t.id]) > room}
    sampling = SamplingParams.of(evaluation, policy, limits.max_completion_tokens, evaluation.batch_size, domain)
    per_batch = max(1, evaluation.batch_size // (evaluation.samples + evaluation.greedy))
    for start in range(0, len(fitting), per_batch):
        batch = fitting[start : start + per_batch]
        requests = [RolloutRequest(task, prompts[task.id], _keys(seed, task, evaluation)) for task in batch]
        answered = generate_and_verify(policy, domain, verifier, requests, sampling)
        for task, answers in zip(batch, answered.completions, strict=True):
            scored[task.id] = [_scored(one, evaluation.greedy) for one in answers]
        progress(len(scored), len(tasks))
    return [row for task in tasks for row in scored[task.id]]


def _keys(seed: int, task: Task, evaluation) -> tuple[tuple | None, ...]:
    """The greedy completion, where there is one, comes first; it draws nothing."""
    sampled = [(seed, "evaluate", task.id, sample) for sample in range(evaluation.samples)]
    return (*([None] * evaluation.greedy), *sampled)


def _scored(one: Completion, greedy: bool) -> EvalSample:
    verdict = one.verdict
    return EvalSample(
        task=one.task.id,
        family=one.task.family,
        mode="greedy" if greedy and one.sample == 0 else "sampled",
        sample=max(0, one.sample - greedy),
        outcome=verdict.outcome,
        bucket=verdict.bucket,
        completion=one.text,
        tokens=len(one.sampled.ids),
        log=verdict.log,
        seconds=one.seconds,
    )


def _too_long(task: Task, evaluation) -> list[EvalSample]:
    modes = [("greedy", 0)] * evaluation.greedy + [("sampled", sample) for sample in range(evaluation.samples)]
    log = "the prompt is longer than the policy takes"
    return [
        EvalSample(task.id, task.family, mode, sample, "failed", "prompt_too_long", "", 0, log, 0.0)
        for mode, sample in modes
    ]
