"""What can be wrong with the sampling of answers: empty, truncated, all alike, or sampled differently than in the
evaluation."""

import math
from collections import Counter
from collections.abc import Iterator

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.report.evidence import Evidence, Share, beginning, late, middle, onset, recent, share, some
from rlvr_exp.report.finding import Finding, Weight, weigh

EMPTY, TRUNCATED, ONE_TEXT = (0.8, 0.3), (0.85, 0.25), (0.85, 0.7)
"""(blocks, holds back): shares, by the low end of their interval."""
SURE = 0.02
"""Entropy of a token, in nats, below which little is left to choose, and"""
FALLEN = 0.1
"""the part of its first value that it must have fallen to."""
OPEN = 1.5
"""Entropy of a completion, in nats, above which groups of equal samples are no chance."""
WORSE = 0.5
"""Training's success as a part of the evaluation's, at the same weights, below which sampling is the cause."""
HOT = 1.5
"""A temperature above those in common use."""
DRAWING = ("temperature", "top_k", "top_p", "min_p", "stop")
OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "stop": []}


CUT = (0.8, 0.4)
"""(blocks, holds back): share of the completions that end at a stop text."""
SOLVES = 0.05
"""Share of passes, by the high end, below which what ends at a stop text does not pass."""
RANDOM, UNREADABLE = 5.0, 0.8
"""Entropy of a token, in nats, of a policy that has learned no text; the share of its answers that cannot be read."""


def sampling(seen: Evidence) -> Iterator[Finding]:
    yield from _cut_by_stop(seen)
    yield from _random(seen)
    yield from _empty(seen)
    yield from _drawn_otherwise(seen)
    yield from _hot(seen)
    yield from _alike(seen)
    yield from _truncated(seen)


def _empty(seen: Evidence) -> Iterator[Finding]:
    found = share(recent(seen.series), lambda one: one.empty)
    weight = weigh(found.low, *EMPTY)
    if weight is not None:
        yield Finding(
            "empty",
            f"Empty answers: {found} completions hold no text",
            "The policy ends its answer at once, so there is nothing to judge.",
            f"Look at the end-of-text token, at model.chat_template and at algorithm.stop={_stop(seen)}: a stop "
            "string that "
            "matches at once leaves nothing.",
            weight,
            onset(seen.series, lambda one: one.empty, EMPTY[1]),
            some(row for row in seen.samples if not row.completion.text.strip()),
        )


def _cut_by_stop(seen: Evidence) -> Iterator[Finding]:
    """Answers end at a stop text, and none of those passes."""
    rows, texts = seen.rollouts, tuple(filter(None, seen.option("algorithm.stop", []) or []))
    # A completion with such a text has ended there, wherever in its last token the text is.
    ended = [row for row in rows if any(text in row.completion.text for text in texts)]
    weight = weigh(Share(len(ended), len(rows)).low, *CUT)
    passed, unread = (
        Share(sum(holds(row) for row in ended), len(ended))
        for holds in (lambda row: row.completion.correct, lambda row: row.verdict.bucket == "parse")
    )
    if weight is None or passed.high > SOLVES:
        return
    yield Finding(
        "stop",
        f"Answers are cut by a stop text: {Share(len(ended), len(rows))} completions end at "
        f"algorithm.stop={_stop(seen)}",
        f"Of these {passed} pass, {unread} cannot be read as a program.",
        "Drop the stop text, or name one that follows a complete answer.",
        weight if unread.value > 0.5 else Weight.HOLDS_BACK,
        0,
        some(ended),
    )


def _random(seen: Evidence) -> Iterator[Finding]:
    """The initial policy has learned no text at all."""
    first = middle(seen.column("entropy")[:1])
    if seen.before is None or not first >= RANDOM or float(seen.option("algorithm.temperature", 1.0) or 1.0) >= HOT:
        return
    found = share([seen.before], lambda one: min(one.samples, one.met("parse", "truncated") + one.empty))
    if found.low < UNREADABLE:
        return
    scratch = " It was built with random weights: model.from_scratch=true." if seen.option("model.from_scratch") else ""
    yield Finding(
        "random_policy",
        f"The policy draws nearly at random: {first:.3g} nats a token before any update",
        f"{found} of its answers before training hold no program: no reward can tell them apart.{scratch}",
        "Begin with a policy that writes the language: model.path, model.name, or +stage=sft first. Of a checkpoint "
        "that should know it, see whether weights and tokenizer belong together.",
        Weight.BLOCKS,
        0,
        some(row for row in (*seen.rollouts, *seen.measured) if row.verdict.outcome == "failed"),
    )


def _truncated(seen: Evidence) -> Iterator[Finding]:
    found = share(recent(seen.series), lambda one: one.truncated)
    weight = weigh(found.low, *TRUNCATED)
    if weight is None:
        return
    limit = seen.option("model.max_completion_tokens")
    cut = [row for row in seen.samples if row.completion.truncated]
    yield Finding(
        "truncation",
        f"Truncation: {found} completions were cut at their limit of {limit} tokens",
        "An answer that is cut off is not judged and counts as failed, however good it was.",
        "Raise model.max_completion_tokens, or teach shorter answers first (+stage=sft); a policy that never ends its "
        "answer lacks its end-of-text token.",
        weight,
        onset(seen.series, lambda one: one.truncated, TRUNCATED[1]),
        some(cut),
    )


