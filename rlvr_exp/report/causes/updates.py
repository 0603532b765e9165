"""Causes between an advantage and the weights: no gradient, the wrong weights, too small updates."""

import math
from collections.abc import Callable, Mapping
from statistics import fmean, median
from typing import Any

from rlvr_exp.report.cause import Cause, Sign, Weight
from rlvr_exp.report.causes.breaking import DROWNS, OF_BREAKING, penalised
from rlvr_exp.report.causes.proposals import (
    all_trained,
    exact_probabilities,
    fixed,
    higher_rate,
    lower_rate,
    on_fresh_samples,
    schedule,
    softer_kl,
    together,
    unclipped,
    usual,
    warm_up,
)
from rlvr_exp.report.evidence import Evidence, Share, middle

NOTHING = 1e-8
"""A learning rate below it changes no weight that float32 can tell."""
LEFT, IDLE_RATE = 0.25, 0.05
"""A schedule dies that leaves less than LEFT of the highest rate on average (a straight line: 0.5) and in most steps less than
IDLE_RATE."""
IDLE_STEPS, MOVED, SOUND = 10, 0.3, 0.55
"""Steps after which a policy should have changed. Shares of changed answers: less is hardly any, by the high end (7% to 9% in runs
with too small updates), and usual in sound runs (53% to 63%)."""
LARGE_EPS = 1e-5
"""An epsilon that is no rounding: it takes the place of small gradients in the denominator."""
HELD_KL, NEAR_KL, WORTHLESS = 1e-3, 0.05, 0.1
"""Distances, in nats per token, of a policy at its reference and near it, and the rise of success that a harmless penalty
allows."""
FLAT = 0.95
"""Part of the first loss, in nats a token, that the last steps of a policy that learns are below."""
SLOW = 3
"""A rate so many times below a usual one makes updates small."""
STRONG_KL = 0.5
"""Weight of the KL penalty past any in use."""
FRESH, STALE = 0.01, 0.2
"""KL to the policy that drew the samples, nats a token: more than rounding for fresh samples; too far for reused ones."""
CLIPPED, NARROW = 0.4, 0.3
"""Least shares of clipped tokens: most of an update is lost, and a clipping range is narrower than rounding."""
SCALED = 0.01
"""Clipping leaves little of an update below this part of the gradient."""
FEW_ADAPTED, FEW_TRAINED = 1e-5, 1e-3
"""Least shares of trained parameters, with an adapter and without."""
SCALE_FREE = {"Adam": 1e-8, "AdamW": 1e-8, "AdamW8bit": 1e-8, "Adafactor": 1e-30, "Muon": 1e-8}
"""Optimizers that divide a gradient by its own size, with the default of the epsilon in the denominator."""

Measure = Callable[[Evidence], Sign | None]


def training(measure: Measure) -> Measure:
    """For runs that train alone."""
    return lambda seen: measure(seen) if seen.trains else None


def _no_rate(seen: Evidence) -> Sign | None:
    rates = [rate for _, rate in seen.column("learning_rate")]
    peak, given = max(rates, default=math.nan), seen.number("optimizer.lr")
    # A warm-up begins at 0: the first row alone says nothing.
    if not peak < NOTHING or (len(rates) == 1 and given >= NOTHING):
        return None
    warmup = int(seen.option("scheduler.warmup_steps", 0) or 0)
    why = f"The warm-up takes {warmup} steps and the run has {seen.steps}." if seen.steps < warmup else ""
    return Sign(weight=Weight.BLOCKS, facts={"idle": Share(len(rates), len(rates)), "peak": peak, "why": why})


def _rate_still_rising(seen: Evidence) -> Sign | None:
    peak = max((rate for _, rate in seen.column("learning_rate")), default=math.nan)
    given, warmup = (seen.number(name) for name in ("optimizer.lr", "scheduler.warmup_steps"))
    if seen.steps >= warmup or not NOTHING <= peak < (0.2 if seen.steps >= IDLE_STEPS else 0.02) * given:
        return None
    return Sign(weight=Weight.HOLDS_BACK, facts={"warmup": warmup, "steps": seen.steps, "peak": peak})


