"""What can be wrong with the tasks and their prompts: the answer stands in a prompt, prompts are the same, too long, or in
both splits; the training tasks are others than the held-out ones."""

import re
from collections import defaultdict
from statistics import fmean

from rlvr_exp.core.statistics import difference_error
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.cause import Cause, Sign, Weight
from rlvr_exp.report.evidence import LEAST, Evidence, Share, beginning

SHORTEST = 20
"""Characters of a gold that is in a prompt by no chance."""
PAIR = 2
"""Prompts in both splits that are no chance; tasks below which training knows hardly one thing."""
APART, EASY, NEVER = 0.5, 0.3, 0.02
"""Success in training as a part of the held-out tasks', at the same weights, below which the tasks differ in kind; success
in training beside next to none held out, likewise; next to none."""
FEW = 8
"""Groups below which success is chance."""
TWICE = re.compile(r"(<\|\w+\|>|\[INST\]|<s>|<start_of_turn>)(\w*\s*)\1\2")
"""A mark of a chat template, and the role after it, twice in a row."""
TOO_LONG = (
    "Raise model.max_prompt_tokens ({option[model.max_prompt_tokens]} now) as far as the policy takes, or word tasks more "
    "briefly (data.prompt)."
)


def _leaked(seen: Evidence) -> Sign:
    """Golds are known for the evaluated tasks; the domain words those and the training tasks alike."""
    golds = {task: text for task, gold in seen.golds.items() if len(text := gold.strip()) >= SHORTEST}
    rows = {row.completion.task.id: row for row in (*seen.measured, *seen.rollouts) if row.completion.task.id in golds}
    leaks = [row for row in rows.values() if golds[row.completion.task.id] in row.prompt]
    return Sign(Share(len(leaks), len(rows)), rows=leaks)


def _alike(seen: Evidence) -> Sign:
    tasks: dict[str, set[str]] = defaultdict(set)
    for row in seen.rollouts:
        tasks[row.prompt].add(row.completion.task.id)
    count = sum(map(len, tasks.values()))
    most = max(tasks, key=lambda prompt: len(tasks[prompt]), default="")
    return Sign(
        Share(count - len(tasks), count),
        rows=[row for row in seen.rollouts if row.prompt == most],
        facts={"prompts": len(tasks), "tasks": count},
    )


def _copied(seen: Evidence) -> Sign | None:
    """Held-out prompts that are trained on, under whatever names."""
    trained, held_out = ({row.prompt for row in rows} for rows in (seen.rollouts, seen.measured))
    both = trained & held_out
    if len(both) < PAIR:
        return None
    return Sign(Share(len(both), len(held_out)), rows=[row for row in seen.measured if row.prompt in both])


def _doubled(seen: Evidence) -> Sign:
    prompts = {row.prompt: row for row in (*seen.measured, *seen.rollouts)}
    twice = [row for prompt, row in prompts.items() if TWICE.search(prompt)]
    return Sign(Share(len(twice), len(prompts)), rows=twice)


def _one_task(seen: Evidence) -> Sign | None:
    tasks = {task for one in seen.step_counts for task in one.tasks}
    groups = sum(one.groups for one in seen.step_counts)
    if not 0 < len(tasks) < PAIR or groups < LEAST["groups"]:
        return None
    return Sign(Share(groups, groups), rows=seen.rollouts, facts={"groups": groups})


def _left_out(seen: Evidence) -> Sign:
    train = seen.manifest.get("train") or {}
    left, kept = int(train.get("left_out_prompt_too_long") or 0), int(train.get("tasks") or 0)
    return Sign(Share(left, left + kept), rows=_too_long(seen), facts={"kept": kept})


def _held_out_too_long(seen: Evidence) -> Sign:
    found = [one for one in (seen.before, seen.after) if one is not None]
    long, of = sum(one.met("prompt_too_long") for one in found), sum(one.samples for one in found)
    return Sign(Share(long, of), rows=_too_long(seen))


def _too_long(seen: Evidence) -> list[RolloutRow]:
    return [row for row in seen.measured if row.verdict.bucket == "prompt_too_long"]