def _alike(seen: Evidence) -> Iterator[Finding]:
    """All members of a group are the same text: the policy has no entropy left, or the sampler repeats itself."""
    # An evaluation may sample each task once; only groups of training are meant to differ.
    found = share(recent(seen.step_counts, "groups"), lambda one: one.one_text, "groups")
    points = seen.column("entropy")
    first, last = middle(points[:1]), middle(late(points))
    length = middle(late(seen.column("tokens/completion_mean")))
    weight = weigh(found.low, *ONE_TEXT)
    if weight is not None and last * length > OPEN:
        yield _repeating(seen, found, weight, last, length)
        return
    # A token of low entropy is not an answer of low entropy: long answers can still all differ.
    differ = found.of > 0 and found.high < ONE_TEXT[1]
    if weight is None and not differ and last < min(SURE, FALLEN * first):
        weight = Weight.HOLDS_BACK
    if weight is not None:
        yield _collapsed(seen, found, weight, first, last)


def _repeating(seen: Evidence, found: Share, weight: Weight, entropy: float, length: float) -> Finding:
    return Finding(
        "repeats",
        f"The sampler repeats itself: in {found} groups all completions are one text",
        f"The policy's own entropy is {entropy:.3g} nats a token over {length:.3g} tokens: equal draws cannot be "
        "chance.",
        "Look at the sampler's seeds: each sample of a group needs a draw of its own.",
        weight,
        onset(seen.step_counts, lambda one: one.one_text, ONE_TEXT[1], "groups"),
        _of_one_text(seen),
    )


def _collapsed(seen: Evidence, found: Share, weight: Weight, first: float, last: float) -> Finding:
    begun = onset(seen.step_counts, lambda one: one.one_text, ONE_TEXT[1], "groups")
    if not found.of or found.low < ONE_TEXT[1]:
        points = seen.column("entropy")
        begun = next((step for step, value in points if value < min(SURE, FALLEN * first)), 0)
    same = f"in {found} groups all completions are one text" if found.of else "as the entropy says"
    entropy = "" if math.isnan(last) else f" Entropy of a token: {first:.3g} nats at first, {last:.3g} at last."
    drawing = ", ".join(f"algorithm.{name}={seen.option(f'algorithm.{name}')}" for name in _narrowing(seen))
    other = f"Draw more widely: {drawing} now. " if drawing else "A lower optimizer.lr, "
    return Finding(
        "entropy_collapse",
        f"Entropy collapse: {same}",
        "Where all answers to a prompt are the same, none is better than another and nothing is learned." + entropy,
        f"{other}{'Else a lower optimizer.lr, ' if drawing else ''}algorithm.entropy_coef or algorithm.kl_coef above "
        "0, a "
        "wider algorithm.clip_high; resume from a checkpoint before the collapse.",
        weight,
        begun,
        _of_one_text(seen),
    )


def _of_one_text(seen: Evidence) -> tuple[RolloutRow, ...]:
    texts: dict[tuple[int, int], set[str]] = {}
    for row in seen.rollouts:
        texts.setdefault((row.step, row.group), set()).add(row.completion.text)
    return some(row for row in reversed(seen.rollouts) if len(texts[row.step, row.group]) == 1)


def _narrowing(seen: Evidence) -> list[str]:
    return [name for name in DRAWING[:4] if seen.option(f"algorithm.{name}", OFF[name]) != OFF[name]]


def _drawn_otherwise(seen: Evidence) -> Iterator[Finding]:
    """The same weights do well in the evaluation and badly in the first steps: the difference is the sampling."""
    differing = [
        name
        for name in DRAWING
        if seen.option(f"algorithm.{name}", OFF[name]) != seen.option(f"evaluation.{name}", OFF[name])
    ]
    if not differing or seen.before is None or not seen.step_counts:
        return
    training, measured = (
        Share(sum(one.met("passed") for one in part), sum(one.samples - one.met("no_verdict") for one in part))
        for part in (beginning(seen.step_counts), [seen.before])
    )
    if training.of and measured.of and training.high < WORSE * measured.low:
        options = ", ".join(
            f"algorithm.{name}={seen.option(f'algorithm.{name}')} against "
            f"evaluation.{name}={seen.option(f'evaluation.{name}')}"
            for name in differing
        )
        first = {one.step for one in beginning(seen.step_counts)}
        yield Finding(
            "sampling",
            f"Answers are drawn otherwise than they are measured: {training.value:.0%} pass in training, "
            f"{measured.value:.0%} "
            "of the same policy's in the evaluation before",
            f"At the same weights only the draws differ: {options}. {_buckets(seen)}",
            "Bring the algorithm's sampling options near the evaluation's; a temperature of 1 and no filters are the "
            "policy's "
            "own distribution.",
            Weight.BLOCKS,
            0,
            some(row for row in seen.rollouts if row.step in first and row.verdict.outcome == "failed"),
        )


def _hot(seen: Evidence) -> Iterator[Finding]:
    """Tokens are sampled nearly at random, in training and in the evaluation alike."""
    temperature = float(seen.option("algorithm.temperature", 1.0) or 1.0)
    found = share(beginning(seen.step_counts), lambda one: one.met("parse", "truncated"))
    if temperature >= HOT and found.low > 0.4:
        yield Finding(
            "sampling",
            f"Answers are drawn nearly at random: algorithm.temperature={temperature:g}",
            f"{found} completions of the first steps hold no program. {_buckets(seen)}",
            "A temperature near 1 is the policy's own distribution.",
            Weight.BLOCKS,
            0,
            some(row for row in seen.rollouts if row.verdict.outcome == "failed"),
        )


def _buckets(seen: Evidence) -> str:
    met = sum((Counter(one.verdicts) for one in beginning(seen.step_counts)), Counter())
    return "First verdicts in training: " + ", ".join(f"{name} {count:,}" for name, count in met.most_common(4)) + "."


def _stop(seen: Evidence) -> str:
    return str(seen.option("algorithm.stop", []))