def _rate_gone(seen: Evidence) -> Sign | None:
    """The schedule leaves a small part of what the highest rate in every step would have done."""
    rates = seen.column("learning_rate")
    peak = max((rate for _, rate in rates), default=0.0)
    if len(rates) <= 3 or peak < NOTHING or seen.steps < int(seen.number("scheduler.warmup_steps")):
        return None
    area = fmean(rate for _, rate in rates) / peak
    idle = Share(sum(rate < IDLE_RATE * peak for _, rate in rates), len(rates))
    if area >= LEFT or idle.value <= 0.5:
        return None
    last = max(step for step, rate in rates if rate >= IDLE_RATE * peak)
    facts = {"idle": idle, "peak": peak, "last": last, "area": area}
    return Sign(weight=Weight.HOLDS_BACK, effect=1 - area, onset=last, facts=facts)


def _no_gradient(seen: Evidence) -> Sign | None:
    trained = dict(seen.column("samples/trained"))
    # Without anything to learn from there is no gradient, and that is another cause.
    norms = [(step, norm) for step, norm in seen.column("grad_norm") if trained.get(step, 1)]
    none = Share(sum(abs(norm) < 1e-12 for _, norm in norms), len(norms))
    if none.low <= 0.5 or none.value <= 0.9:
        return None
    return Sign(none, Weight.BLOCKS, facts={"learned": sum(trained.values())})


def _clipped(seen: Evidence) -> Sign | None:
    """Little of the updates is left. Optimizers that divide by a gradient's size undo the clipping, until that size
    comes near their epsilon."""
    after = dict(seen.column("grad_norm/after"))
    norms = [(step, norm, after[step]) for step, norm in seen.column("grad_norm") if norm > 0 and after.get(step)]
    left = [(step, clipped / norm * _undone(seen, norm, clipped)) for step, norm, clipped in norms]
    few = Share(sum(part < SCALED for _, part in left), len(left))
    if not few.of or few.value <= 0.9:
        return None
    before, now = median(norm for _, norm, _ in norms), median(clipped for _, _, clipped in norms)
    return Sign(few, Weight.HOLDS_BACK, facts={"norm": before, "clipped": now, "left": middle(left)})


def _undone(seen: Evidence, norm: float, clipped: float) -> float:
    """The factor of the optimizer that undoes the clipping."""
    kind = seen.class_of("optimizer")
    count = seen.of_model("trained")
    if kind not in SCALE_FREE or not count:
        return norm / clipped if kind in SCALE_FREE else 1.0
    eps = seen.number("optimizer.eps", SCALE_FREE[kind])
    before, now = (size / math.sqrt(count) for size in (norm, clipped))
    return (before + eps) / (now + eps)


def _narrow_range(seen: Evidence) -> Sign | None:
    """Bounds so narrow that one update moves most ratios past them. GSPO's are narrow by design: of whole answers."""
    low, high = (float(seen.option(f"algorithm.clip_{side}", 1.0)) for side in ("low", "high"))
    if max(low, high) > FRESH or seen.class_of("algorithm") == "GSPO":
        return None
    clipped = [a + b for (_, a), (_, b) in zip(seen.column("clip/low"), seen.column("clip/high"), strict=False)]
    many = Share(sum(part > NARROW for part in clipped), len(clipped))
    if not many.of or many.value <= 0.4:
        return None
    return Sign(many, Weight.HOLDS_BACK, facts={"low": low, "high": high, "median": median(clipped)})


def _untrained(seen: Evidence) -> Sign | None:
    trained, total = seen.of_model("trained"), seen.of_model("total")
    least = FEW_ADAPTED if seen.adapts else FEW_TRAINED
    if not (isinstance(trained, int) and isinstance(total, int) and total and trained / total < least):
        return None
    weight = Weight.HOLDS_BACK if trained else Weight.BLOCKS
    return Sign(weight=weight, facts={"trained": trained, "total": total})


def _loss_stays(seen: Evidence) -> Sign | None:
    """A policy that learns texts is still far from knowing them, and the loss falls by hardly anything at a low rate."""
    first, last = seen.ends("loss")
    slow = seen.by_adam and seen.number("optimizer.lr") * SLOW <= usual(seen)
    if not seen.imitates or seen.steps < IDLE_STEPS or not slow or not max(1.0, FLAT * first) < last:
        return None
    return Sign(weight=Weight.BLOCKS, facts={"first": first, "last": last, "steps": seen.steps, "usual": usual(seen)})


