"""What can be wrong between an advantage and the weights: nothing arrives, too much arrives, or it arrives
elsewhere."""

import math
import re
from collections.abc import Callable, Iterator, Sequence

from rlvr_exp.run.report.evidence import Evidence, Share, Trend, beginning, late, middle, share, some, trend
from rlvr_exp.run.report.finding import Finding, Weight
from rlvr_exp.run.report.tally import Tally

NOTHING = 1e-8
"""A learning rate below it changes no weight that float32 can tell."""
IDLE_STEPS, MOVED = 10, 0.03
"""Steps after which a policy should have moved, and the share of answers that change when it does; by the high end."""
MOST_RATE = 1e-2
"""A rate of Adam's kind past any that trains a language model: ten times the largest in use."""
STRONG_BONUS = 0.05
"""Weight of the entropy bonus at which it can drown a reward."""
UNREADABLE, RANDOM = 0.3, 2.0
"""Gain of the share of answers that cannot be read, at which a policy is broken; growth of entropy that tells broken
answers from long ones."""
LARGE_KL, HUGE_KL = 1.0, 10.0
"""Nats a token from the reference: a factor of e on every token; and text of another kind."""
STRONG_KL, HELD_KL = 0.5, 1e-3
"""Weight of the KL penalty past any in use, and the distance, in nats a token, of a policy that does not leave its
reference."""
FRESH, STALE = 0.01, 0.2
"""KL to the policy that drew the samples, nats a token: more than rounding for fresh samples; too far for reused
ones."""
CLIPPED = 0.4
"""Share of tokens with a clipped ratio past which most of an update is thrown away."""
SCALED = 0.01
"""What clipping leaves of a gradient, at which little is left of the update."""
JUMP, LARGE_NORM = 30.0, 10.0
"""Growth of the gradient norm from a run's first step to its end that is no drift, and how large it must be then."""
ADAM = ("Adam", "AdamW", "AdamW8bit", "Muon")


def updating(seen: Evidence) -> Iterator[Finding]:
    if not seen.trains:
        return
    yield from _rate(seen)
    yield from _no_gradient(seen)
    yield from _clipped(seen)
    yield from _untrained(seen)
    yield from _unmoved(seen)
    yield from _reward_not_finite(seen)
    yield from _exploding(seen)
    yield from _kl(seen)
    yield from _held(seen)
    yield from _ratio(seen)


def _rate(seen: Evidence) -> Iterator[Finding]:
    rates = seen.column("learning_rate")
    if not rates:
        return
    peak, given = max(rate for _, rate in rates), float(seen.option("optimizer.lr", 0.0) or 0.0)
    warmup = int(seen.option("scheduler.warmup_steps", 0) or 0)
    idle = Share(sum(rate < NOTHING for _, rate in rates), len(rates))
    rising = seen.steps < warmup
    if peak < NOTHING:
        why = f"Its highest value in {len(rates)} rows is {peak:g}: no weight moves by it."
        if rising:
            why += f" The warm-up takes {warmup} steps and the run has {seen.steps}."
        yield _learning_rate(f"The learning rate is zero in {idle} steps", why, given, Weight.BLOCKS)
    elif rising and seen.steps >= IDLE_STEPS and peak < 0.2 * given:
        why = f"The warm-up takes {warmup} steps, the run has {seen.steps}: the rate came to {peak:.2g} of {given:g}."
        yield _learning_rate(
            "The learning rate stays near zero: the warm-up is longer than the run", why, given, Weight.HOLDS_BACK
        )
    elif idle.of > 3 and idle.value > 0.5:
        why = f"It is {peak:.2g} at its highest and falls to nothing after step {_last_above(rates)}."
        yield _learning_rate(f"The learning rate is zero in {idle} steps", why, given, Weight.HOLDS_BACK)


def _learning_rate(title: str, why: str, given: float, weight: Weight) -> Finding:
    remedy = f"optimizer.lr={given:g} now; 2e-4 to 6e-4 suits the embedded model, 1e-6 to 1e-5 a large one, ten times that an "
    return Finding("learning_rate", title, why, remedy + "adapter. See scheduler.warmup_steps too.", weight)


