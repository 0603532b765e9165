"""Settings for a checkpoint that `model.path` or a hub name selects without a preset, each with its reason.

They follow from the checkpoint's own files and from this machine. Values that the user gives and named presets stay.

Sources of the learning rates: reinforcement learning of all weights of 1.5 to 8 billion parameters is published at about
1e-6 and imitation at about 1e-5 (TRL's and verl's recipes), an adapter at ten to twenty times that (Schulman et al. 2025,
LoRA Without Regret). The embedded model of a million parameters is imitated and learns at 8e-4, with an adapter at 6e-3. Between these
sizes the rate falls with the number of parameters. SmolLM2 (135 million), imitating MBPP, had its lowest loss on dev after
12 steps of 8 answers with an adapter at 1e-3: 0.886 (0.904 at 2.2e-3, 0.913 at 5e-4, 0.903 with all weights at 1.1e-4). In
reinforcement learning a small model that solves few tasks needs a lower rate: one of two million parameters at 1% success
lost all of it in 40 steps at 6.9e-4 and none at 1.5e-4.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path as File
from typing import Any

from rlvr_exp.config import schema
from rlvr_exp.config.algorithm import SFT, SGD
from rlvr_exp.config.architecture import Architecture
from rlvr_exp.config.checkpoint_files import CheckpointFacts, read_facts, tokenizer_folder
from rlvr_exp.config.model import Adapter, Model, continued, has_adapter, is_adapter, is_converted, recorded
from rlvr_exp.config.needs import config_folder
from rlvr_exp.config.options import NoSchema, field_types, find_schema, is_schema
from rlvr_exp.config.parallel import NAMED, Device, device, planned
from rlvr_exp.config.roles import TEACHER, of_role
from rlvr_exp.config.run import Evaluation
from rlvr_exp.config.schema import OWN_BATCH, STAGES, Config, nodes, reads
from rlvr_exp.config.tree import Path, Tree, dotted

FACTOR, LOW, HIGH = 1500.0, 1e-6, 1e-4
"""Reinforcement learning of all weights: FACTOR divided by their number, between LOW and HIGH."""
IMITATION, IMITATION_HIGH = 10.0, 8e-4
"""Imitation: factor and highest rate."""
ADAPTER = {True: 10.0, False: 20.0}
"""Factor for an adapter, by whether it imitates."""
ADAPTER_HIGH = 6e-3


def usual_rate(parameters: int, imitates: bool, adapter: bool) -> float:
    """A usual highest rate of optimizers of Adam's kind, to two digits.

    Args:
        parameters: of the model below any adapter; 0: unknown, taken for a large model.
    """
    scale, high = (IMITATION, IMITATION_HIGH) if imitates else (1.0, HIGH)
    rate = min(high, scale * max(LOW, FACTOR / parameters if parameters else LOW))
    return float(f"{min(ADAPTER_HIGH, ADAPTER[imitates] * rate) if adapter else rate:.1e}")


def rate_in_words(parameters: int, imitates: bool, adapter: bool) -> str:
    """The reason of the rate."""
    what = "an adapter" if adapter else "all weights"
    how = "imitation" if imitates else "reinforcement learning"
    return f"usual for {how} that trains {what} of {size_in_words(parameters)}"


def size_in_words(parameters: int) -> str:
    if not parameters:
        return "a model of unknown size"
    count = f"{parameters / 1e9:.1f} billion" if parameters >= 1e9 else f"{parameters / 1e6:.1f} million"
    return f"{count} parameters"


PRESETS = "conf/model/"
"""Start of the origins of a preset's values."""
LONGEST_PROMPT, LONGEST_COMPLETION, LEAST_PROMPT = 6144, 1024, 512
LONGEST_THOUGHT = 8192
"""Tokens of a completion that opens with thinking."""
SHARE = 4
"""A completion has one part in so many of a short context."""
GIB = 2**30
UPDATED_32 = 16
"""Bytes a parameter of training in float32: weight, gradient and two moments of Adam."""
LARGE = 10**9
"""Parameters from which on activations are recomputed in training."""


@dataclass(frozen=True)
class Setting:
    """A setting that was chosen."""

    path: Path
    value: Any
    why: str

    def __str__(self) -> str:
        return f"{dotted(self.path)}={self.value}: {self.why}"