def _other_tasks(seen: Evidence) -> Sign | None:
    """Success in the first steps against that of the same policy, sampled alike, on the held-out tasks."""
    if seen.before is None or seen.drawn_otherwise or seen.before.met("prompt_too_long"):
        return None
    steps = beginning(seen.step_counts, "groups")
    training, held_out = [value for one in steps for value in one.group_success], seen.before.group_success
    if min(len(training), len(held_out)) < FEW:
        return None
    here, there, start = fmean(training), fmean(held_out), fmean(steps[0].group_success or training)
    harder = max(here, start) < APART * there
    if not harder and not (there < NEVER and min(here, start) > EASY):
        return None
    if abs(here - there) < 3 * difference_error(training, held_out):
        return None
    return Sign(
        weight=Weight.BLOCKS if here < NEVER else Weight.HOLDS_BACK,
        rows=[row for row in seen.rollouts if row.completion.correct is not harder],
        facts={
            "training": here, "held_out": there, "kind": "harder" if harder else "easier", "groups": len(training),
            "tasks": len(held_out),
        },
    )  # fmt: skip


OF_TASKS = (
    Cause("template", _doubled,
        "The chat template stands twice: {share} prompts have one of its marks twice in a row",
        "The policy has seen no text of this form: the prompt holds a template already, and gets another.",
        "Give data without a template, or model.chat_template=never.",
        (0.5, 0.2), explains=("parse", "none_pass", "dead_failed", "truncation", "no_end")),
    Cause("leak", _leaked,
        "A leak: the gold answer stands in the prompt of {share} tasks",
        "The policy can copy what it is to find; success says nothing about tasks whose answer is not given.",
        "See how the prompt is worded (data=..., shots included), and leave the answer out.", (0.5, 0.2)),
    Cause("duplicates", _alike,
        "Duplicates: {share} of the training tasks examined have the same prompt as another task",
        "{prompts:,} different prompts stand under {tasks:,} names: each step samples the same thing many times over.",
        "Remove the duplicates from the data, or see whether the prompt leaves out what tells its tasks apart.",
        (0.8, 0.3), explains=("one_answer", "overfit", "trained_on_held_out")),
    Cause("duplicates", _one_task,
        "One task: all {groups:,} groups of training sample the same one",
        "What is learned is the answer to this task; success in training says nothing about others.",
        "More data: data.limit, data.path; see how many training tasks the manifest counts.",
        (0.8, 0.5), explains=("one_answer", "overfit", "dead_solved", "dead_failed", "entropy_collapse", "few_tasks")),
    Cause("trained_on_held_out", _copied,
        "Held out and trained on: {share} held-out prompts are prompts of training too",
        "The same tasks stand in both splits, under whatever names: held-out success measures memory as well, and says "
        "nothing about new tasks.",
        "Remove the shared tasks from one of the splits (data.path, evaluation.split), by what they ask, not by their "
        "names.", (0.5, 0.02)),
    Cause("prompts_too_long", _left_out,
        "Prompts are too long: {share} training tasks are left out",
        "What is learned from are the {kept:,} tasks with the shortest prompts; in evaluations the others fail by "
        "prompt_too_long.",
        TOO_LONG, (0.9, 0.5)),
    Cause("prompts_too_long", _held_out_too_long,
        "Prompts are too long: {share} held-out answers failed by prompt_too_long",
        "These tasks are never put to the policy, and count as failed before and after: what it learns of the others "
        "is all that the rates can show.",
        TOO_LONG, (0.9, 0.1)),
)  # fmt: skip

OTHER_TASKS = Cause("other_tasks", _other_tasks,
    "Training tasks are far {kind} than the held-out ones: {training:.0%} pass in the first steps, {held_out:.0%} of "
    "the same policy's held out",
    "The same weights, sampled alike, answered {groups} groups of training and {tasks} held-out tasks: what differs is "
    "the tasks, or what counts as right for them.",
    "Training tasks like the held-out ones (data=..., data.path, curriculum); +stage=validate shows whether the golds "
    "of the training tasks pass.", explains=("none_pass", "dead_failed"))  # fmt: skip
