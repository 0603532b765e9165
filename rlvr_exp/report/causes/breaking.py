"""Updates that break the policy: too large, from an entropy bonus, from a penalty, from weight decay; and their evidence."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from typing import Any

from rlvr_exp.config.advice import TOO_HIGH
from rlvr_exp.config.suited import usual_rate
from rlvr_exp.report.cause import Cause, Sign, Weight
from rlvr_exp.report.evidence import Evidence, beginning, halfway, late, middle, share, trend
from rlvr_exp.report.step_counts import StepCounts

UNREADABLE, RANDOM, SUNK = 0.3, 2.0, 0.1
"""Gain of the share of answers that cannot be read, at which a policy is broken; growth of entropy, or what is left of it,
that tells broken answers from long ones."""
JUMP, LARGE_NORM = 30.0, 10.0
"""Growth of the gradient norm from a run's first step to its end that is no drift, and how large it must be then."""
LARGE_DECAY, TAKEN = 0.2, 0.1
"""Weight decay past any in use, and the part of all matrices that it must have taken."""
DROWNS, RISEN = 0.5, 1.2
"""A penalty or bonus, weight times size, past which it outweighs what an answer can be paid, as a part of that; the growth of
entropy that is the bonus's work."""
LARGE_KL, HUGE_KL = 1.0, 10.0
"""Nats a token from the reference: a factor of e on every token; and text of another kind."""
DECOUPLED = ("AdamW", "AdamW8bit", "Adafactor", "Muon")


@dataclass(frozen=True)
class Break:
    """What shows that a policy broke."""

    step: int
    facts: str
    unsound: bool = False
    """A loss or gradient was no number."""
    large: bool = False
    """The learning rate was past any in use."""


def broken(seen: Evidence) -> Break | None:
    """For runs that train."""
    unsound, garbled = _not_finite(seen), _garbled(seen)
    rate, large = _rate_in_words(seen)
    facts = [found[1] for found in (unsound, garbled) if found] + _grown(seen)
    if not facts and large and (_degenerate(seen) or seen.losses):
        facts = [f"Since the rate rose, answers became worse or all alike. {seen.outcome[1]}."]
    if not seen.trains or not facts:
        return None
    fell = [halfway(seen.series, lambda one: one.group_success)] if seen.losses else []
    begun = min([found[0] for found in (unsound, garbled) if found] or fell or [_jump(seen)])
    return Break(begun, " ".join([*facts, rate]), unsound is not None, large)


def _sign(seen: Evidence, begun: int, found: Break | None, weight: Weight = Weight.BLOCKS, **facts: Any) -> Sign:
    told = {"step": begun, "facts": found.facts if found else "", **facts}
    return Sign(weight=weight, onset=begun, rows=seen.failed(begun), facts=told)


def _exploding(seen: Evidence) -> Sign | None:
    found = broken(seen)
    what = "loss or gradient is not a number" if found and found.unsound else "the policy breaks"
    return _sign(seen, found.step, found, what=what) if found else None


def _by_decay(seen: Evidence) -> Sign | None:
    """The effect of weight decay on a policy that got worse, where it is large."""
    found, decay = broken(seen), seen.number("optimizer.weight_decay")
    if decay < LARGE_DECAY or not seen.trains or (found and (found.unsound or found.large)):
        return None
    if not found and not seen.losses:
        return None
    words = f"optimizer.weight_decay={decay:g} adds so many times the weights to their gradients."
    if seen.class_of("optimizer") in DECOUPLED:
        rates = seen.column("learning_rate")
        steps = [after - before for (before, _), (after, _) in pairwise([(0, 0.0), *rates])]
        taken = 1 - math.exp(-decay * sum(rate * count for (_, rate), count in zip(rates, steps, strict=True)))
        words = f"optimizer.weight_decay={decay:g} took {taken:.0%} from every matrix." if taken >= TAKEN else ""
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
    """The bonus, weight times entropy, is a good part of what rewards can differ by; entropy rose, and success did not."""
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
    return [f"The gradient's norm grew from {first:.3g} to {last:.3g}."] if grown else []


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
    return min(rows)[0], f"{len({step for step, _ in rows}):,} steps had a loss or gradient that is no finite number."


def _counts(seen: Evidence) -> list[Callable[[StepCounts], int]]:
    """Ways to count completions without a program, each of which must have grown. Truncated ones count only where tokens have
    become random, or nearly certain: long answers are not broken; but answers that were truncated before did not break."""
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
        f"Answers that cannot be read (no program, cut off, empty) went from {first.value:.0%} to {last.value:.0%}"
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
    return f"The learning rate came to {max(rates):.3g}{', far past any in use' if large else ''}.", large


def _jump(seen: Evidence) -> int:
    norms = seen.column("grad_norm")
    return next((step for step, norm in norms if norm > JUMP * norms[0][1]), norms[-1][0] if norms else 0)


def _far(seen: Evidence) -> Sign | None:
    points = seen.column("kl")
    last = middle(late(points))
    if not last >= LARGE_KL or not seen.trains:
        return None
    begun = next(step for step, value in points if value >= LARGE_KL)
    weight = Weight.BLOCKS if last >= HUGE_KL else Weight.HOLDS_BACK
    return Sign(weight=weight, onset=begun, rows=seen.rollouts[::-1], facts={"first": middle(points[:1]), "last": last})


OF_BREAKING = (
    Cause("kl_holds", _by_penalty,
        "The KL penalty of {penalty:.3g} drowns the reward; the policy breaks at step {step}",
        "{facts}",
        "A smaller algorithm.kl_coef ({option[algorithm.kl_coef]} now): 0 to 0.05 is usual.",
        explains=("exploding", "kl"), later=2),
    Cause("entropy_bonus", _by_bonus,
        "The entropy bonus drowns the reward: algorithm.entropy_coef={option[algorithm.entropy_coef]} times an entropy "
        "of {last:.2g} nats, from step {step}",
        "Entropy of a token rose from {first:.3g} to {last:.3g} nats: the bonus comes to {part:.2g}, where advantages "
        "are of size 1, and success does not rise. {facts}",
        "A smaller algorithm.entropy_coef: 0 to 0.01 is usual; resume from a checkpoint before that step.",
        explains=("exploding", "worse", "parse", "truncation"), later=2),
    Cause("weight_decay", _by_decay,
        "Weight decay takes the policy apart at step {step}",
        "{facts} {decay}",
        "A smaller optimizer.weight_decay: 0 to 0.1 is usual; resume from a checkpoint before that step.",
        explains=("exploding",), later=2),
    Cause("exploding", _exploding,
        "Exploding updates: {what} at step {step}",
        "{facts}",
        "A lower optimizer.lr ({option[optimizer.lr]} now), a longer scheduler.warmup_steps, a smaller "
        "optimizer.max_grad_norm; resume from a checkpoint before that step.", later=2),
    Cause("kl", _far,
        "KL blow-up: {last:.3g} nats a token from the reference, {first:.3g} at first",
        "The policy has left the texts that it began with; its reward no longer means the same.",
        "A higher algorithm.kl_coef ({option[algorithm.kl_coef]} now) or a lower optimizer.lr "
        "({option[optimizer.lr]}).", later=2),
)  # fmt: skip