def suit(tree: Tree, chosen: Collection[str]) -> tuple[Setting, ...]:
    """Put the settings for a checkpoint of the user into a tree. An embedded model or a preset needs none.

    Args:
        chosen: groups chosen on the command line.
    """
    stage = str(tree.values.get("stage"))
    named = "model" in chosen or tree.origin(("model", "name")).startswith(PRESETS)
    if stage not in STAGES or STAGES[stage].inherits:
        return ()
    found: list[Setting] = []
    for at in ((), *_roles(tree)):
        packaged = bool(_given(tree, (*at, "model", "package")))
        if not packaged and (named or not _own(tree, at)):
            continue
        if not at and not packaged:
            _drop_preset(tree)
        suiting = _Suiting(tree, stage, at)
        named_as = _given(tree, (*at, "model", "path")) or _given(tree, (*at, "model", "name"))
        for setting in suiting.of_stage() if packaged else suiting.settings():
            if not tree.origin(setting.path):
                tree.put(setting.path, setting.value, f"suits {named_as}: {setting.why}")
                found.append(setting)
    return tuple(found)


def follow_batch(tree: Tree) -> None:
    """Let the `evaluation.batch_size` of a preset bound the batches of a stage that has its own batch size."""
    stage = tree.values.get("stage")
    source, own = ("evaluation", "batch_size"), (str(stage), "batch_size")
    most = _given(tree, source)
    if stage in OWN_BATCH and isinstance(most, int) and not tree.origin(own):
        usual: int = field_types(schema.Config)[stage].batch_size
        tree.put(own, min(most, usual), tree.origin(source))


def _roles(tree: Tree) -> Iterator[Path]:
    roles = tree.values.get("roles")
    yield from (("roles", str(role)) for role in (roles if isinstance(roles, dict) else ()))


def _given(tree: Tree, path: Path, default: Any = None) -> Any:
    try:
        return tree.get(path)
    except KeyError:
        return default


def _own(tree: Tree, at: Path) -> bool:
    """Whether the model node at a path names a checkpoint that no preset names."""
    return any(
        _given(tree, (*at, "model", key)) and not tree.origin((*at, "model", key)).startswith(PRESETS)
        for key in ("path", "name")
    )


def _drop_preset(tree: Tree) -> None:
    """Without the embedded model its preset's options of the model, and its rate, are nobody's."""
    for path, origin in list(tree.origins.items()):
        if origin.startswith(PRESETS) and path[0] in ("model", "optimizer", "evaluation"):
            tree.remove(path)


