"""What can be wrong between an advantage and the weights: no gradient arrives, or it changes the wrong weights. Updates
that break the policy are found by rlvr_exp.report.diagnosis_breaking."""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from rlvr_exp.report.diagnosis_breaking import DROWNS, breaking, penalised
from rlvr_exp.report.evidence import Evidence, Share, late, middle, some
from rlvr_exp.report.finding import Finding, Weight

NOTHING = 1e-8
"""A learning rate below it changes no weight that float32 can tell."""
IDLE_STEPS, MOVED = 10, 0.05
"""Steps after which a policy should have moved, and the share of answers that change when it does; by the high end."""
LARGE_KL, HUGE_KL = 1.0, 10.0
"""Nats a token from the reference: a factor of e on every token; and text of another kind."""
STRONG_KL, HELD_KL, NEAR_KL = 0.5, 1e-3, 0.05
"""Weight of the KL penalty past any in use; the distance, in nats a token, of a policy that does not leave its
reference; and of one that is still near it."""
FRESH, STALE = 0.01, 0.2
"""KL to the policy that drew the samples, nats a token: more than rounding for fresh samples; too far for reused
ones."""
CLIPPED = 0.4
"""Share of tokens with a clipped ratio past which most of an update is thrown away."""
SCALED = 0.01
"""The part of a gradient left by clipping, below which little of the update is left."""
FEW_ADAPTED, FEW_TRAINED = 1e-5, 1e-3
"""Shares of the parameters, with an adapter and without, below which hardly anything is trained."""
SCALE_FREE = {"Adam": 1e-8, "AdamW": 1e-8, "AdamW8bit": 1e-8, "Adafactor": 1e-30, "Muon": 1e-8}
"""Optimizers that divide a gradient by its own size, with the default of the epsilon in the denominator."""
NARROW = 0.3
"""Share of tokens with a clipped ratio past which a range that is narrower than rounding throws most updates away."""


def updating(seen: Evidence) -> Iterator[Finding]:
    if not seen.trains:
        return
    yield from _rate(seen)
    yield from _no_gradient(seen)
    yield from _clipped(seen)
    yield from _range(seen)
    yield from _untrained(seen)
    yield from _unmoved(seen)
    yield from _reward_not_finite(seen)
    yield from breaking(seen)
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
    elif rising and peak < (0.2 if seen.steps >= IDLE_STEPS else 0.02) * given:
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
    """Little of the updates is left. Optimizers that divide by a gradient's size undo the clipping, until that size
    comes near their epsilon."""
    after = dict(seen.column("grad_norm/after"))
    norms = [(step, norm, after[step]) for step, norm in seen.column("grad_norm") if norm > 0 and after.get(step)]
    left = [(step, clipped / norm * _undone(seen, norm, clipped)) for step, norm, clipped in norms]
    few = Share(sum(part < SCALED for _, part in left), len(left))
    if few.of and few.value > 0.9:
        yield Finding(
            "clipped",
            f"Gradients are clipped to next to nothing in {few} rows",
            f"Their norm is {middle([(step, norm) for step, norm, _ in norms]):.3g}, "
            f"{middle([(step, clipped) for step, _, clipped in norms]):.2g} after clipping to "
            f"optimizer.max_grad_norm={seen.option('optimizer.max_grad_norm')}: {middle(left):.2g} "
            "of an update is left.",
            "Raise optimizer.max_grad_norm to about the usual norm.",
            Weight.HOLDS_BACK,
        )


def _undone(seen: Evidence, norm: float, clipped: float) -> float:
    """The factor by which the optimizer undoes the clipping."""
    kind = str(seen.option("optimizer._target_", "")).rsplit(".", 1)[-1]
    count = (seen.manifest.get("model") or {}).get("trained")
    if kind not in SCALE_FREE or not count:
        return norm / clipped if kind in SCALE_FREE else 1.0
    eps = float(seen.option("optimizer.eps", SCALE_FREE[kind]) or SCALE_FREE[kind])
    before, now = (size / math.sqrt(count) for size in (norm, clipped))
    return (before + eps) / (now + eps)


