"""Advice of an expert on a configuration that can run: values that hardly anyone means, for the size of the model and the
kind of training. Nothing here is refused."""

from collections.abc import Callable, Iterator
from typing import Any

from rlvr_exp.config.algorithm import SFT
from rlvr_exp.config.checkpoint_files import CheckpointFacts
from rlvr_exp.config.model import continued, has_adapter, recorded
from rlvr_exp.config.optimizer import SGD
from rlvr_exp.config.parallel import NAMED, device
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.schema import Config
from rlvr_exp.config.stages import reads
from rlvr_exp.config.suited import facts_of, rate_in_words, usual_rate

ADAPTER_RATES = {True: (2e-5, 2e-4), False: (1e-5, 2e-5)}
"""Imitation or not: the rate below which an adapter hardly moves, and a usual rate of a large model's."""
FITS = 0.97
"""Devices of one name differ by so much in the memory that they report."""
TOO_HIGH, TOO_LOW = 30, 1000
"""Factors away from the usual rate."""
HIGHEST = {
    "algorithm.kl_coef": (1.0, "0 to 0.1", "a policy that is held so hard to its reference cannot learn"),
    "algorithm.entropy_coef": (0.1, "0 to 0.01", "a bonus of that size drowns the reward"),
    "algorithm.temperature": (2.0, "0.6 to 1.2", "answers become noise"),
    "algorithm.value_coef": (10.0, "0.1 to 1", "the values' loss drowns the policy's"),
    "optimizer.weight_decay": (1.0, "0 to 0.1", "weights shrink faster than they learn"),
    "optimizer.max_grad_norm": (1000.0, "0.1 to 10", "nothing is clipped"),
    "evaluation.temperature": (2.0, "0.6 to 1.2", "answers become noise"),
    "infer.temperature": (2.0, "0 to 1.2", "answers become noise"),
}
LOWEST = {
    "algorithm.temperature": (0.2, "0.6 to 1.2", "all answers of a group become the same, and nothing is learned"),
    "algorithm.top_p": (0.2, "0.9 to 1", "all answers of a group become the same, and nothing is learned"),
    "optimizer.max_grad_norm": (1e-3, "0.1 to 10", "every update is scaled to almost nothing"),
    "evaluation.temperature": (0.2, "0.6 to 1.2", "pass@k of samples that are all alike is that of one"),
}
"""Option -> the last value that is not advised against, what is usual, what becomes of a run beyond it."""


def advice(config: Config) -> list[str]:
    """One line each, over all roles."""
    if not reads(config, "model"):
        return []
    found = list(
        extremes(lambda node, name: getattr(getattr(config, node), name, None) if reads(config, node) else None)
    )
    found += [*_on_device(config), *_on_policy(config)]
    for role in config.roles:
        found += [f"roles.{role}: {text}" for text in _on_policy(of_role(config, role)) if text not in found]
    return found


def _on_device(config: Config) -> Iterator[str]:
    """A run takes the devices of its machine, whatever it was planned for."""
    name, here = config.parallel.device, device()
    if config.run.dry or name not in NAMED:
        return
    if not here.cuda:
        yield f"the plan is for {name}, and this run computes on a CPU: no GPU is on this machine"
    elif here.memory_gib < FITS * NAMED[name].memory_gib:
        found = f"{here.memory_gib:.1f} GiB, fewer than the {NAMED[name].memory_gib:.1f} of {name}"
        yield f"the GPU of this machine has {found}: plan for it with parallel.device='' run.dry=true"


def _on_policy(config: Config) -> Iterator[str]:
    yield from _on_adapter(config)
    if reads(config, "optimizer") and config.algorithm is not None:
        yield from _on_rate(config)
    yield from _on_wording(config)


def extremes(read: Callable[[str, str], Any]) -> Iterator[str]:
    """Options past the tables' borders, in words.

    Args:
        read: from a node and the name of an option in it to its value; None: not of this run.
    """
    for table, side in ((HIGHEST, 1), (LOWEST, -1)):
        for option, (border, usual, effect) in table.items():
            value = read(*option.split("."))
            if value is not None and side * value > side * border:
                yield f"{option}={value:g} is meant by hardly anyone, {usual} is usual: {effect}"


def _facts(config: Config) -> CheckpointFacts:
    return facts_of(config.model)


def _on_rate(config: Config) -> Iterator[str]:
    model, rate = config.model, config.optimizer.lr
    imitates, adapter = isinstance(config.algorithm, SFT), has_adapter(model)
    low, large = ADAPTER_RATES[imitates]
    if adapter and rate < low:
        yield (
            f"optimizer.lr={rate:g} is the size for training all weights; an adapter learns little below {low:g}. About "
            f"ten times the rate of full fine-tuning is usual: optimizer.lr={large:g}"
        )
        return
    if isinstance(config.optimizer, SGD):  # Its rate has another unit.
        return
    yield from far_rate(rate, _facts(config).parameters, imitates, adapter)


def far_rate(rate: float, size: int, imitates: bool, adapter: bool) -> Iterator[str]:
    """A rate far from the usual one, in words."""
    usual = usual_rate(size, imitates, adapter)
    words = f"optimizer.lr={usual:g} is {rate_in_words(size, imitates, adapter)}"
    if rate > TOO_HIGH * usual:
        yield f"optimizer.lr={rate:g} is {rate / usual:.0f} times too high: updates of that size break a policy. {words}"
    elif rate * TOO_LOW < usual:
        yield f"optimizer.lr={rate:g} is {usual / rate:.0f} times too low: nothing would be learned. {words}"


def _on_adapter(config: Config) -> Iterator[str]:
    model = config.model
    if not has_adapter(model):
        return
    trained_over = recorded(continued(model)).get("quantization", model.quantization)
    if trained_over != model.quantization:
        yield (
            f"the adapter was trained over weights in {trained_over} and stands over weights in {model.quantization}: "
            f"model.quantization={trained_over} is the policy that was trained"
        )
    sampled = reads(config, "optimizer") and not isinstance(config.algorithm, SFT)
    if sampled and model.adapter.dropout and not continued(model):
        yield "model.adapter.dropout acts in updates and not in sampling: what learns is not quite what sampled"


def _on_wording(config: Config) -> Iterator[str]:
    """A chat template is a sign of a model that follows instructions."""
    prompt: Any = getattr(config.data, "prompt", None) if reads(config, "data") else None
    facts = _facts(config)
    if not facts.chat_template:
        return
    trained = facts.run.get("data.prompt.style")
    if getattr(prompt, "style", "") == "bare" and trained != "bare":
        yield (
            "data.prompt.style=bare says nothing of what is wanted, and this model's tokenizer has a chat template: an "
            "instruction-tuned model expects data.prompt.style=instruct"
        )
    elif config.model.chat_template == "never" and facts.run.get("model.chat_template") != "never":
        yield (
            "model.chat_template=never leaves out the template that this model was trained with: model.chat_template=auto"
        )
