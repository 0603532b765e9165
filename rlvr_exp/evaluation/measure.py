"""Measuring a policy: every task answered greedily and by sampling, every answer judged."""

import time
from collections.abc import Callable, Sequence

from rlvr_exp.evaluation.metrics import Scored
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.judge import Answer, judge
from rlvr_exp.rollouts.sampler import Sampled, Sampling, sample_groups
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier

Progress = Callable[[int, int], None]


def measure(
    policy: Policy,
    domain: Domain,
    verifier: Verifier,
    tasks: Sequence[Task],
    evaluation,
    limits,
    seed: int,
    progress: Progress,
) -> list[Scored]:
    """Answer `tasks` as the `evaluation` configuration node says.

    Draws depend on (seed, task, sample) alone, so two policies measured with one seed are compared draw by draw. A
    prompt longer than the policy takes is never cut: all its answers fail with bucket `prompt_too_long`.

    Args:
        limits: `max_prompt_tokens` and `max_completion_tokens`, as the `model` node has them.
        progress: called with (tasks answered, all tasks) after each batch.
    """
    prompts = {task.id: policy.encode_prompt(domain.prompt(task)) for task in tasks}
    room = min(limits.max_prompt_tokens, policy.max_tokens - limits.max_completion_tokens)
    fitting = sorted((t for t in tasks if len(prompts[t.id]) <= room), key=lambda t: len(prompts[t.id]))
    scored: dict[str, list[Scored]] = {t.id: _too_long(t, evaluation) for t in tasks if len(prompts[t.id]) > room}
    per_batch = max(1, evaluation.batch_size // (evaluation.samples + evaluation.greedy))
    for start in range(0, len(fitting), per_batch):
        batch = fitting[start : start + per_batch]
        for task, rows in zip(batch, _answer(policy, domain, verifier, batch, prompts, evaluation, limits, seed), strict=True):
            scored[task.id] = rows
        progress(len(scored), len(tasks))
    return [row for task in tasks for row in scored[task.id]]


def _answer(policy, domain, verifier, batch, prompts, evaluation, limits, seed) -> list[list[Scored]]:
    rows: list[list[Scored]] = [[] for _ in batch]
    for mode in ("greedy", "sampled") if evaluation.greedy else ("sampled",):
        count = 1 if mode == "greedy" else evaluation.samples
        began = time.perf_counter()
        groups = _sample(policy, [prompts[t.id] for t in batch], batch, mode, count, evaluation, limits, seed)
        answers = judge(policy, domain, verifier, batch, groups)
        waited = time.perf_counter() - began
        for row, group in zip(rows, answers, strict=True):
            row.extend(_scored(answer, mode, waited) for answer in group)
    return rows


def _sample(policy, prompts, batch, mode, count, evaluation, limits, seed) -> list[list[Sampled]]:
    sampling = Sampling(
        temperature=0.0 if mode == "greedy" else evaluation.temperature,
        max_new_tokens=limits.max_completion_tokens,
        eos_ids=policy.eos_ids,
        pad_id=policy.pad_id,
    )
    keys = [[(seed, "evaluate", task.id, sample) for sample in range(count)] for task in batch]
    return sample_groups(policy.model, prompts, keys, sampling)


def _scored(answer: Answer, mode: str, seconds: float) -> Scored:
    verdict = answer.verdict
    return Scored(
        task=answer.task.id,
        family=answer.task.family,
        mode=mode,
        sample=answer.sample,
        outcome=verdict.outcome,
        bucket=verdict.bucket,
        completion=answer.text,
        tokens=len(answer.sampled.ids),
        log=verdict.log,
        seconds=seconds,
    )


def _too_long(task: Task, evaluation) -> list[Scored]:
    modes = [("greedy", 0)] * evaluation.greedy + [("sampled", sample) for sample in range(evaluation.samples)]
    log = "the prompt is longer than the policy takes"
    return [
        Scored(task.id, task.family, mode, sample, "failed", "prompt_too_long", "", 0, log, 0.0) for mode, sample in modes
    ]
