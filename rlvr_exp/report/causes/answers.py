"""What can be wrong with the sampling of answers: cut off, empty, all alike, or drawn otherwise than in the evaluation."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from operator import methodcaller
from typing import Any

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.cause import Cause, Counted, Sign, Weight, weigh
from rlvr_exp.report.causes.verdicts import SOLVES, is_program
from rlvr_exp.report.evidence import OFF, Evidence, Share, beginning, share
from rlvr_exp.report.step_counts import is_empty

ONE_TEXT = (0.85, 0.7)
"""(blocks, holds back): share of groups whose completions are one text."""
SURE, FALLEN = 0.02, 0.1
"""Entropy of a token, in nats, below which little is left to choose; the part of its first value that it must have fallen
to."""
OPEN = 1.5
"""Entropy of a completion, in nats, above which groups of equal samples are no chance."""
WORSE = 0.5
"""Success drawn in one way as a part of that drawn in the other, at the same weights, below which sampling is the cause."""
HOT = 1.5
"""A temperature above those in common use."""
RANDOM = 5.0
"""Entropy of a token, in nats, of a policy that has learned no text."""
COMPLETE = 0.8
"""Share of programs among answers that reached their limit: of those cut at any place many can be parsed, not nearly all."""
LONGER = 2
"""An answer that is so many times as long as the gold was not cut short."""


def _cut_by_stop(seen: Evidence) -> Sign | None:
    """Answers end at a stop text, and none of those passes."""
    rows, texts = seen.rollouts, tuple(filter(None, seen.option("algorithm.stop", []) or []))
    # A completion with such a text has ended there, wherever in its last token the text is.
    ended = [row for row in rows if any(text in row.completion.text for text in texts)]
    passed, unread = (
        Share(sum(holds(row) for row in ended), len(ended))
        for holds in (lambda row: row.completion.correct, lambda row: row.verdict.bucket == "parse")
    )
    if passed.high > SOLVES:
        return None
    found = Share(len(ended), len(rows))
    weight = weigh(Sign(found), 0.8 if unread.value > 0.5 else 2.0, 0.4)
    return Sign(found, weight, rows=ended, facts={"passed": passed, "unread": unread}) if weight else None


def _random(seen: Evidence) -> Sign | None:
    """The initial policy has learned no text at all."""
    first, _ = seen.ends("entropy")
    if seen.before is None or not first >= RANDOM or seen.number("algorithm.temperature", 1.0) >= HOT:
        return None
    found = share([seen.before], methodcaller("unread", "parse", "truncated"))
    scratch = "It was built with random weights: model.from_scratch=true." if seen.option("model.from_scratch") else ""
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


def _verdicts(seen: Evidence) -> Mapping[str, Any]:
    met = sum((Counter(one.verdicts) for one in beginning(seen.step_counts)), Counter[str]())
    return {"verdicts": ", ".join(f"{name} {count:,}" for name, count in met.most_common(4))}


def _endless(seen: Evidence) -> Sign | None:
    """No answer ends, though what stands in them is complete: longer than the gold, or a program."""
    found = share(seen.series, lambda one: one.truncated)
    cut = [row for row in seen.samples if row.completion.truncated]
    done = Share(sum(_is_complete(row, seen) for row in cut), len(cut))
    if done.low < 0.5 or done.value < COMPLETE:
        return None
    return Sign(found, rows=cut, facts={"done": done})


def _is_complete(row: RolloutRow, seen: Evidence) -> bool:
    text, gold = row.completion.text, seen.golds.get(row.completion.task.id, "")
    return is_program(text) or bool(gold.strip() and len(text) >= LONGER * len(gold))


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
    """No entropy is left: groups are of one text; or by the entropy alone, where the groups do not speak against it."""
    sign, points, (first, last) = _one_text(seen), seen.column("entropy"), seen.ends("entropy")
    weight, begun = weigh(sign, *ONE_TEXT), sign.onset
    # A token of low entropy is not an answer of low entropy: long answers can still all differ.
    if weight is None and last < min(SURE, FALLEN * first) and (sign.share.value >= 0.5 or not sign.share.of):
        weight = Weight.HOLDS_BACK
        begun = next((step for step, value in points if value < min(SURE, FALLEN * first)), 0)
    narrow = [name for name in list(OFF)[:4] if seen.option(f"algorithm.{name}", OFF[name]) != OFF[name]]
    drawing = ", ".join(f"algorithm.{name}={seen.option(f'algorithm.{name}')}" for name in narrow)
    facts = {
        "same": f"in {sign.share} groups all completions are one text" if sign.share.of else "as the entropy says",
        "entropy": seen.entropies,
        "wider": f"Draw more widely: {drawing} now. Else a lower" if drawing else "A lower",
    }
    return Sign(sign.share, weight, begun, sign.rows, facts) if weight else None


OF_DRAWS = (
    Cause("stop", _cut_by_stop,
        "Answers are cut by a stop text: {share} completions end at algorithm.stop={option[algorithm.stop]}",
        "Of these {passed} pass, {unread} cannot be read as a program.",
        "Drop the stop text, or name one that follows a complete answer."),
    Cause("random_policy", _random,
        "The policy draws nearly at random: {entropy:.3g} nats a token before any update",
        "{share} of its answers before training hold no program: no reward can tell them apart. {scratch}",
        "Begin with a policy that writes the language: model.path, model.name, or +stage=sft first. Of a checkpoint "
        "that should know it, see whether weights and tokenizer belong together.", (0.8, 0.8)),
    Cause("sampling", _drawn_otherwise,
        "Answers are drawn otherwise than they are measured: {training:.0%} pass in training, {measured:.0%} of the "
        "same policy's in the evaluation before",
        "At the same weights only the draws differ: {options}. First verdicts in training: {verdicts}.",
        "Bring the sampling options of algorithm and evaluation near each other; a temperature of 1 and no filters are "
        "the policy's own distribution."),
    Cause("sampling", _hot,
        "Answers are drawn nearly at random: algorithm.temperature={option[algorithm.temperature]}",
        "{share} completions of the first steps hold no program. First verdicts in training: {verdicts}.",
        "A temperature near 1 is the policy's own distribution.", (0.4, 0.4)),
    Cause("empty", Counted(lambda one: one.empty, is_empty),
        "Empty answers: {share} completions hold no text",
        "The policy ends its answer at once, so there is nothing to judge.",
        "Look at the end-of-text token, at model.chat_template and at algorithm.stop={option[algorithm.stop]}: a stop "
        "string that matches at once leaves nothing.", (0.8, 0.3)),
    Cause("repeats", _repeating,
        "The sampler repeats itself: in {share} groups all completions are one text",
        "The policy's own entropy is {entropy:.3g} nats a token over {length:.3g} tokens: equal draws cannot be "
        "chance.",
        "Look at the sampler's seeds: each sample of a group needs a draw of its own.",
        ONE_TEXT, explains=("entropy_collapse",)),
)  # fmt: skip

OF_ANSWERS = (
    Cause("entropy_collapse", _collapsed,
        "Entropy collapse: {same}",
        "Where all answers to a prompt are the same, none is better than another and nothing is learned. {entropy}",
        "{wider} optimizer.lr, algorithm.entropy_coef or algorithm.kl_coef above 0, a wider algorithm.clip_high; "
        "resume from a checkpoint before the collapse.", ONE_TEXT, explains=("dead_failed", "dead_solved")),
    Cause("no_end", _endless,
        "Answers do not end: {share} completions reached their limit of {option[model.max_completion_tokens]} tokens, "
        "with a complete answer in them",
        "Of those examined {done} hold a program, or more text than the gold: the policy writes its answer and never "
        "the token that ends one.",
        "See that the end-of-text token of tokenizer_config.json and generation_config.json is the one that the model "
        "learned to write, and model.chat_template; or name a text that ends an answer (algorithm.stop, "
        "evaluation.stop).", (0.95, 0.9), explains=("truncation", "dead_failed", "none_pass")),
    Cause("truncation", Counted(lambda one: one.truncated, lambda row: row.completion.truncated),
        "Truncation: {share} completions were cut at their limit of {option[model.max_completion_tokens]} tokens",
        "An answer that is cut off is not judged and counts as failed, however good it was.",
        "Raise model.max_completion_tokens, or teach shorter answers first (+stage=sft); a policy that never ends its "
        "answer lacks its end-of-text token.", (0.85, 0.25)),
)  # fmt: skip
