"""Options that causes propose, with values computed from the run. The stage decides which of them it accepts."""

import math
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from rlvr_exp.config.algorithm import Muon
from rlvr_exp.config.suited import HIGHEST, LOWEST, usual_rate
from rlvr_exp.report.evidence import OFF, Evidence, halfway, middle

Options = Mapping[str, Any]
Proposal = Callable[[Evidence], Options]

EMBEDDED = {False: 8e-4, True: 6e-3}
"""Rates of the embedded models (conf/model), by whether an adapter is trained."""
MOST_MEMBERS = 64
"""Largest proposed group."""
CHECKED = 64
"""Reference answers to check before training."""
SLOW = 5
"""A rate so many times from a usual one is unusual."""
SOFT_KL = 0.04
"""A usual weight of the KL penalty."""


def together(*proposals: Proposal) -> Proposal:
    return lambda seen: {key: value for propose in proposals for key, value in propose(seen).items()}


def fixed(**options: Any) -> Proposal:
    """Options whose neutral value does not depend on the run; `__` stands for a dot."""
    return lambda seen: {key.replace("__", "."): value for key, value in options.items()}


def usual(seen: Evidence) -> float:
    """A usual learning rate for the run's model."""
    if not any(seen.option(f"model.{name}") for name in ("path", "name", "package")):
        return EMBEDDED[seen.adapts]
    return usual_rate(int(seen.of_model("total") or 0), seen.imitates, seen.adapts)


def higher_rate(seen: Evidence) -> Options:
    """A usual rate. Plain gradients have no usual rate, so that another optimizer is proposed."""
    if not seen.by_adam and seen.class_of("optimizer") != "Adafactor":
        return {"optimizer": "adamw", "optimizer.lr": usual(seen)}
    return {key: value for key, (rate, value) in _rates(seen).items() if rate < value}


def lower_rate(seen: Evidence) -> Options:
    """A tenth of the rate, and at most a usual one: of rates far above usual ones, else of the optimizer's."""
    rates = _rates(seen)
    high = {key: one for key, one in rates.items() if one[0] > SLOW * one[1]}
    found = high or {"optimizer.lr": rates["optimizer.lr"]}
    return {key: float(f"{min(value, rate / 10):.2g}") for key, (rate, value) in found.items() if rate}


def _rates(seen: Evidence) -> Mapping[str, tuple[float, float]]:
    """The learning rates that the run has, each with a usual one."""
    rates = {"optimizer.lr": (seen.number("optimizer.lr"), usual(seen))}
    if seen.class_of("optimizer") == "Muon":
        rates["optimizer.matrix_lr"] = (seen.number("optimizer.matrix_lr", Muon.matrix_lr), Muon.matrix_lr)
    if of_values := seen.number("algorithm.value_lr", 0.0):
        rates["algorithm.value_lr"] = (of_values, usual(seen))
    return rates