class _Suiting:
    """The settings for the model node at a path."""

    def __init__(self, tree: Tree, stage: str, at: Path):
        self._tree, self._at = tree, at
        self._reads = nodes(stage, _given(tree, (stage, "_target_")))
        self._infers = "infer" in self._reads
        self.trains = "optimizer" in self._reads and at[-1:] != (TEACHER,)
        self.imitates = self.trains and issubclass(self._schema("algorithm") or object, SFT)

    def settings(self) -> Iterator[Setting]:
        if "model" not in self._reads:
            return
        yield self._of_model("dtype", *self._dtype)
        yield self._of_model("chat_template", *self._template)
        if self.trains and self.facts.parameters >= LARGE and not self._at:
            why = f"{size_in_words(self.facts.parameters)}: their activations are recomputed, for less memory"
            yield self._of_model("gradient_checkpointing", True, why)
        yield self._of_model("max_completion_tokens", *self._completion)
        yield self._of_model("max_prompt_tokens", *self._prompt)
        yield from self.of_stage()
        if not self._at:
            yield self._batch

    def of_stage(self) -> Iterator[Setting]:
        """The settings that depend on the stage and the data too, so that no preset can contain them."""
        if "model" not in self._reads:
            return
        if self.trains:
            size = self.facts.parameters
            rate = usual_rate(size, self.imitates, self.adapter)
            yield Setting((*self._at, "optimizer", "lr"), rate, rate_in_words(size, self.imitates, self.adapter))
        if self._at:
            return
        if self._style is not None:
            yield Setting(("data", "prompt", "style"), *self._style)
        if self.imitates:
            tokens, why = self._prompt[0] + self._completion[0], "the longest prompt and completion together"
            yield Setting(("algorithm", "max_sequence_tokens"), tokens, why)

    def _of_model(self, name: str, value: Any, why: str) -> Setting:
        return Setting((*self._at, "model", name), value, why)

    def _option(self, path: Path, default: Any) -> Any:
        """As given below this role, at the top, or the default."""
        top = _given(self._tree, path, default)
        return _given(self._tree, (*self._at, *path), top) if self._at else top

    def _number(self, path: Path) -> int:
        """0 if it is not given or no number; the typing of the tree reports that."""
        value = _given(self._tree, (*self._at, *path), 0)
        return value if isinstance(value, int) and value > 0 else 0

    def _schema(self, node: str) -> type | None:
        try:
            return find_schema(_given(self._tree, (node, "_target_")), None)
        except NoSchema:  # Reported when the tree is typed.
            return None

    @cached_property
    def model(self) -> Model:
        """As far as folders follow from it."""
        adapter = Adapter(
            kind=str(self._option(("model", "adapter", "kind"), "none")),
            path=str(self._option(("model", "adapter", "path"), "")),
        )
        return Model(
            path=str(_given(self._tree, (*self._at, "model", "path"), "") or ""),
            name=str(_given(self._tree, (*self._at, "model", "name"), "") or ""),
            package=str(_given(self._tree, (*self._at, "model", "package"), "") or ""),
            architecture=self._architecture,
            adapter=adapter,
            tokenizer=str(self._option(("model", "tokenizer"), "")),
        )

    @property
    def _architecture(self) -> Architecture:
        """A preset's shape; unknown if a value has a wrong type, which is reported when the tree is typed."""
        given = _given(self._tree, (*self._at, "model", "architecture"), {})
        known = field_types(Architecture)
        return Architecture(**{name: value for name, value in given.items() if type(value) is known.get(name)})

    @property
    def adapter(self) -> bool:
        return has_adapter(self.model)

    @cached_property
    def facts(self) -> CheckpointFacts:
        return facts_of(self.model)

    @cached_property
    def device(self) -> Device:
        """A run takes the device of its machine, whatever it was planned for."""
        if _given(self._tree, ("run", "dry"), False) is not True:
            return device()
        name, memory = (_given(self._tree, ("parallel", key)) for key in ("device", "device_memory_gib"))
        size = float(memory) if isinstance(memory, int | float) and memory > 0 else 0.0
        return planned(device(), str(name or ""), size)

    @property
    def _memory(self) -> float:
        """Bytes that weights and caches may take: of an accelerator most, of a machine's memory half."""
        return GIB * self.device.memory_gib * (0.9 if self.device.cuda else 0.5)

    def _as_trained(self, option: str) -> tuple[Any, str] | None:
        """An option of the run of ours that wrote the checkpoint."""
        known = self.facts.run.get(option)
        return None if known is None else (known, "as in the run that trained it")

    @cached_property
    def _dtype(self) -> tuple[str, str]:
        size, gib = self.facts.parameters, self._memory / GIB
        if known := self._as_trained("model.dtype"):
            return known
        if not self.device.cuda:
            if UPDATED_32 * size <= self._memory:
                return "float32", "a CPU computes fastest in 32 bits"
            return "bfloat16", f"{size_in_words(size)} in 32 bits would pass {gib:.0f} GiB of this machine"
        if not self.device.bfloat16:
            return "float32", "this accelerator has no fast bfloat16"
        if (
            self.trains
            and not self.adapter
            and self._option(("model", "quantization"), "none") == "none"
            and 2 * UPDATED_32 * size <= self._memory
        ):
            return "float32", "small updates of all weights are lost in 16 bits, and 32 bits fit this accelerator"
        return "bfloat16", "fast on this accelerator, in half the memory"

    @cached_property
    def _template(self) -> tuple[str, str]:
        if known := self._as_trained("model.chat_template"):
            return known
        there = "has none" if self.facts.context else "is not on this machine"
        return "auto", f"its tokenizer {'has a chat template' if self.facts.chat_template else there}"

    @cached_property
    def _style(self) -> tuple[str, str] | None:
        """None: the domain has one wording."""
        prompt = field_types(schema).get("prompt") if (schema := self._schema("data")) else None
        if "data" not in self._reads or not is_schema(prompt) or "style" not in field_types(prompt):
            return None
        same = self.facts.run.get("data._target_") == _given(self._tree, ("data", "_target_"))
        if same and (known := self._as_trained("data.prompt.style")):
            return known
        if self._option(("model", "chat_template"), "auto") != "never" and self.facts.chat_template:
            return "instruct", "a model with a chat template expects to be told what to do"
        return "bare", "without a chat template a model continues a text"

    @cached_property
    def _completion(self) -> tuple[int, str]:
        if given := self._number(("model", "max_completion_tokens")):
            return given, "given"
        if known := self._as_trained("model.max_completion_tokens"):
            return known
        context = self.facts.context
        if not context:
            return LONGEST_COMPLETION, "its context is not known"
        if self._option(("model", "thinking"), False) is True:
            return max(1, min(LONGEST_THOUGHT, context // 2)), f"thoughts are long, in a context of {context} tokens"
        return max(1, min(LONGEST_COMPLETION, context // SHARE)), f"of a context of {context} tokens"

    @cached_property
    def _prompt(self) -> tuple[int, str]:
        if given := self._number(("model", "max_prompt_tokens")):
            return given, "given"
        if known := self._as_trained("model.max_prompt_tokens"):
            return known
        context = self.facts.context or LONGEST_PROMPT + LONGEST_COMPLETION
        tokens, why = context - self._completion[0], "what the completion leaves of the context"
        if tokens > LONGEST_PROMPT:
            tokens, why = LONGEST_PROMPT, f"long enough for most tasks; a context of {context} tokens holds it"
        while tokens > LEAST_PROMPT and self._groups(tokens) < 1:
            tokens, why = tokens // 2, "as long as one group of completions fits into memory"
        return max(1, tokens), why

    @property
    def _batch(self) -> Setting:
        """How many completions are sampled at once."""
        node, most = ("infer", 64) if self._infers else ("evaluation", Evaluation.batch_size)
        samples, groups = self._samples, self._groups(self._prompt[0])
        number = most
        while number > samples and number > groups * samples:
            number //= 2
        held = f"a cache of at most {number // max(1, samples) * self._group_bytes(self._prompt[0]) / GIB:.2g} GiB"
        return Setting((node, "batch_size"), number, f"completions at once: {held}")

    @property
    def _samples(self) -> int:
        node, default = ("infer", 1) if self._infers else ("evaluation", Evaluation.samples)
        value = _given(self._tree, (node, "samples"), default)
        return value if isinstance(value, int) and value > 0 else default

    def _group_bytes(self, prompt: int) -> float:
        """The cache of the completions of one prompt, which they share."""
        width = 4 if self._option(("model", "dtype"), self._dtype[0]) == "float32" else 2
        return self.facts.cached * width * (prompt + self._samples * self._completion[0])

    def _groups(self, prompt: int) -> float:
        """How many groups half of the memory beside the weights holds."""
        width = 4 if self._dtype[0] == "float32" else 2
        held = UPDATED_32 * width / 4 if self.trains and not self.adapter else width
        free = max(0.0, self._memory - self.facts.parameters * held)
        return free / 2 / self._group_bytes(prompt) if self.facts.cached else float("inf")


def facts_of(model: Model) -> CheckpointFacts:
    """The facts of a model node's checkpoint, as far as its files are on this machine or its shape is given."""
    if model.package and not model.path and not is_converted(model.package):
        return CheckpointFacts(parameters=model.architecture.parameters, chat_template=True)
    weights = config_folder(model) or File("/nonexistent")
    trained = File(model.path) if is_adapter(model.path) else weights
    facts, shape = read_facts(weights, tokenizer_folder(model, weights), trained), model.architecture
    if facts.parameters or not shape.known:
        return facts
    return replace(facts, parameters=shape.parameters, cached=2 * shape.layers * shape.kv_heads * shape.head_dim)


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
"""Option -> the last value without advice, the usual values, the effect beyond it."""


def advice(config: Config) -> list[str]:
    """One line each, over all roles."""
    if not reads(config, "model"):
        return []
    found = list(
        extremes(lambda node, name: getattr(getattr(config, node), name, None) if reads(config, node) else None)
    )
    found += [*_on_device(config), *_on_policy(config)]
    for role in config.roles.keys() - {TEACHER}:
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
    yield from far_rate(rate, facts_of(config.model).parameters, imitates, adapter)


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
    facts = facts_of(config.model)
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
