"""Causes in updates that break a policy or make it worse: rates, penalties, bonuses and decay that are too large."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from typing import Any

from rlvr_exp.config.suited import TOO_HIGH, usual_rate
from rlvr_exp.report.cause import Cause, Sign, Weight
from rlvr_exp.report.causes.proposals import (
    fixed,
    harder_kl,
    lower_rate,
    softer_kl,
    together,
    warm_up,
)
from rlvr_exp.report.data import StepCounts
from rlvr_exp.report.evidence import Evidence, beginning, halfway, late, middle, share, trend

UNREADABLE, RANDOM, SUNK = 0.3, 2.0, 0.1
"""A policy is broken if the share of unreadable answers grew by UNREADABLE. Growth of the entropy, or its remaining part, that
distinguishes broken answers from long ones."""
JUMP, LARGE_NORM = 30.0, 10.0
"""Growth of the gradient norm that is no drift, and its least size at the end."""
LARGE_DECAY, TAKEN = 0.2, 0.1
"""Least unusual weight decay, and the part of the matrices that it must have removed."""
DROWNS, RISEN = 0.3, 1.2
"""A penalty or bonus, weight times size, outweighs the reward above this part of it. Growth of entropy by a bonus."""
LARGE_KL, HUGE_KL = 1.0, 10.0
"""Nats a token from the reference: a factor of e on every token; and text of another kind."""
DECOUPLED = ("AdamW", "AdamW8bit", "Adafactor", "Muon")


@dataclass(frozen=True)
class Break:
    """Signs that a policy broke."""

    step: int
    facts: str
    unsound: bool = False
    """A loss or gradient was not finite."""
    large: bool = False
    """The learning rate was unusually large."""


def broken(seen: Evidence) -> Break | None:
    """For runs that train."""
    unsound, garbled = _not_finite(seen), _garbled(seen)
    rate, large = _rate_in_words(seen)
    facts = [found[1] for found in (unsound, garbled) if found] + _grown(seen)
    if not facts and large and (_degenerate(seen) or seen.losses):
        facts = [f"After the rate rose, answers became worse or equal. {seen.outcome[1]}."]
    if not seen.trains or not facts:
        return None
    fell = [halfway(seen.series, lambda one: one.group_success)] if seen.losses else []
    begun = min([found[0] for found in (unsound, garbled) if found] or fell or [_jump(seen)])
    return Break(begun, " ".join([*facts, rate]), unsound is not None, large)


def _sign(seen: Evidence, begun: int, found: Break | None, weight: Weight = Weight.BLOCKS, **facts: Any) -> Sign:
    known = {"step": begun, "facts": found.facts if found else "", **facts}
    return Sign(weight=weight, onset=begun, rows=seen.failed(begun), facts=known)


def _exploding(seen: Evidence) -> Sign | None:
    found = broken(seen)
    what = "non-finite loss or gradient" if found and found.unsound else "the policy breaks"
    return _sign(seen, found.step, found, what=what) if found else None


def _by_decay(seen: Evidence) -> Sign | None:
    """A large weight decay of a policy that became worse."""
    found, decay = broken(seen), seen.number("optimizer.weight_decay")
    if decay < LARGE_DECAY or not seen.trains or (found and (found.unsound or found.large)):
        return None
    if not found and not seen.losses:
        return None
    words = f"optimizer.weight_decay={decay:g} adds this multiple of the weights to their gradients."
    if seen.class_of("optimizer") in DECOUPLED:
        rates = seen.column("learning_rate")
        steps = [after - before for (before, _), (after, _) in pairwise([(0, 0.0), *rates])]
        taken = 1 - math.exp(-decay * sum(rate * count for (_, rate), count in zip(rates, steps, strict=True)))
        words = f"optimizer.weight_decay={decay:g} removed {taken:.0%} of every matrix." if taken >= TAKEN else ""
    return _sign(seen, found.step if found else _jump(seen), found, decay=words) if words else None


def penalised(seen: Evidence) -> float:
    """The KL penalty's part of the loss at the end, in units of a reward; 0 without a penalty."""
    return seen.number("algorithm.kl_coef") * (middle(late(seen.column("kl")) or [(0, 0.0)]))


def _by_penalty(seen: Evidence) -> Sign | None:
    found = broken(seen)
    if found is None or found.unsound or found.large or penalised(seen) <= DROWNS or _garbled(seen) is None:
        return None
    return _sign(seen, found.step, found, penalty=penalised(seen))


def _by_bonus(seen: Evidence) -> Sign | None:
    """The bonus, weight times entropy, is large compared with differences of rewards. Entropy rose, and success did not."""
    found, bonus, (first, last) = broken(seen), seen.number("algorithm.entropy_coef"), seen.ends("entropy")
    # Advantages that are divided by their deviation are of size 1, whatever the reward's.
    paid = middle(seen.column("reward/std")) if seen.option("algorithm.advantage_scale") == "none" else 1.0
    if not bonus * last > DROWNS * (paid if paid > 0 else 1.0) or not last > RISEN * first or seen.rose:
        return None
    if found and (found.unsound or found.large):
        return None
    begun = found.step if found else next(step for step, value in seen.column("entropy") if value > RISEN * first)
    weight = Weight.BLOCKS if found or seen.losses else Weight.HOLDS_BACK
    return _sign(seen, begun, found, weight, first=first, last=last, part=bonus * last)


