"""Causes before the verdict: tasks and prompts, and the sampling of answers."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import methodcaller
from statistics import fmean
from typing import Any

from rlvr_exp.core.statistics import difference_error, t_quantile
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.cause import Cause, Counted, Sign, Weight, weigh
from rlvr_exp.report.causes.proposals import (
    all_data,
    checked_answers,
    easier,
    fixed,
    longer_answers,
    longer_prompts,
    lower_rate,
    no_stop,
    own_distribution,
    together,
)
from rlvr_exp.report.causes.verdicts import SOLVES, is_program
from rlvr_exp.report.data import is_empty
from rlvr_exp.report.evidence import LEAST, OFF, Evidence, Share, beginning, recent, share

SHORTEST = 20
"""Characters of a reference answer that a prompt does not contain by chance."""
PAIR = 2
"""Least number of prompts in both splits that is not chance, and least number of training tasks."""
CERTAIN = 0.9975
"""One-sided level of the difference of two success rates: 2.8 standard errors of many groups, 4 of eight."""
APART, NEVER = 0.55, 0.02
"""The tasks differ if one success rate is below this part of the other at the same weights. Below NEVER nothing can be learned."""
FEW = 8
"""Least number of groups for a success rate."""
TWICE = re.compile(r"(<\|\w+\|>|\[INST\]|<s>|<start_of_turn>)(\w*\s*)\1\2")
"""A mark of a chat template, and the role after it, twice in a row."""
TOO_LONG = "Or shorten the prompts."


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


def _one_family(seen: Evidence) -> Sign | None:
    """Training tasks of one family, of which few held-out tasks are."""
    trained, held_out = (
        {row.completion.task.id: row.completion.task.family for row in rows} for rows in (seen.rollouts, seen.measured)
    )
    (family, count), *_ = [*Counter(trained.values()).most_common(1), ("", 0)]
    measured = Share(sum(one == family for one in held_out.values()), len(held_out))
    if count < FEWEST_ALIKE or measured.high > FEW_HELD_OUT or seen.class_of("curriculum") != "Uniform":
        return None
    return Sign(Share(count, len(trained)), facts={"family": family, "measured": measured})


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


def _other_tasks(harder: bool) -> Callable[[Evidence], Sign | None]:
    """Success in the first steps against that of the same policy, sampled alike, on the held-out tasks."""

    def measure(seen: Evidence) -> Sign | None:
        before = seen.before
        if before is None or not seen.comparable or seen.drawn_otherwise or before.met("prompt_too_long"):
            return None
        steps = beginning(seen.step_counts, "groups")
        training, held_out = [value for one in steps for value in one.group_success], before.group_success
        if min(len(training), len(held_out)) < FEW:
            return None
        here, there = fmean(training), fmean(held_out)
        low, high = sorted((here, there))
        errors = t_quantile(CERTAIN, min(len(training), len(held_out)) - 1)
        if harder is not (here < there) or low >= APART * high:
            return None
        if high - low < errors * difference_error(training, held_out):
            return None
        facts = {"training": here, "held_out": there, "groups": len(training), "tasks": len(held_out)}
        rows = [row for row in seen.rollouts if row.completion.correct is not harder]
        weight = Weight.BLOCKS if here < NEVER else Weight.HOLDS_BACK
        return Sign(weight=weight, effect=1 - low / high, rows=rows, facts=facts)

    return measure


OF_TASKS = (
    Cause("template", _doubled,
        "Duplicate chat template: {share} prompts contain a template mark twice in a row",
        "The data already contains a chat template, and the tokenizer adds another. The policy has never seen such text.",
        "Or use data without a template.", fixed(model__chat_template="never"),
        (0.5, 0.2), explains=("parse", "none_pass", "dead_failed", "truncation", "no_end")),
    Cause("leak", _leaked,
        "Leaked answers: the prompts of {share} tasks contain the reference answer",
        "The policy can copy the answer, so success says nothing about tasks without it.",
        "Remove the answer from the prompts, shots included.", fixed(data__prompt__shots=0), (0.5, 0.2), doubts=True),
    Cause("duplicates", _alike,
        "Duplicate prompts: {share} training tasks have the same prompt as another task",
        "The {tasks:,} tasks have only {prompts:,} different prompts, so each step samples the same prompt many times.",
        "Remove duplicates from the data, or check whether the prompt omits the part that distinguishes its tasks.",
        levels=(0.8, 0.3), explains=("one_answer", "overfit", "trained_on_held_out", "other_tasks")),
    Cause("duplicates", _one_task,
        "Single training task: all {groups:,} groups sample the same task",
        "The policy learns the answer to this task. Success in training says nothing about other tasks.",
        "Use more data. The manifest has the number of training tasks.", all_data,
        (0.8, 0.5), explains=(
            "one_answer", "overfit", "dead_solved", "dead_failed", "entropy_collapse", "few_tasks", "other_tasks",
        )),
    Cause("one_family", _one_family,
        "One family of training tasks: {share} are of {family}",
        "Of the held-out tasks {measured} are. A policy that learns this family does not learn the others.",
        "Train on more families.", all_data,
        (0.8, 0.6), explains=(
            "one_answer", "other_tasks", "dead_solved", "dead_failed", "entropy_collapse", "repeats", "few_tasks",
        )),
    Cause("trained_on_held_out", _copied,
        "Contaminated held-out split: {share} held-out prompts are also training prompts",
        "Both splits contain the same tasks under different names, so held-out success also measures memorization.",
        "Remove shared tasks from one split. Compare prompts, not names.", fixed(evaluation__split="test"),
        (0.5, 0.02), doubts=True),
    Cause("prompts_too_long", _left_out,
        "Prompts too long: {share} training tasks are left out",
        "The policy trains on the {kept:,} tasks with the shortest prompts. In evaluations, the other tasks fail with "
        "prompt_too_long.",
        TOO_LONG, longer_prompts, (0.9, 0.5)),
    Cause("prompts_too_long", _held_out_too_long,
        "Prompts too long: {share} held-out answers failed with prompt_too_long",
        "The policy never sees these tasks. They count as failed before and after training, which limits the rates.",
        TOO_LONG, longer_prompts, (0.9, 0.1)),
)  # fmt: skip

SAME_POLICY = (
    "The same weights and sampling options answered {groups} training groups and {tasks} held-out tasks. The tasks "
    "differ, or the criterion for their answers does."
)
OTHER_TASKS = (
    Cause("other_tasks", _other_tasks(harder=True),
        "Training tasks are far harder than held-out tasks: {training:.0%} pass in the first steps, {held_out:.0%} held out",
        SAME_POLICY,
        "Check the reference answers of the training tasks with +stage=validate, or train on tasks like the held-out ones.",
        together(checked_answers, easier), explains=("none_pass", "dead_failed", "few_mixed", "reward_hacking")),
    Cause("other_tasks", _other_tasks(harder=False),
        "Training tests are weaker than held-out tests: {training:.0%} pass in the first steps, {held_out:.0%} held out",
        SAME_POLICY,
        "Read passed training answers: tests that pass wrong answers teach them. +stage=validate counts wrong programs "
        "that pass. Otherwise train on tasks like the held-out ones.", checked_answers, explains=("dead_solved", "overfit")),
)  # fmt: skip


FEWEST_ALIKE, FEW_HELD_OUT = 5, 0.4
"""Training tasks of one family that are no chance, and the largest share of held-out tasks of it, by the high end."""
ONE_TEXT = (0.85, 0.7)
"""(blocks, holds back): share of groups whose completions are one text."""
CUT, INSIDE = 0.5, 0.3
"""Answers that a stop text cuts pass less than CUT times as often as others. INSIDE: share of reference answers that it cuts, or of
answers without a program."""
SURE, FALLEN = 0.02, 0.1
"""A collapse has an entropy per token below SURE nats, and below this part of the first value."""
OPEN = 1.5
"""With a higher entropy per completion, in nats, groups of equal samples are not chance."""
WORSE = 0.5
"""Sampling is the cause if success under one setting is below this part of the other at the same weights."""
HOT, COLD, NUCLEUS = 1.5, 0.5, 0.7
"""Temperatures above and below those in common use, and a share of the probability below those in common use."""
SOME = 0.3
"""Share of groups of one text from which on narrow options are the reason of equal rewards."""
ENDS = ("\n```", "\n\n\n", "\n\n")
"""Texts that may follow a complete answer."""
RANDOM = 5.0
"""Entropy of a token, in nats, of a policy that has learned no text."""
COMPLETE = 0.8
"""Share of programs among answers that reached their limit: of those cut at any place many can be parsed, not nearly all."""
LONGER = 2
"""An answer that is so many times as long as the reference answer is complete."""


def _cut_by_stop(seen: Evidence) -> Sign | None:
    """Answers end at a stop text and pass far more seldom than others. Or it stands inside of correct answers or leaves no
    program, and they hardly ever pass; or both."""
    texts = tuple(filter(None, seen.option("algorithm.stop", []) or []))
    # A completion with such a text has ended there, wherever in its last token the text is.
    ended, rest = (
        [row for row in seen.rollouts if any(text in row.completion.text for text in texts) is stopped]
        for stopped in (True, False)
    )
    passed, others = (Share(sum(row.completion.correct for row in part), len(part)) for part in (ended, rest))
    unread = Share(sum(row.verdict.bucket == "parse" for row in ended), len(ended))
    inside = Share(sum(_holds(gold, texts) for gold in seen.golds.values()), len(seen.golds))
    hardly = (passed.high <= SOLVES and max(unread.low, inside.low) > INSIDE) or min(unread.low, inside.low) > INSIDE
    if not hardly and passed.high > CUT * others.low:
        return None
    found = Share(len(ended), len(seen.rollouts))
    weight = weigh(Sign(found), 0.8 if hardly else 2.0, 0.1)
    return Sign(found, weight, rows=ended, facts={"passed": passed, "unread": unread}) if weight else None


def _holds(gold: str, texts: Sequence[str]) -> bool:
    """Whether a reference answer goes on after one of the texts."""
    return any(gold.rstrip().partition(text)[2] for text in texts)


def _random(seen: Evidence) -> Sign | None:
    """The initial policy has learned no text at all."""
    first, _ = seen.ends("entropy")
    if seen.before is None or not first >= RANDOM or seen.number("algorithm.temperature", 1.0) >= HOT:
        return None
    first_answers = [seen.before, *beginning(seen.step_counts)]
    found = share(first_answers, methodcaller("unread", "parse", "truncated"))
    scratch = "Its initial weights are random: model.from_scratch=true." if seen.option("model.from_scratch") else ""
    return Sign(found, rows=seen.failed(), facts={"entropy": first, "scratch": scratch})


def _drawn_otherwise(seen: Evidence) -> Sign | None:
    """The same weights do well when drawn in one way and badly in the other."""
    names = seen.drawn_otherwise
    if not names or seen.before is None or not seen.step_counts:
        return None
    first = beginning(seen.step_counts)
    training, measured = (
        Share(sum(one.met("passed") for one in part), sum(one.samples - one.met("no_verdict") for one in part))
        for part in (first, [seen.before])
    )
    worse, better = sorted((training, measured), key=lambda one: one.value)
    if not (training.of and measured.of and worse.high < WORSE * better.low):
        return None
    options = ", ".join(
        f"{node}.{name}={seen.option(f'{node}.{name}')}" for name in names for node in ("algorithm", "evaluation")
    )
    steps = {one.step for one in first}
    rows = [row for row in seen.rollouts if row.step in steps and row.verdict.outcome == "failed"]
    facts = {"training": training.value, "measured": measured.value, "options": options, **_verdicts(seen)}
    return Sign(weight=Weight.BLOCKS, rows=rows if worse is training else seen.measured, facts=facts)


def _hot(seen: Evidence) -> Sign | None:
    """Tokens are sampled nearly at random, in training and in the evaluation alike."""
    if seen.number("algorithm.temperature", 1.0) < HOT:
        return None
    found = share(beginning(seen.step_counts), methodcaller("met", "parse", "truncated"))
    return Sign(found, rows=seen.failed(), facts=_verdicts(seen))


def _too_narrow(seen: Evidence) -> Sign | None:
    """A temperature or a filter leaves many groups with one text, and most with one reward."""
    drawn = {name: seen.option(f"algorithm.{name}", off) for name, off in list(OFF.items())[:4]}
    narrow = {
        "temperature": drawn["temperature"] < COLD, "top_p": drawn["top_p"] < NUCLEUS, "min_p": drawn["min_p"] > 0.2,
        "top_k": 0 < drawn["top_k"] <= 3,
    }  # fmt: skip
    options = ", ".join(f"algorithm.{name}={drawn[name]}" for name, is_narrow in narrow.items() if is_narrow)
    if not options:
        return None
    alike, rows = _one_text(seen).share, _one_text(seen).rows
    dead = share(recent(seen.step_counts, "groups"), lambda one: one.dead_failed + one.dead_solved, "groups")
    found, what = max(((alike, "the same text"), (dead, "the same reward")), key=lambda pair: pair[0].low)
    if alike.value < SOME:
        return None
    return Sign(found, rows=rows, facts={"options": options, "what": what})


def _verdicts(seen: Evidence) -> Mapping[str, Any]:
    met = sum((Counter(one.verdicts) for one in beginning(seen.step_counts)), Counter[str]())
    return {"verdicts": ", ".join(f"{name} {count:,}" for name, count in met.most_common(4))}


def _cut_by_limit(seen: Evidence) -> Sign:
    """The last answers; in a run that gained nothing, all answers if that is more, since a policy learns to be short."""
    of_last = Counted(lambda one: one.truncated, lambda row: row.completion.truncated)(seen)
    whole = share(seen.series, lambda one: one.truncated)
    return of_last if seen.rose or whole.low <= of_last.share.low else replace(of_last, share=whole)


def _endless(seen: Evidence) -> Sign | None:
    """No answer ends, although it is complete: longer than the reference answer, or a program. Those of a policy that has learned no
    text are neither."""
    if seen.imitates and seen.ends("loss")[1] >= RANDOM:
        return None
    found = share(seen.series, lambda one: one.truncated)
    cut = [row for row in seen.samples if row.completion.truncated]
    done = Share(sum(_is_complete(row, seen) for row in cut), len(cut))
    if done.low < 0.5 or done.value < COMPLETE:
        return None
    return Sign(found, rows=cut, facts={"done": done})


def _is_complete(row: RolloutRow, seen: Evidence) -> bool:
    text, gold = row.completion.text, seen.golds.get(row.completion.task.id, "")
    return is_program(text) or bool(gold.strip() and len(text) >= LONGER * len(gold))


def ending(seen: Evidence) -> Mapping[str, Any]:
    """The text that follows most complete answers."""
    cut = [row.completion.text for row in seen.samples if row.completion.truncated]
    found = next((text for text in ENDS if sum(text in one for one in cut) > len(cut) / 2), "")
    return {"algorithm.stop": [found], "evaluation.stop": [found]} if found else {}


def _repeating(seen: Evidence) -> Sign | None:
    """All members of a group are the same text, though the policy has entropy left: the sampler repeats itself."""
    (_, last), (_, length) = seen.ends("entropy"), seen.ends("tokens/completion_mean")
    if not last * length > OPEN:
        return None
    sign = _one_text(seen)
    return Sign(sign.share, onset=sign.onset, rows=sign.rows, facts={"entropy": last, "length": length})


def _one_text(seen: Evidence) -> Sign:
    # An evaluation may sample each task once; only groups of training are meant to differ.
    texts: dict[tuple[int, int], set[str]] = defaultdict(set)
    for row in seen.rollouts:
        texts[row.step, row.group].add(row.completion.text)
    rows = [row for row in reversed(seen.rollouts) if len(texts[row.step, row.group]) == 1]
    sign = Counted(lambda one: one.one_text, lambda row: False, "groups")(seen)
    return Sign(sign.share, onset=sign.onset, rows=rows)


def _collapsed(seen: Evidence) -> Sign | None:
    """No entropy is left: groups have one text, or the entropy is low and the groups do not contradict it."""
    sign, points, (first, last) = _one_text(seen), seen.column("entropy"), seen.ends("entropy")
    weight, begun = weigh(sign, *ONE_TEXT), sign.onset
    # A token of low entropy is not an answer of low entropy: long answers can still all differ.
    if weight is None and last < min(SURE, FALLEN * first) and (sign.share.value >= 0.5 or not sign.share.of):
        weight = Weight.HOLDS_BACK
        begun = next((step for step, value in points if value < min(SURE, FALLEN * first)), 0)
    facts = {
        "same": f"in {sign.share} groups all completions have the same text" if sign.share.of else "low entropy",
        "entropy": seen.entropies,
    }
    return Sign(sign.share, weight, begun, sign.rows, facts) if weight else None


OF_DRAWS = (
    Cause("stop", _cut_by_stop,
        "Stop text inside answers: {share} completions end at algorithm.stop={option[algorithm.stop]}",
        "Of these, {passed} pass and {unread} cannot be parsed as a program.",
        "Or use a stop text that follows a complete answer.", no_stop,
        explains=("parse", "alike", "dead_failed", "other_tasks", "sampling", "none_pass")),
    Cause("random_policy", _random,
        "Nearly random policy: {entropy:.3g} nats per token before any update",
        "{share} answers before training contain no program, so no reward can distinguish them. {scratch}",
        "Start from a policy that knows the language, or imitate answers first (+stage=sft). For a trained checkpoint, "
        "check that weights and tokenizer match.", fixed(model__from_scratch=False, model__random_weights=False),
        (0.8, 0.8), explains=("truncation", "parse", "no_end", "none_pass", "dead_failed", "unmoved")),
    Cause("sampling", _drawn_otherwise,
        "Different sampling in training and evaluation: {training:.0%} pass in training, {measured:.0%} in the evaluation "
        "before",
        "The weights are the same and the sampling options differ: {options}. First verdicts in training: {verdicts}.",
        "A temperature of 1 without filters samples the policy's own distribution.", own_distribution),
    Cause("sampling", _hot,
        "Nearly random sampling: algorithm.temperature={option[algorithm.temperature]}",
        "{share} completions of the first steps contain no program. First verdicts in training: {verdicts}.",
        "A temperature of 1 samples the policy's own distribution.", own_distribution, (0.4, 0.4)),
    Cause("sampling", _too_narrow,
        "Too narrow sampling: in {share} groups all completions have {what}",
        "{options} leaves the members of a group alike, and equal answers have equal rewards.",
        "A temperature of 1 without filters samples the policy's own distribution.", own_distribution, (0.85, 0.5),
        explains=("entropy_collapse", "repeats", "dead_failed", "dead_solved", "few_mixed", "no_gradient")),
    Cause("empty", Counted(lambda one: one.empty, is_empty),
        "Empty answers: {share} completions",
        "The policy ends its answer immediately, so the verifier has nothing to judge.",
        "Check the end-of-text token and the chat template. A stop text that matches at once leaves an empty answer.",
        no_stop, (0.8, 0.3)),
    Cause("repeats", _repeating,
        "Repeated samples: in {share} groups all completions have the same text",
        "The policy's entropy is {entropy:.3g} nats per token over {length:.3g} tokens, so equal samples are not chance.",
        "Check the sampler's seeds: each sample of a group needs its own random draw.", own_distribution,
        ONE_TEXT, explains=("entropy_collapse", "dead_failed", "dead_solved")),
)  # fmt: skip

OF_ANSWERS = (
    Cause("entropy_collapse", _collapsed,
        "Entropy collapse: {same}",
        "If all answers to a prompt are equal, no answer is better than another and the policy learns nothing. {entropy}",
        "Resume from a checkpoint before the collapse.",
        together(own_distribution, lower_rate, fixed(algorithm__entropy_coef=0.003)), ONE_TEXT,
        explains=("dead_failed", "dead_solved", "few_mixed")),
    Cause("no_end", _endless,
        "Missing end of text: {share} completions contain a complete answer and reached the limit of "
        "{option[model.max_completion_tokens]} tokens",
        "Of the examined completions, {done} contain a program, or more text than the reference answer. The policy "
        "writes its answer and never the end-of-text token.",
        "Check that the end-of-text token of tokenizer_config.json and generation_config.json is the one that the model "
        "learned, and check the chat template. Or stop at a text that ends an answer.", ending,
        (0.95, 0.9), explains=("truncation", "dead_failed", "none_pass")),
    Cause("truncation", _cut_by_limit,
        "Truncation: {share} completions reached the limit of {option[model.max_completion_tokens]} tokens",
        "A truncated answer is not judged and counts as failed.",
        "Or teach shorter answers first (+stage=sft). A policy that never ends its answer lacks its end-of-text token.",
        longer_answers, (0.85, 0.25), explains=("dead_failed", "none_pass", "few_mixed", "other_tasks")),
)  # fmt: skip
