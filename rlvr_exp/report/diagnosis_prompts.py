"""What can be wrong with the prompts: a prompt contains the answer, tasks have the same prompt, most tasks are too
long."""

from collections.abc import Iterator

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.evidence import Evidence, Share, some
from rlvr_exp.report.finding import Finding, weigh

LEAKED, ALIKE, LEFT_OUT = (0.5, 0.2), (0.8, 0.3), (0.9, 0.5)
"""(blocks, holds back): shares of tasks, by the low end of their interval."""
SHORTEST = 20
"""Characters of a gold that is in a prompt by no chance."""


def prompting(seen: Evidence) -> Iterator[Finding]:
    yield from _leaked(seen)
    yield from _alike(seen)
    yield from _too_long(seen)


def _leaked(seen: Evidence) -> Iterator[Finding]:
    """Golds are known for the evaluated tasks; the domain words those and the training tasks alike."""
    golds = {task: text for task, gold in seen.golds.items() if len(text := gold.strip()) >= SHORTEST}
    rows = {row.completion.task.id: row for row in (*seen.measured, *seen.rollouts) if row.completion.task.id in golds}
    leaks = [row for row in rows.values() if golds[row.completion.task.id] in row.prompt]
    weight = weigh(Share(len(leaks), len(rows)).low, *LEAKED)
    if weight is not None:
        yield Finding(
            "leak",
            f"A leak: the gold answer stands in the prompt of {Share(len(leaks), len(rows))} tasks",
            "The policy can copy what it is to find; success says nothing about tasks whose answer is not given.",
            "See how the prompt is worded (data=..., shots included), and leave the answer out.",
            weight,
            0,
            some(leaks),
        )


def _alike(seen: Evidence) -> Iterator[Finding]:
    prompts = {row.completion.task.id: row.prompt for row in seen.rollouts}
    found = Share(len(prompts) - len(set(prompts.values())), len(prompts))
    weight = weigh(found.low, *ALIKE)
    if weight is not None:
        yield Finding(
            "duplicates",
            f"Duplicates: {found} of the training tasks examined have the same prompt as another task",
            f"{len(set(prompts.values())):,} different prompts stand under {len(prompts):,} names: each step samples "
            "the same thing many times over.",
            "Remove the duplicates from the data, or see whether the prompt leaves out what tells its tasks apart.",
            weight,
            0,
            _of_one_prompt(seen),
        )


def _of_one_prompt(seen: Evidence) -> tuple[RolloutRow, ...]:
    tasks: dict[str, set[str]] = {}
    for row in seen.rollouts:
        tasks.setdefault(row.prompt, set()).add(row.completion.task.id)
    most = max(tasks, key=lambda prompt: len(tasks[prompt]))
    return some(row for row in seen.rollouts if row.prompt == most)


def _too_long(seen: Evidence) -> Iterator[Finding]:
    train = seen.manifest.get("train") or {}
    left, kept = int(train.get("left_out_prompt_too_long") or 0), int(train.get("tasks") or 0)
    weight = weigh(Share(left, left + kept).low, *LEFT_OUT)
    if weight is not None:
        yield Finding(
            "prompts_too_long",
            f"Prompts are too long: {Share(left, left + kept)} training tasks are left out",
            f"What is learned from are the {kept:,} tasks with the shortest prompts; in evaluations the others fail by "
            "prompt_too_long.",
            f"Raise model.max_prompt_tokens ({seen.option('model.max_prompt_tokens')} now) as far as the policy takes, "
            "or word tasks more briefly (data.prompt).",
            weight,
            0,
            some(row for row in seen.measured if row.verdict.bucket == "prompt_too_long"),
        )