def _grown(seen: Evidence) -> list[str]:
    first, last = seen.ends("grad_norm")
    # A penalty that outweighs the reward has a gradient of its own size, and breaks nothing.
    grown = last > JUMP * first and last > LARGE_NORM and penalised(seen) < DROWNS
    return [f"The gradient norm grew from {first:.3g} to {last:.3g}."] if grown else []


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
    if match and not any(value for _, value in seen.column("guard/reward")):
        rows.append((int(match[1] or match[2]), "loss"))
    if not rows:
        return None
    return min(rows)[0], f"{len({step for step, _ in rows}):,} steps had a non-finite loss or gradient."


def _counts(seen: Evidence) -> list[Callable[[StepCounts], int]]:
    """Counts of completions without a program. All of them must have grown. Truncated completions count only if tokens have
    become random or nearly certain, since long answers are not broken."""
    first, last = seen.ends("entropy")
    other = last > RANDOM * first or last < SUNK * first or _rate_in_words(seen)[1]
    return [methodcaller("unread", "parse", "truncated"), *([] if other else [methodcaller("unread", "parse")])]


def _garbled(seen: Evidence) -> tuple[int, str] | None:
    """Answers that could be parsed no longer can, and success and reward have fallen with them."""
    if len(seen.series) < 2:
        return None
    for unreadable in _counts(seen):
        first, last = (share(part, unreadable) for part in (beginning(seen.series), late(seen.series)))
        if last.low - first.high < UNREADABLE:
            return None
    reward, success = trend(seen.step_counts, lambda one: one.group_reward), seen.success
    if reward is not None and reward.rise > 0:
        return None
    half = (first.value + last.value) / 2
    begun = next((one.step for one in seen.series if one.samples and unreadable(one) / one.samples >= half), 0)
    return begun, (
        f"Unreadable answers (no program, truncated, empty) went from {first.value:.0%} to {last.value:.0%}"
        f"{f', success from {success.first:.1%} to {success.last:.1%}' if success else ''}. {seen.entropies}"
    )


def _degenerate(seen: Evidence) -> bool:
    """Success fell and answers are all alike, though they can be parsed."""
    alike = share(late(seen.step_counts), lambda one: one.one_text, "groups")
    return seen.success is not None and seen.success.fell and alike.value > 0.6


def _rate_in_words(seen: Evidence) -> tuple[str, bool]:
    """The learning rate in words, and whether it is larger than any in use for the size of the model."""
    rates = [rate for _, rate in seen.column("learning_rate")]
    if not rates:
        return "", False
    usual = usual_rate(int(seen.of_model("total") or 1), seen.imitates, seen.adapts)
    large = seen.by_adam and max(rates) > TOO_HIGH * usual
    return f"The learning rate reached {max(rates):.3g}{', far above usual rates' if large else ''}.", large


def _jump(seen: Evidence) -> int:
    norms = seen.column("grad_norm")
    return next((step for step, norm in norms if norm > JUMP * norms[0][1]), norms[-1][0] if norms else 0)


def _far(seen: Evidence) -> Sign | None:
    points = seen.column("kl")
    last = middle(late(points))
    if not last >= LARGE_KL or not seen.trains or not seen.losses:
        return None
    begun = next(step for step, value in points if value >= LARGE_KL)
    weight = Weight.BLOCKS if last >= HUGE_KL else Weight.HOLDS_BACK
    return Sign(
        weight=weight,
        onset=begun,
        rows=seen.rollouts[::-1],
        facts={"first": middle(points[:1]), "last": last, "losses": "; ".join(seen.losses)},
    )


RESUME = "Resume from a checkpoint before that step."
GENTLER = together(lower_rate, warm_up, fixed(optimizer__max_grad_norm=1.0))

OF_BREAKING = (
    Cause("kl_holds", _by_penalty,
        "KL penalty outweighs the reward: {penalty:.3g}; the policy breaks at step {step}",
        "{facts}", remedies=softer_kl, explains=("exploding", "kl"), later=2),
    Cause("entropy_bonus", _by_bonus,
        "Entropy bonus outweighs the reward: algorithm.entropy_coef={option[algorithm.entropy_coef]} times {last:.2g} "
        "nats, from step {step}",
        "Entropy per token rose from {first:.3g} to {last:.3g} nats. The bonus is {part:.2g}, advantages have a size of 1, "
        "and success does not rise. {facts}",
        RESUME, fixed(algorithm__entropy_coef=0.001),
        explains=("exploding", "worse", "parse", "truncation", "alike"), later=2),
    Cause("weight_decay", _by_decay,
        "Weight decay destroys the policy at step {step}",
        "{facts} {decay}",
        RESUME, fixed(optimizer__weight_decay=0.01), explains=("exploding", "worse"), later=2),
    Cause("exploding", _exploding,
        "Exploding updates: {what} at step {step}",
        "{facts}", RESUME, GENTLER, explains=("worse", "kl"), later=2),
    Cause("kl", _far,
        "KL divergence too large: {last:.3g} nats per token from the reference, {first:.3g} at first",
        "The policy has left the texts that it started with, and success fell: {losses}.",
        remedies=together(harder_kl, lower_rate), explains=("worse",), later=2, by_outcome=True),
)  # fmt: skip