def _unmoved(seen: Evidence) -> Sign | None:
    """Random draws of both evaluations are the same, so an equal policy gives exactly equal answers."""
    moving = [norm for _, norm in seen.column("grad_norm") if norm > 0]
    if seen.changed.of < 20 or seen.changed.high > MOVED or seen.steps < IDLE_STEPS or not moving or seen.rose:
        return None
    peak = max((rate for _, rate in seen.column("learning_rate")), default=math.nan)
    weight = Weight.BLOCKS if seen.changed.high < MOVED / 2 else Weight.HOLDS_BACK
    reasons = [f"{key}={seen.option(key)}" for key in smaller_updates(seen)]
    facts = {
        "steps": seen.steps, "peak": peak, "norm": middle(seen.column("grad_norm")),
        "reasons": f"Small updates follow from {', '.join(reasons)}." if reasons else "",
    }  # fmt: skip
    return Sign(seen.changed, weight, effect=max(0.0, 1 - seen.changed.value / SOUND), facts=facts)


def smaller_updates(seen: Evidence) -> Mapping[str, Any]:
    """Options of the run that make updates small, with values that do not."""
    rate, norm = seen.number("optimizer.lr"), middle(seen.column("grad_norm"))
    few = {
        "optimizer.eps": (seen.number("optimizer.eps") > LARGE_EPS, 1e-8),
        "model.dtype": (seen.option("model.dtype") == "bfloat16" and not seen.adapts, "float32"),
        "optimizer.max_grad_norm": (seen.number("optimizer.max_grad_norm", 1.0) < SCALED * norm, 1.0),
        "algorithm.kl_coef": (seen.number("algorithm.kl_coef") >= STRONG_KL, 0.04),
    }
    found = {key: value for key, (is_small, value) in few.items() if is_small}
    if rate * SLOW <= usual(seen) or not found:
        found |= higher_rate(seen)
    return found


def _held(seen: Evidence) -> Sign | None:
    """Near its reference under a penalty that outweighs the reward: by its size, or by what it allows. The best policy under
    a penalty b has weights exp(advantage / b), so that success can rise by about cov(advantage, success) / b."""
    weight = seen.number("algorithm.kl_coef")
    (_, distance), steps = seen.ends("kl"), seen.steps
    allowed = _worth_of_advantages(seen) / weight if weight else math.inf
    idle = weight >= STRONG_KL and distance < HELD_KL and steps >= IDLE_STEPS
    drowned = penalised(seen) > DROWNS or (allowed < WORTHLESS and steps >= IDLE_STEPS)
    if not weight or not distance < NEAR_KL or not (idle or drowned) or seen.rose:
        return None
    facts = {
        "distance": distance, "steps": steps, "penalty": penalised(seen),
        "allowed": f"It allows success to rise by at most about {100 * allowed:.1g} points." if 0 < allowed < 1 else "",
    }  # fmt: skip
    return Sign(weight=Weight.HOLDS_BACK, facts=facts)


def _worth_of_advantages(seen: Evidence) -> float:
    """Covariance of advantage and success; infinite without trained samples."""
    learned = [(row.advantage, row.completion.correct) for row in seen.rollouts if row.advantage is not None]
    if not learned:
        return math.inf
    mean = fmean(correct for _, correct in learned)
    return abs(fmean(advantage * (correct - mean) for advantage, correct in learned)) or math.inf


def _other_policy(seen: Evidence) -> Sign | None:
    differs = "the engine that samples is not the policy" in seen.reason or "adapter ignored" in seen.reason
    return Sign(weight=Weight.BLOCKS) if differs else None


def _off_ratio(seen: Evidence) -> Sign | None:
    """Ratios of fresh samples are 1 except for rounding; those of reused samples stay near 1."""
    if str(seen.option("algorithm._target_", "")).endswith(".SSD"):
        return None  # Its samples are drawn hotter than it learns, and have no ratio.
    used = [seen.option(f"algorithm.{name}", 1) or 1 for name in ("iterations", "rollout_steps", "minibatches")]
    fresh = all(times == 1 for times in used) and "replay" not in (seen.config.get("algorithm") or {})
    corrected = not math.isnan(seen.ends("sampling/gap")[1])
    (_, moved), limit = seen.ends("kl/old"), FRESH if fresh and not corrected else STALE
    clipped = seen.ends("clip/low")[1] + seen.ends("clip/high")[1]
    # GSPO's ratios are of whole answers, and its narrow bounds clip by design.
    wide = seen.number("algorithm.clip_high") > FRESH
    if not (moved > limit or (wide and clipped > CLIPPED)):
        return None
    advice = (
        "Sampler and trainer compute different probabilities. Check the sampling filters and the engine."
        if fresh
        else "Reuse samples less often."
    )
    facts = {
        "moved": moved, "limit": limit, "clipped": clipped, "kind": "fresh" if fresh else "reused",
        "accounts": "Rounding" if fresh else "Reuse", "advice": advice,
    }  # fmt: skip
    return Sign(weight=Weight.BLOCKS if moved > 10 * limit else Weight.HOLDS_BACK, facts=facts)


