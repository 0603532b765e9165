"""Updates that break the policy: too large, from an entropy bonus, from weight decay; and their evidence."""

import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from rlvr_exp.report.evidence import Evidence, Trend, beginning, late, middle, share, some, trend
from rlvr_exp.report.finding import Finding, Weight
from rlvr_exp.report.step_counts import StepCounts

MOST_RATE = 1e-2
"""A rate of Adam's kind past any that trains a language model: ten times the largest in use."""
STRONG_BONUS = 0.05
"""Weight of the entropy bonus at which it can drown a reward."""
UNREADABLE, RANDOM = 0.3, 2.0
"""Gain of the share of answers that cannot be read, at which a policy is broken; growth of entropy that tells broken
answers from long ones."""
JUMP, LARGE_NORM = 30.0, 10.0
"""Growth of the gradient norm from a run's first step to its end that is no drift, and how large it must be then."""
LARGE_DECAY, TAKEN = 0.2, 0.1
"""Weight decay past any in use, and the part of all matrices that it must have taken."""
DROWNS = 0.5
"""A KL penalty, weight times distance, past which it outweighs what an answer can be paid."""
DECOUPLED = ("AdamW", "AdamW8bit", "Adafactor", "Muon")
ADAM = ("Adam", "AdamW", "AdamW8bit", "Muon")


def breaking(seen: Evidence) -> Iterator[Finding]:
    """For runs that train: at most one finding, by the cause that broke the policy."""
    unsound, broken = _not_finite(seen), _broken(seen)
    rate, large = _rate_in_words(seen)
    facts = [found[1] for found in (unsound, broken) if found] + _grown(seen)
    if not facts and large and _degenerate(seen):
        facts = ["Answers have become all alike within the steps since the rate rose."]
    decay = "" if unsound or large else _decay(seen, broken is not None)
    if not facts and not decay:
        return
    begun = min([found[0] for found in (unsound, broken) if found] or [_jump(seen)])
    bonus = float(seen.option("algorithm.entropy_coef", 0.0) or 0.0)
    cause, title, remedy = _exploding(seen, unsound is not None)
    if decay:
        cause, title = "weight_decay", "Weight decay takes the policy apart"
        remedy = "A smaller optimizer.weight_decay: 0 to 0.1 is usual; resume from a checkpoint before that step."
    elif broken and not unsound and not large and penalised(seen) > DROWNS:
        cause, title = "kl_holds", f"The KL penalty of {penalised(seen):.3g} drowns the reward; the policy breaks"
        remedy = f"A smaller algorithm.kl_coef ({seen.option('algorithm.kl_coef')} now): 0 to 0.05 is usual."
    elif broken and not unsound and not large and bonus >= STRONG_BONUS:
        cause = "entropy_bonus"
        title = f"The entropy bonus drowns the reward: algorithm.entropy_coef={bonus:g}; the policy breaks"
        remedy = "A smaller algorithm.entropy_coef: 0 to 0.01 is usual; resume from a checkpoint before that step."
    yield Finding(
        cause,
        f"{title} at step {begun}",
        " ".join(filter(None, [*facts, decay, rate])),
        remedy,
        Weight.BLOCKS,
        begun,
        some(row for row in reversed(seen.samples) if row.step >= begun and not row.completion.correct),
    )


def _exploding(seen: Evidence, unsound: bool) -> tuple[str, str, str]:
    what = "loss or gradient is not a number" if unsound else "the policy breaks"
    remedy = (
        f"A lower optimizer.lr ({seen.option('optimizer.lr')} now), a longer scheduler.warmup_steps, a smaller "
        "optimizer.max_grad_norm; resume from a checkpoint before that step."
    )
    return "exploding", f"Exploding updates: {what}", remedy


def penalised(seen: Evidence) -> float:
    """The KL penalty's part of the loss at the end, in units of a reward; 0 without a penalty."""
    return float(seen.option("algorithm.kl_coef", 0.0) or 0.0) * (middle(late(seen.column("kl")) or [(0, 0.0)]))


def _grown(seen: Evidence) -> list[str]:
    norms = seen.column("grad_norm")
    first, last = middle(norms[:1]), middle(late(norms))
    # A penalty that outweighs the reward has a gradient of its own size, and breaks nothing.
    grown = last > JUMP * first and last > LARGE_NORM and penalised(seen) < DROWNS
    return [f"The gradient's norm grew from {first:.3g} to {last:.3g}."] if grown else []


