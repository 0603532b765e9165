"""Evaluating a cascade: every task written, annotated and proved, greedily and by sampling.

A greedy row is greedy in both roles; each sampled row has a body of its own, annotated once. Next to the cascade's
rates there are those of each role (rlvr_exp.evaluation.metrics.of_role), and the cascade's by length of the gold's body.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.evaluation.evaluate_policy import Progress
from rlvr_exp.evaluation.metrics import METRICS, EvalSample, Rate, rates_from
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

ROLE_METRICS = tuple(f"{role}/{metric}" for role in (WRITER, ANNOTATOR) for metric in ("pass_at_1", "pass_at_1_greedy"))
CASCADE_METRICS = (*METRICS, *ROLE_METRICS)
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
    prompt = {task.id: cascade.policies[WRITER].encode_prompt(cascade.domain.writer.prompt(task)) for task in tasks}
    for start in range(0, len(tasks), per_batch):
        batch = tasks[start : start + per_batch]
        fitting = [task for task in batch if len(prompt[task.id]) <= cascade.max_prompt_tokens]
        found = cascade_sample(cascade, [_request(seed, task, evaluation) for task in fitting])
        made = {one.request.task.id: one for one in found}
        rows += [row for task in batch for row in _scored(cascade, task, made.get(task.id), evaluation)]
        progress(start + len(batch), len(tasks))
    return rows


def _request(seed: int, task: Task, evaluation) -> CascadeRequest:
    """The greedy cascade, where there is one, comes first."""
    writer, annotator = (
        [None] * evaluation.greedy + [(seed, "evaluate", role, task.id, i) for i in range(evaluation.samples)]
        for role in (WRITER, ANNOTATOR)
    )
    return CascadeRequest(task, tuple(writer), tuple((key,) for key in annotator))


def _scored(cascade: Cascade, task: Task, made: Cascades | None, evaluation) -> list[EvalSample]:
    lines = cascade.domain.gold_body(task).strip().count("\n") + 1
    modes = [("greedy", 0)] * evaluation.greedy + [("sampled", i) for i in range(evaluation.samples)]
    if made is None:
        log, about = "the prompt is longer than the writer takes", {"body_proved": False, "lines": lines}
        return [
            EvalSample(task.id, task.family, mode, i, "failed", "prompt_too_long", "", 0, log, 0.0, about)
            for mode, i in modes
        ]
    results = [made.results(place)[0] for place in range(len(modes))]
    return [_row(mode, sample, lines, one) for (mode, sample), one in zip(modes, results, strict=True)]


def _row(mode: Any, sample: int, lines: int, one: CascadeResult) -> EvalSample:
    verdict = one.verdict
    tokens = sum(len(each.sampled.ids) for each in ((one.written,) if one.written else ()) + one.annotated)
    return EvalSample(
        task=one.task.id,
        family=one.task.family,
        mode=mode,
        sample=sample,
        outcome=verdict.outcome,
        bucket=verdict.bucket,
        completion=one.annotator_text,
        tokens=tokens,
        log=verdict.log,
        seconds=sum(one.seconds.values()),
        cascade={
            "written": one.writer_text,
            "body": one.body,
            "body_proved": one.body_proved,
            "failed_by": one.failed_by,
            "failure": one.failure,
            "attempts": len(one.annotated),
            "lines": lines,
        },
    )


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