def _range(seen: Evidence) -> Iterator[Finding]:
    """Bounds so narrow that one update moves most ratios past them. GSPO's are narrow by design: of whole answers."""
    low, high = (float(seen.option(f"algorithm.clip_{side}", 1.0) or 0.0) for side in ("low", "high"))
    if max(low, high) > FRESH or _kind_of(seen) == "GSPO":
        return
    clipped = [a + b for (_, a), (_, b) in zip(seen.column("clip/low"), seen.column("clip/high"), strict=False)]
    many = Share(sum(part > NARROW for part in clipped), len(clipped))
    if many.of and many.value > 0.4:
        yield Finding(
            "clip_range",
            f"The clipping range is too narrow: in {many} rows more than {NARROW:.0%} of the tokens have "
            "a clipped ratio",
            f"algorithm.clip_low={low:g} and clip_high={high:g}: after the first of several updates on the same "
            f"samples hardly a token still counts. Median share: {median(clipped):.0%}.",
            "0.2 on both sides is usual.",
            Weight.HOLDS_BACK,
        )


def _kind_of(seen: Evidence) -> str:
    return str(seen.option("algorithm._target_", "")).rsplit(".", 1)[-1]


def _untrained(seen: Evidence) -> Iterator[Finding]:
    model = seen.manifest.get("model") or {}
    trained, total = model.get("trained"), model.get("total")
    least = FEW_ADAPTED if any("lora" in part for part in model.get("trained_by_part") or ()) else FEW_TRAINED
    if isinstance(trained, int) and isinstance(total, int) and total and trained / total < least:
        yield Finding(
            "untrained",
            f"Hardly a parameter is trained: {trained:,} of {total:,}",
            "The rest is frozen, and what is left can say little.",
            "See model.freeze and model.adapter.targets.",
            Weight.BLOCKS if not trained else Weight.HOLDS_BACK,
        )


def _unmoved(seen: Evidence) -> Iterator[Finding]:
    """Random draws of both evaluations are the same, so an equal policy gives exactly equal answers."""
    moving = [norm for _, norm in seen.column("grad_norm") if norm > 0]
    if seen.changed.of < 20 or seen.changed.high > MOVED or seen.steps < IDLE_STEPS or not moving:
        return
    peak = max((rate for _, rate in seen.column("learning_rate")), default=math.nan)
    yield Finding(
        "unmoved",
        f"The policy has hardly moved: {seen.changed} held-out answers changed in {seen.steps} steps",
        f"Held-out tasks are sampled with the same random draws before and after. The highest learning rate was {peak:.2g}; "
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


def _kl(seen: Evidence) -> Iterator[Finding]:
    points = seen.column("kl")
    last = middle(late(points))
    if last >= LARGE_KL:
        yield Finding(
            "kl",
            f"KL blow-up: {last:.3g} nats a token from the reference, {middle(points[:1]):.3g} at first",
            "The policy has left the texts that it began with; its reward no longer means the same.",
            f"A higher algorithm.kl_coef ({seen.option('algorithm.kl_coef')} now) or a lower optimizer.lr "
            f"({seen.option('optimizer.lr')}).",
            Weight.BLOCKS if last >= HUGE_KL else Weight.HOLDS_BACK,
            next(step for step, value in points if value >= LARGE_KL),
            some(reversed(seen.rollouts)),
        )


def _held(seen: Evidence) -> Iterator[Finding]:
    """Near its reference, and either not moving or with a penalty larger than any answer's reward."""
    coefficient = float(seen.option("algorithm.kl_coef", 0.0) or 0.0)
    distance = middle(late(seen.column("kl")))
    idle = seen.steps >= IDLE_STEPS and distance < HELD_KL
    if coefficient >= STRONG_KL and (idle or (distance < NEAR_KL and penalised(seen) > DROWNS)):
        yield Finding(
            "kl_holds",
            f"The KL penalty holds the policy at its reference: algorithm.kl_coef={coefficient:g}",
            f"It is {distance:.2g} nats a token from where it began after {seen.steps} steps, which takes "
            f"{penalised(seen):.2g} from the loss: an answer that passes earns about 1.",
            "A kl_coef of 0 to 0.05 is usual.",
            Weight.HOLDS_BACK,
        )


def _ratio(seen: Evidence) -> Iterator[Finding]:
    """Ratios of fresh samples are 1 except for rounding; those of reused samples stay near 1."""
    if "the engine that samples is not the policy" in seen.reason or "adapter ignored" in seen.reason:
        yield Finding(
            "ratio",
            "The engine that samples is not the policy that is trained",
            "Their log-probabilities of the same texts differ; the run's own reason has the figures.",
            "The reason says what to look at.",
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
    kind = "fresh samples" if fresh else "reused samples"
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