def _last_above(rates: Sequence[tuple[int, float]]) -> int:
    return max(step for step, rate in rates if rate >= NOTHING)


def _no_gradient(seen: Evidence) -> Iterator[Finding]:
    norms = seen.column("grad_norm")
    none = Share(sum(abs(norm) < 1e-12 for _, norm in norms), len(norms))
    learned = [value for _, value in seen.column("samples/trained")]
    # Without anything to learn from there is no gradient, and that is another cause.
    if none.of and none.value > 0.9 and (not learned or sum(learned) > 0):
        yield Finding(
            "no_gradient",
            f"The gradient is zero in {none} rows",
            f"{sum(learned):,.0f} samples were learned from, and no parameter felt it.",
            "See which parameters are trained (manifest.json, model.freeze), and that advantages reach the loss.",
            Weight.BLOCKS,
        )


def _clipped(seen: Evidence) -> Iterator[Finding]:
    after = dict(seen.column("grad_norm/after"))
    kept = [(step, after[step] / norm) for step, norm in seen.column("grad_norm") if norm > 0 and step in after]
    few = Share(sum(part < SCALED for _, part in kept), len(kept))
    if few.of and few.value > 0.9:
        yield Finding(
            "clipped",
            f"Gradients are clipped to next to nothing in {few} rows",
            f"{middle(kept):.2g} of the gradient's norm is left. Its norm is {middle(seen.column('grad_norm')):.3g}, "
            f"optimizer.max_grad_norm={seen.option('optimizer.max_grad_norm')}.",
            "Raise optimizer.max_grad_norm to about the usual norm.",
            Weight.HOLDS_BACK,
        )


def _untrained(seen: Evidence) -> Iterator[Finding]:
    model = seen.manifest.get("model") or {}
    trained, total = model.get("trained"), model.get("total")
    if isinstance(trained, int) and isinstance(total, int) and total and trained / total < 1e-5:
        yield Finding(
            "untrained",
            f"Hardly a parameter is trained: {trained:,} of {total:,}",
            "The rest is frozen.",
            "See model.freeze and model.adapter.targets.",
            Weight.BLOCKS if not trained else Weight.HOLDS_BACK,
        )


def _unmoved(seen: Evidence) -> Iterator[Finding]:
    """Draws of the two measurements are the same, so an equal policy gives equal answers, to the letter."""
    moving = [norm for _, norm in seen.column("grad_norm") if norm > 0]
    if seen.changed.of < 20 or seen.changed.high > MOVED or seen.steps < IDLE_STEPS or not moving:
        return
    peak = max((rate for _, rate in seen.column("learning_rate")), default=math.nan)
    yield Finding(
        "unmoved",
        f"The policy has hardly moved: {seen.changed} held-out answers changed in {seen.steps} steps",
        f"Held-out tasks are asked with the same draws before and after. The highest learning rate was {peak:.2g}; "
        "gradients "
        f"have a norm of {middle(seen.column('grad_norm')):.3g}.",
        "A higher optimizer.lr, or see whether updates reach the weights that sample (sync/probe_gap) and which are "
        "trained.",
        Weight.HOLDS_BACK if seen.changed.count else Weight.BLOCKS,
    )


def _reward_not_finite(seen: Evidence) -> Iterator[Finding]:
    rows = [int(row["step"] or 0) for row in seen.metrics if "reward/mean" in row and row["reward/mean"] is None]
    skipped = [(step, value) for step, value in seen.column("guard/reward") if value]
    if rows or skipped:
        first = min([*rows, *(step for step, _ in skipped)])
        yield Finding(
            "reward_not_finite",
            f"Rewards are no finite numbers, first in step {first}",
            f"{len(rows)} rows have no mean reward; {sum(value for _, value in skipped):.0f} updates were skipped for "
            "it.",
            "Look at the reward's terms in the rollouts of that step.",
            Weight.BLOCKS,
            first if first > 1 else 0,
            some(row for row in seen.rollouts if row.step >= first),
        )


