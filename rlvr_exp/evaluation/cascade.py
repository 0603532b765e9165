"""Evaluating a cascade: every task written, annotated and proved, greedily and by sampling.

A greedy row is greedy in both roles; each sampled row has a body of its own, annotated once. Next to the cascade's
rates there are those of each role (rlvr_exp.evaluation.metrics.of_role), and the cascade's by length of the gold's body.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvr_exp.episodes.types import Completion, TokenCount, unsampled
from rlvr_exp.evaluation.evaluate_policy import Progress, eval_sample
from rlvr_exp.evaluation.metrics import METRICS, Rate, rates_from
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.rollouts.cascade import (
    ANNOTATOR,
    WRITER,
    Cascade,
    CascadeRequest,
    CascadeResult,
    Cascades,
    cascade_sample,
)
from rlvr_exp.tasks.base import Task
from rlvr_exp.verifiers.base import Verdict

ROLE_METRICS = tuple(f"{role}/{metric}" for role in (WRITER, ANNOTATOR) for metric in ("pass_at_1", "pass_at_1_greedy"))
CASCADE_METRICS = (*METRICS, *ROLE_METRICS)
TOO_LONG = Verdict("failed", bucket="prompt_too_long", log="the prompt is longer than the writer takes")
LENGTHS = (3, 6, 12)
"""Upper limits of the groups by length: lines of a gold's body."""


def evaluate_cascade(
    cascade: Cascade, tasks: Sequence[Task], evaluation, seed: int, progress: Progress
) -> list[EvalSample]:
    """Sample `tasks` by the `evaluation` configuration node; draws depend on (seed, role, task, sample) alone.

    Args:
        progress: called with (tasks answered, all tasks) after each batch.
    """
    rows: list[EvalSample] = []
    per_batch = max(1, evaluation.batch_size // (evaluation.samples + evaluation.greedy))
    prompts = {task.id: cascade.domain.writer.prompt(task) for task in tasks}
    sizes = {name: len(cascade.policies[WRITER].encode_prompt(text)) for name, text in prompts.items()}
    for start in range(0, len(tasks), per_batch):
        batch = tasks[start : start + per_batch]
        fitting = [task for task in batch if sizes[task.id] <= cascade.max_prompt_tokens]
        found = cascade_sample(cascade, [_request(seed, task, evaluation) for task in fitting])
        made = {one.request.task.id: one for one in found}
        for task in batch:
            rows += _samples(cascade, task, prompts[task.id], made.get(task.id), evaluation)
        progress(start + len(batch), len(tasks))
    return rows


def _request(seed: int, task: Task, evaluation) -> CascadeRequest:
    """The greedy cascade, where there is one, comes first."""
    writer, annotator = (
        [None] * evaluation.greedy + [(seed, "evaluate", role, task.id, i) for i in range(evaluation.samples)]
        for role in (WRITER, ANNOTATOR)
    )
    return CascadeRequest(task, tuple(writer), tuple((key,) for key in annotator))


def _samples(cascade: Cascade, task: Task, prompt: str, made: Cascades | None, evaluation) -> list[EvalSample]:
    lines, found = cascade.domain.gold_body(task).strip().count("\n") + 1, []
    for place in range(evaluation.greedy + evaluation.samples):
        one = None if made is None else made.results(place)[0]
        completion = unsampled(task, place, TOO_LONG) if one is None else _completion(one, place)
        about = {"body_proved": False} if one is None else _about(one)
        found.append(eval_sample(completion, prompt, evaluation.greedy, {**about, "lines": lines}))
    return found


def _completion(one: CascadeResult, sample: int) -> Completion:
    """The last annotation under the cascade's verdict, with the tokens and seconds of both roles."""
    drawn = ((one.written,) if one.written else ()) + one.annotated
    count = TokenCount(sum(each.tokens for each in drawn), one.bucket == "truncated")
    last = one.annotated[-1] if one.annotated else unsampled(one.task, sample, one.verdict)
    return replace(
        last, task=one.task, sample=sample, sampled=count, verdict=one.verdict, seconds=sum(one.seconds.values())
    )


def _about(one: CascadeResult) -> dict[str, Any]:
    return {
        "written": one.writer_text,
        "body": one.body,
        "body_proved": one.body_proved,
        "failed_by": one.failed_by,
        "failure": one.failure,
        "attempts": len(one.annotated),
    }


def by_length(results: Sequence[EvalSample]) -> Mapping[str, Mapping[str, Rate]]:
    """The cascade's rates by the lines of the gold's body, short bodies first."""
    found: dict[int, list[EvalSample]] = defaultdict(list)
    for row in results:
        found[next((most for most in LENGTHS if row.cascade["lines"] <= most), 0)].append(row)
    names = {most: f"up to {most} lines" for most in LENGTHS} | {0: f"more than {LENGTHS[-1]} lines"}
    return {names[most]: rates_from(found[most]) for most in (*LENGTHS, 0) if most in found}


def failure_counts(results: Sequence[EvalSample]) -> dict[str, int]:
    """Cascades by who failed and how, of all modes."""
    counts: dict[str, int] = defaultdict(int)
    for row in results:
        who = row.cascade.get("failed_by")
        if who is not None:
            counts[f"{who}/{row.cascade['failure']}"] += 1
    return dict(sorted(counts.items()))