def _of_ratio(seen: Evidence) -> Mapping[str, Any]:
    reused = {key: value for key, value in on_fresh_samples(seen).items() if seen.number(key, value) != value}
    return {**reused, **lower_rate(seen)} if reused else exact_probabilities(seen)


OF_UPDATES = (
    Cause("learning_rate", training(_no_rate),
        "Zero learning rate in {idle} steps",
        "Its highest value is {peak:g}, which changes no weight. {why}",
        remedies=together(higher_rate, warm_up), explains=("unmoved",)),
    Cause("learning_rate", training(_loss_stays),
        "Low learning rate: the loss went from {first:.3g} to {last:.3g} in {steps} steps",
        "optimizer.lr={option[optimizer.lr]}; {usual:g} is usual for this model.",
        remedies=higher_rate, explains=("unmoved", "untaught", "no_end", "truncation", "parse")),
    Cause("learning_rate", training(_rate_still_rising),
        "Learning rate near zero: the warm-up is longer than the run",
        "The warm-up takes {warmup:.0f} steps and the run has {steps}. The rate reached {peak:.2g} of "
        "{option[optimizer.lr]}.",
        remedies=warm_up, explains=("unmoved",)),
    Cause("learning_rate", training(_rate_gone),
        "Learning rate near zero in {idle} steps: the schedule falls too early",
        "Its highest value is {peak:.2g}. After step {last} it is below a twentieth of it. On average {area:.0%} of the "
        "highest rate is left, of a straight line 50%.",
        remedies=schedule, explains=("unmoved",)),
    Cause("untrained", training(_untrained),
        "Few trained parameters: {trained:,} of {total:,}",
        "The other parameters are frozen.",
        remedies=all_trained, explains=("unmoved", "no_gradient")),
    Cause("no_gradient", training(_no_gradient),
        "Zero gradient in {share} rows",
        "The run trained on {learned:,.0f} samples, and no parameter had a gradient.",
        "Check which parameters are trained (manifest.json), and that advantages reach the loss.", all_trained,
        explains=("unmoved",)),
    Cause("clipped", training(_clipped),
        "Gradients clipped to almost zero in {share} rows",
        "Their norm is {norm:.3g}, and {clipped:.2g} after clipping to "
        "optimizer.max_grad_norm={option[optimizer.max_grad_norm]}. {left:.2g} of an update is left.",
        remedies=unclipped, explains=("unmoved",)),
    Cause("clip_range", training(_narrow_range),
        "Clipping range too narrow: in {share} rows more than 30% of the tokens have a clipped ratio",
        "algorithm.clip_low={low:g} and clip_high={high:g}: after the first of several updates on the same samples, few "
        "tokens count. Median share of clipped tokens: {median:.0%}.",
        remedies=fixed(algorithm__clip_low=0.2, algorithm__clip_high=0.2), explains=("unmoved",)),
    Cause("ratio", training(_other_policy),
        "The engine does not sample from the trained policy",
        "The log-probabilities of engine and trainer differ for the same texts. The run's reason has the numbers.",
        "Follow the run's reason.", later=3),
    Cause("ratio", training(_off_ratio),
        "Ratio differs from 1: {moved:.3g} nats per token between sampler and trainer on {kind} samples",
        "{accounts} explains a KL of {limit:g}. {clipped:.0%} of the tokens have a clipped ratio.",
        "{advice}", _of_ratio, explains=("worse",), later=3),
    Cause("kl_holds", training(_held),
        "KL penalty holds the policy at its reference: algorithm.kl_coef={option[algorithm.kl_coef]}",
        "After {steps} steps the policy is {distance:.2g} nats per token from its reference. The penalty is "
        "{penalty:.2g}; a passing answer earns about 1. {allowed}",
        remedies=softer_kl, explains=("exploding", "unmoved", "learning_rate")),
    Cause("unmoved", training(_unmoved),
        "The policy hardly changed: {share} held-out answers differ after {steps} steps",
        "Held-out tasks are sampled with the same random draws before and after, and in sound runs about half of the "
        "answers change. The highest learning rate was {peak:.2g}, and the gradient norm {norm:.3g}. {reasons}",
        "If the updates are large enough, check that they reach the weights that sample.", smaller_updates),
    *OF_BREAKING,
)  # fmt: skip