def _exploding(seen: Evidence) -> Iterator[Finding]:
    unsound, broken = _not_finite(seen), _broken(seen)
    norms = seen.column("grad_norm")
    first, last = middle(norms[:1]), middle(late(norms))
    facts = [*([f"{unsound[1]}"] if unsound else []), *([broken[1]] if broken else [])]
    if last > JUMP * first and last > LARGE_NORM:
        facts.append(f"The gradient's norm grew from {first:.3g} to {last:.3g}.")
    rate, large = _rate_in_words(seen)
    collapsed = large and _degenerate(seen)
    if not facts and not collapsed:
        return
    if collapsed and not facts:
        facts.append("Answers have become all alike within the steps since the rate rose.")
    begun = min([found[0] for found in (unsound, broken) if found] or [_jump(norms)])
    bonus = float(seen.option("algorithm.entropy_coef", 0.0) or 0.0)
    drowned = broken and not unsound and not large and bonus >= STRONG_BONUS
    what = f"The entropy bonus drowns the reward: algorithm.entropy_coef={bonus:g}; the policy breaks"
    decay = float(seen.option("optimizer.weight_decay", 0.0) or 0.0)
    yield Finding(
        "entropy_bonus" if drowned else "exploding",
        f"{what if drowned else f'Exploding updates: {_what(unsound)}'} at step {begun}",
        " ".join([*facts, rate, *([f"optimizer.weight_decay={decay:g} is large."] if decay > 0.2 else [])]),
        f"A lower optimizer.lr ({seen.option('optimizer.lr')} now), a longer scheduler.warmup_steps, a smaller "
        "optimizer.max_grad_norm; go on from a checkpoint before that step.",
        Weight.BLOCKS,
        begun,
        some(row for row in reversed(seen.samples) if row.step >= begun and row.outcome != "passed"),
    )


def _what(unsound: tuple[int, str] | None) -> str:
    return "loss or gradient is not a number" if unsound else "the policy breaks"


def _not_finite(seen: Evidence) -> tuple[int, str] | None:
    """The first step with a loss or gradient that is no number; the row has the metric, and null in its place."""
    rows = [
        (int(row["step"] or 0), name)
        for row in seen.metrics
        for name in ("loss", "grad_norm")
        if name in row and row[name] is None and not row.get("guard/reward")
    ]
    rows += [
        (step, "update") for name in ("guard/loss", "guard/gradient") for step, value in seen.column(name) if value
    ]
    told = re.search(
        r"step (\d+): (?:loss|grad_norm) is (?:nan|-?inf)|updates (?:was taken|were skipped), from step (\d+)",
        seen.reason,
    )
    if told and not (seen.column("guard/reward") and any(value for _, value in seen.column("guard/reward"))):
        rows.append((int(told[1] or told[2]), "loss"))
    if not rows:
        return None
    return min(rows)[0], f"{len({step for step, _ in rows}):,} steps had a loss or gradient that is no finite number."


def _unreadable(seen: Evidence) -> Callable[[Tally], int]:
    """Counts what holds no program. What is cut off counts only where tokens have become random: long answers are no
    broken ones."""
    points = seen.column("entropy")
    random = middle(late(points)) > RANDOM * middle(points[:1]) or _rate_in_words(seen)[1]
    verdicts = ("parse", "truncated") if random else ("parse",)
    return lambda one: min(one.samples, one.met(*verdicts) + one.empty)


def _broken(seen: Evidence) -> tuple[int, str] | None:
    """Answers that could be read no longer can, and success and reward are gone with them."""
    if len(seen.series) < 2:
        return None
    unreadable = _unreadable(seen)
    first, last = (share(part, unreadable) for part in (beginning(seen.series), late(seen.series)))
    reward = trend(seen.tallies, lambda one: one.group_reward)
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
    """Success fell and answers are all alike, though they can be read."""
    success = trend(seen.series, lambda one: one.group_success)
    alike = share(late(seen.tallies), lambda one: one.one_text, "groups")
    return success is not None and success.fell and alike.value > 0.6