def _decay(seen: Evidence, broken: bool) -> str:
    """The effect of weight decay on a policy that got worse, in words; '' where it is small."""
    decay = float(seen.option("optimizer.weight_decay", 0.0) or 0.0)
    success = trend(seen.series, lambda one: one.group_success)
    worse = broken or (success is not None and success.fell) or any(one["high"] < 0 for one in seen.change.values())
    if not worse or decay < LARGE_DECAY:
        return ""
    kind = str(seen.option("optimizer._target_", "")).rsplit(".", 1)[-1]
    if kind not in DECOUPLED:
        return f"optimizer.weight_decay={decay:g} adds so many times the weights to their gradients."
    rates = seen.column("learning_rate")
    steps = [after - before for (before, _), (after, _) in pairwise([(0, 0.0), *rates])]
    taken = 1 - math.exp(-decay * sum(rate * count for (_, rate), count in zip(rates, steps, strict=True)))
    return f"optimizer.weight_decay={decay:g} took {taken:.0%} from every matrix." if taken >= TAKEN else ""


def _not_finite(seen: Evidence) -> tuple[int, str] | None:
    """The first step with a loss or gradient that is no number; the row has the metric, and null in its place."""
    rows: list[tuple[int, str]] = [
        (int(row["step"] or 0), name)
        for row in seen.metrics
        for name in ("loss", "grad_norm")
        if name in row and row[name] is None and not row.get("guard/reward")
    ]
    rows += [
        (step, "update") for name in ("guard/loss", "guard/gradient") for step, value in seen.column(name) if value
    ]
    match = re.search(
        r"step (\d+): (?:loss|grad_norm) is (?:nan|-?inf)|updates (?:was taken|were skipped), from step (\d+)",
        seen.reason,
    )
    if match and not (seen.column("guard/reward") and any(value for _, value in seen.column("guard/reward"))):
        rows.append((int(match[1] or match[2]), "loss"))
    if not rows:
        return None
    return min(rows)[0], f"{len({step for step, _ in rows}):,} steps had a loss or gradient that is no finite number."


def _unreadable(seen: Evidence) -> Callable[[StepCounts], int]:
    """Counts completions without a program. Truncated ones count only where tokens have become random: long answers are
    not broken."""
    points = seen.column("entropy")
    random = middle(late(points)) > RANDOM * middle(points[:1]) or _rate_in_words(seen)[1]
    verdicts = ("parse", "truncated") if random else ("parse",)
    return lambda one: min(one.samples, one.met(*verdicts) + one.empty)


def _broken(seen: Evidence) -> tuple[int, str] | None:
    """Answers that could be parsed no longer can, and success and reward have fallen with them."""
    if len(seen.series) < 2:
        return None
    unreadable = _unreadable(seen)
    first, last = (share(part, unreadable) for part in (beginning(seen.series), late(seen.series)))
    reward = trend(seen.step_counts, lambda one: one.group_reward)
    success = trend(seen.series, lambda one: one.group_success)
    if last.low - first.high < UNREADABLE or (reward is not None and reward.rise > 0):
        return None
    half = (first.value + last.value) / 2
    begun = next((one.step for one in seen.series if one.samples and unreadable(one) / one.samples >= half), 0)
    return begun, (
        f"Answers that cannot be read (no program, cut off, empty) went from {first.value:.0%} to {last.value:.0%}"
        f"{_fall(success)}{_entropies(seen)}."
    )


def _fall(success: Trend | None) -> str:
    return "" if success is None else f", success from {success.first:.1%} to {success.last:.1%}"


def _entropies(seen: Evidence) -> str:
    points = seen.column("entropy")
    return f", entropy of a token from {middle(points[:1]):.3g} to {middle(late(points)):.3g} nats" if points else ""


def _degenerate(seen: Evidence) -> bool:
    """Success fell and answers are all alike, though they can be parsed."""
    success = trend(seen.series, lambda one: one.group_success)
    alike = share(late(seen.step_counts), lambda one: one.one_text, "groups")
    return success is not None and success.fell and alike.value > 0.6


def _rate_in_words(seen: Evidence) -> tuple[str, bool]:
    """The learning rate in words, and whether it is larger than any in use."""
    rates = [rate for _, rate in seen.column("learning_rate")]
    kind = str(seen.option("optimizer._target_", "")).rsplit(".", 1)[-1]
    if not rates:
        return "", False
    large = kind in ADAM and max(rates) >= MOST_RATE
    return f"The learning rate came to {max(rates):.3g}{', far past any in use' if large else ''}.", large


def _jump(seen: Evidence) -> int:
    norms = seen.column("grad_norm")
    return next((step for step, norm in norms if norm > JUMP * norms[0][1]), norms[-1][0] if norms else 0)