def warm_up(seen: Evidence) -> Options:
    """A twentieth of the run."""
    return {"scheduler.warmup_steps": max(1, _steps(seen) // 20)}


def _steps(seen: Evidence) -> int:
    return int(seen.number("algorithm.max_steps", max(1, seen.steps)))


def larger_groups(seen: Evidence) -> Options:
    """The smallest power of two whose groups contain a rare outcome half of the time."""
    size = int(seen.number("algorithm.group_size"))
    rates = [rate for one in seen.step_counts for rate in one.group_success]
    rare = min(fmean(rates), 1 - fmean(rates)) if rates else 0.0
    needed = math.log(0.5) / math.log1p(-rare) if 0 < rare < 1 else MOST_MEMBERS
    proposed = 2 ** math.ceil(math.log2(max(needed, 2 * size, 4)))
    return {"algorithm.group_size": min(MOST_MEMBERS, proposed)} if size < MOST_MEMBERS else {}


def signal(seen: Evidence) -> Options:
    """Groups without a signal are replaced by others. Groups of several turns or roles cannot wait."""
    waits = seen.class_of("environment") == "SingleTurn" and seen.option("stage") != "cascade"
    return {"algorithm.zero_variance": "resample"} if waits else {}


def easier(seen: Evidence) -> Options:
    return {"curriculum": "staged"}


def own_distribution(seen: Evidence) -> Options:
    """Sampling from the policy's own distribution, in training and in the evaluation."""
    return {f"{node}.{name}": OFF[name] for node in ("algorithm", "evaluation") for name in list(OFF)[:4]}


def no_stop(seen: Evidence) -> Options:
    return {"algorithm.stop": [], "evaluation.stop": []}


def checked_answers(seen: Evidence) -> Options:
    return {"verifier.validate": CHECKED} if seen.number("verifier.validate") < CHECKED else {}


def simple_reward(seen: Evidence) -> Options:
    """1 for a correct answer and 0 for every other; of SRL, the similarity."""
    return {"reward": "srl" if seen.option("stage") == "srl" else "binary"}


def longer_answers(seen: Evidence) -> Options:
    return {"model.max_completion_tokens": _doubled(seen, "model.max_completion_tokens", 4)}


def longer_prompts(seen: Evidence) -> Options:
    return {"model.max_prompt_tokens": _doubled(seen, "model.max_prompt_tokens", 2)}


def _doubled(seen: Evidence, option: str, factor: int) -> int:
    return factor * int(seen.number(option, 1))


def wider_limits(seen: Evidence) -> Options:
    """The limits of a candidate that its bucket names, several times as high."""
    met = [one.verdicts for one in seen.series]
    buckets = {
        "timeout": ("sandbox.cpu_s", "sandbox.wall_s"), "memory": ("sandbox.memory_mb",),
        "output_limit": ("sandbox.output_kb",),
    }  # fmt: skip
    most = max(buckets, key=lambda name: sum(verdicts.get(name, 0) for verdicts in met))
    found = {name: seen.option(name) for name in buckets[most]}
    return {name: type(now)(max(5 * now, 1)) for name, now in found.items() if isinstance(now, int | float)}


def more_resources(seen: Evidence) -> Options:
    """Twice the memory and the wall-clock time of a candidate."""
    found = {name: seen.option(name) for name in ("sandbox.memory_mb", "sandbox.wall_s")}
    return {name: 2 * now for name, now in found.items() if isinstance(now, int | float)}


def same_wording(seen: Evidence) -> Options:
    """The other wording of the prompts."""
    other = {"instruct": "bare", "bare": "instruct"}.get(str(seen.option("data.prompt.style")))
    return {"data.prompt.style": other} if other else {}


def all_trained(seen: Evidence) -> Options:
    return {"model.freeze": [], "model.adapter.targets": [], **({"model.adapter.rank": 16} if seen.adapts else {})}


def unclipped(seen: Evidence) -> Options:
    """The median norm of the gradients."""
    norm = middle(seen.column("grad_norm"))
    return {"optimizer.max_grad_norm": float(f"{max(norm, 0.1):.2g}") if norm > 0 else 1.0}


def softer_kl(seen: Evidence) -> Options:
    return {"algorithm.kl_coef": SOFT_KL} if seen.number("algorithm.kl_coef") > SOFT_KL else {"algorithm.kl_coef": 0.0}


def harder_kl(seen: Evidence) -> Options:
    return {"algorithm.kl_coef": SOFT_KL} if seen.number("algorithm.kl_coef") < SOFT_KL else {}


def schedule(seen: Evidence) -> Options:
    """What keeps the learning rate up, by the schedule that let it fall."""
    kind = seen.class_of("scheduler")
    if kind == "Polynomial":
        return {"scheduler.power": 1.0, "scheduler.min_ratio": 0.1}
    if kind == "WarmupStableDecay":
        return {"scheduler.decay_steps": max(1, _steps(seen) // 5)}
    return {"scheduler": "constant"}


def more_steps(seen: Evidence) -> Options:
    return {"algorithm.max_steps": 4 * _steps(seen)}


def all_data(seen: Evidence) -> Options:
    return {"data.limit": 0, "data.families": []}


def on_fresh_samples(seen: Evidence) -> Options:
    return {"algorithm.iterations": 1, "algorithm.rollout_steps": 1, "algorithm.lag": 0}


def fewer_steps(seen: Evidence) -> Options:
    """The steps until half of the success in training was reached."""
    begun = halfway(seen.step_counts, lambda one: one.group_success)
    return (
        {"algorithm.max_steps": begun}
        if 1 < begun < _steps(seen)
        else {"algorithm.max_steps": max(1, _steps(seen) // 2)}
    )


def larger_batch(seen: Evidence) -> Options:
    prompts, batch = (int(seen.number(f"algorithm.{name}")) for name in ("prompts_per_step", "batch_size"))
    return {"algorithm.prompts_per_step": 2 * prompts} if prompts else {"algorithm.batch_size": 2 * batch}


def better_values(seen: Evidence) -> Options:
    """A value with weights of its own, at the rate of the policy."""
    return {"algorithm.value_lr": 0.0, "algorithm.value_trunk": "own", "algorithm.value_coef": 0.1}


def quicker_verdicts(seen: Evidence) -> Options:
    return {"sandbox.workers": 0, "cache.enabled": True}


NEUTRAL = {
    "algorithm.kl_coef": SOFT_KL, "algorithm.entropy_coef": 0.0, "algorithm.temperature": 1.0, "algorithm.top_p": 1.0,
    "algorithm.value_coef": 0.1, "optimizer.weight_decay": 0.01, "optimizer.max_grad_norm": 1.0,
    "evaluation.temperature": 1.0,
}  # fmt: skip
"""Usual values of the options that the tables of advice (rlvr_exp.config.suited) know."""


def usual_values(seen: Evidence) -> Options:
    """Options far from usual values, with usual values."""
    found: dict[str, Any] = {}
    for table, side in ((HIGHEST, 1), (LOWEST, -1)):
        for option, (border, *_) in table.items():
            value = seen.option(option)
            if option in NEUTRAL and isinstance(value, int | float) and side * value > side * border:
                found[option] = NEUTRAL[option]
    rate = seen.number("optimizer.lr")
    if seen.by_adam and rate and not usual(seen) / SLOW < rate < SLOW * usual(seen):
        found["optimizer.lr"] = usual(seen)
    return found


def exact_probabilities(seen: Evidence) -> Options:
    """Exact log-probabilities, and weights for samples of an engine that differs, unless the loss has no rewards."""
    return {"model.dtype": "float32", **({"algorithm.correction": "sequence_mask"} if _by_rewards(seen) else {})}


def rare_answers(seen: Evidence) -> Options:
    """The entropy of the start, and rewards for the best of several."""
    held = {"algorithm.entropy_target": 0.75, "algorithm.entropy_unit": "start"}
    half = int(seen.number("algorithm.group_size")) // 2
    return {**held, **({"algorithm.pass_k": half} if _by_rewards(seen) and half > 1 else {})}


def _by_rewards(seen: Evidence) -> bool:
    """Whether the loss has rewards, and no teacher in their place."""
    return seen.option("algorithm.distillation_weight") is None