def _rate_in_words(seen: Evidence) -> tuple[str, bool]:
    """What is to be said of the learning rate, and whether it is past any that is in use."""
    rates = [rate for _, rate in seen.column("learning_rate")]
    kind = str(seen.option("optimizer._target_", "")).rsplit(".", 1)[-1]
    if not rates:
        return "", False
    large = kind in ADAM and max(rates) >= MOST_RATE
    return f"The learning rate came to {max(rates):.3g}{', far past any in use' if large else ''}.", large


def _jump(norms: Sequence[tuple[int, float]]) -> int:
    return next((step for step, norm in norms if norm > JUMP * norms[0][1]), norms[-1][0] if norms else 0)


def _kl(seen: Evidence) -> Iterator[Finding]:
    points = seen.column("kl")
    last = middle(late(points))
    if last >= LARGE_KL:
        yield Finding(
            "kl",
            f"KL blow-up: {last:.3g} nats a token from the reference, {middle(points[:1]):.3g} at first",
            "The policy has left the texts that it began with; its reward no longer says what it did.",
            f"A higher algorithm.kl_coef ({seen.option('algorithm.kl_coef')} now) or a lower optimizer.lr "
            f"({seen.option('optimizer.lr')}).",
            Weight.BLOCKS if last >= HUGE_KL else Weight.HOLDS_BACK,
            next(step for step, value in points if value >= LARGE_KL),
            some(reversed(seen.rollouts)),
        )


def _held(seen: Evidence) -> Iterator[Finding]:
    coefficient = float(seen.option("algorithm.kl_coef", 0.0) or 0.0)
    points = seen.column("kl")
    if coefficient >= STRONG_KL and seen.steps >= IDLE_STEPS and middle(late(points)) < HELD_KL:
        yield Finding(
            "kl_holds",
            f"The KL penalty holds the policy at its reference: algorithm.kl_coef={coefficient:g}",
            f"It is {middle(late(points)):.2g} nats a token from where it began after {seen.steps} steps.",
            "A kl_coef of 0 to 0.05 is usual.",
            Weight.HOLDS_BACK,
        )


def _ratio(seen: Evidence) -> Iterator[Finding]:
    """Ratios of fresh samples are 1 but for rounding; those of samples used again stay near it."""
    if "the engine that samples is not the policy" in seen.reason or "adapter ignored" in seen.reason:
        yield Finding(
            "ratio",
            "The engine that samples is not the policy that is trained",
            seen.reason,
            "See the reason.",
            Weight.BLOCKS,
        )
        return
    used = [seen.option(f"algorithm.{name}", 1) or 1 for name in ("iterations", "rollout_steps", "minibatches")]
    fresh = all(times == 1 for times in used) and "replay" not in (seen.config.get("algorithm") or {})
    moved, limit = middle(late(seen.column("kl/old"))), FRESH if fresh else STALE
    clipped = middle(late(seen.column("clip/low"))) + middle(late(seen.column("clip/high")))
    # GSPO's ratios are of whole answers, and its narrow bounds clip by design.
    wide = float(seen.option("algorithm.clip_high", 0.0) or 0.0) > FRESH
    if not (moved > limit or (wide and clipped > CLIPPED)):
        return
    kind = "fresh samples" if fresh else "samples used again"
    yield Finding(
        "ratio",
        f"Ratio off 1: {moved:.3g} nats a token between sampler and trainer on {kind}",
        f"A KL of {limit:g} is what {'rounding' if fresh else 'reuse'} accounts for; {clipped:.0%} of tokens have a "
        "clipped ratio.",
        "The two compute different probabilities: see model.dtype, run.probe and sampling filters."
        if fresh
        else "Fewer algorithm.iterations or rollout_steps, or a lower optimizer.lr.",
        Weight.BLOCKS if moved > 10 * limit else Weight.HOLDS_BACK,
    )
