"""Low-rank adapters by PEFT: LoRA (Hu et al. 2021, arXiv 2106.09685) and DoRA (Liu et al. 2024, arXiv 2402.09353).

A policy's model is then a `PeftModel`: one frozen base with one or more adapters by name, of which one is active. The
base alone, with adapters off, is the reference of such a policy. A policy with one role has the adapter `default`.
Weights of adapters stay float32, also if the base has fewer bits: an update is often smaller than bfloat16 resolves.
Only DeepSpeed holds them in the base's type, with a float32 copy of its own.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from rlvr_exp.config.checkpoint_files import no_layer
from rlvr_exp.config.model import Adapter, Model, continued, recorded
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.seeds import derive
from rlvr_exp.models.parameters import gathered_parameters
from rlvr_exp.models.quantization import quantization_of

DEFAULT = "default"
LINEAR = (nn.Linear, Conv1D)
PRODUCTS = ("Linear", "Linear4bit", "Linear8bitLt")
"""PEFT's names of LoRA layers that compute a matrix product."""
SAME_INPUT = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
"""Layers of one module that usually receive the same tensor, in the order of their calls."""


def with_adapter(network: PreTrainedModel, model: Model, seed: int) -> PeftModel:
    """The base with the adapter of a `model` node: a new adapter, or a loaded one that is trained further."""
    folder = continued(model)
    return load_adapter(network, folder) if folder else new_adapter(network, model.adapter, seed)


def load_adapter(network: PreTrainedModel | PeftModel, folder: str, name: str = DEFAULT) -> PeftModel:
    """Load a saved adapter onto a model, next to any that it has; it becomes active and trainable.

    Raises:
        InputError: its checkpoint names another base.
    """
    if isinstance(network, PeftModel):
        _check_base(network.get_base_model(), folder)
        network.load_adapter(folder, name, is_trainable=True)
        activate(network, name)
    else:
        _check_base(network, folder)
        network = PeftModel.from_pretrained(network, folder, adapter_name=name, is_trainable=True)
    # The base may have moved since the adapter was trained.
    network.peft_config[name].base_model_name_or_path = network.get_base_model().name_or_path
    return network


def new_adapter(network: PreTrainedModel | PeftModel, settings: Adapter, seed: int, name: str = DEFAULT) -> PeftModel:
    """Put a new adapter on a model, next to any that it has, and activate it. It changes nothing until it is trained.

    Raises:
        InputError: a target is no linear layer of the model.
    """
    form = _form(network, settings)
    with _own_numbers(derive(seed, "adapter", name)):
        if not isinstance(network, PeftModel):
            return get_peft_model(network, form, adapter_name=name)
        network.add_adapter(name, form)
    activate(network, name)
    return network


def activate(model: PeftModel, name: str) -> None:
    """Sample with the named adapter and train it alone; every other keeps its weights and takes no gradient."""
    model.set_adapter(name)


def adapter_parameters(model: PeftModel, name: str) -> list[nn.Parameter]:
    """The parameters of one adapter, in the model's order."""
    own = re.compile(rf"\.lora_\w+\.{re.escape(name)}(\.|$)")
    return [value for key, value in model.named_parameters() if own.search(key)]


@contextmanager
def adapters_off(model: nn.Module) -> Iterator[None]:
    """The base alone, for as long as the context lasts; a model without adapters stays as it is."""
    if not isinstance(model, PeftModel):
        yield
        return
    with model.disable_adapter():
        yield


def applied_adapters(layer: nn.Module) -> list[str]:
    """The names of the adapters that a LoRA layer applies; none for any other layer."""
    if not isinstance(layer, LoraLayer) or layer.disable_adapters:
        return []
    return [name for name in layer.active_adapters if name in layer.lora_A]


def adds_products(layer: nn.Module) -> bool:
    """Whether it is a LoRA layer whose applied adapters only add scale * B A x: no DoRA, no bias, nothing merged."""
    if not isinstance(layer, LoraLayer) or type(layer).__name__ not in PRODUCTS or layer.merged:
        return False
    return not any(layer.lora_variant.get(name) or layer.lora_bias[name] for name in applied_adapters(layer))


@contextmanager
def adapters_cast(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block layers add their adapters from copies of A and scale * B in the model's type, with one product and one
    addition each; no dropout and no gradients.

    PEFT casts the input to float32 and the result back at every call, which costs a GPU six kernels for each layer and
    token. float32 layers on CPU keep PEFT's forward pass, whose products oneDNN computes.
    """
    replaced: list[nn.Module] = []
    try:
        for module in model.modules():
            layers = {name: layer for name, layer in module.named_children() if _castable(layer, model.dtype)}
            together = [[layers.pop(name) for name in names if name in layers] for names in SAME_INPUT]
            for group in (*filter(None, together), *([layer] for layer in layers.values())):
                inputs = _Inner(group, model.dtype)
                for number, layer in enumerate(group):
                    layer.forward = _added(layer, inputs, number, model.dtype)
                    replaced.append(layer)
        yield
    finally:
        for layer in replaced:
            del layer.forward


def _castable(layer: nn.Module, dtype: torch.dtype) -> bool:
    if not applied_adapters(layer) or not adds_products(layer) or "forward" in vars(layer):
        return False
    return dtype != torch.float32 or next(layer.parameters()).device.type != "cpu"


class _Inner:
    """A x of layers that receive the same x, as one product. It is computed for the first of them."""

    @torch.no_grad()
    def __init__(self, layers: Sequence[nn.Module], dtype: torch.dtype):
        parts = [[layer.lora_A[name].weight for name in applied_adapters(layer)] for layer in layers]
        self._matrix = torch.cat([part for own in parts for part in own]).to(dtype).t()
        self._sizes = [sum(map(len, own)) for own in parts]
        self._x: torch.Tensor | None = None
        self._found: Sequence[torch.Tensor] = ()

    def __call__(self, number: int, x: torch.Tensor) -> torch.Tensor:
        if x is not self._x:
            self._x, self._found = x, (x.flatten(0, -2) @ self._matrix).split(self._sizes, -1)
        found = self._found[number]
        if number == len(self._sizes) - 1:
            self._x, self._found = None, ()  # Activations of a long prompt are not kept.
        return found


@torch.no_grad()
def _added(layer: Any, inputs: _Inner, number: int, dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    outer = [layer.lora_B[name].weight * layer.scaling[name] for name in applied_adapters(layer)]
    matrix = torch.cat(outer, 1).to(dtype).t()

    def forward(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = layer.base_layer(x)
        result.view(-1, result.shape[-1]).addmm_(inputs(number, x), matrix)
        return result

    return forward


@contextmanager
def reference_is_base(model: nn.Module, args: Any) -> Iterator[None]:
    """Hide the KL coefficient from a trainer's constructor. Otherwise it copies the adapter to serve as its
    reference."""
    beta = args.beta
    args.beta = 0.0 if isinstance(model, PeftModel) else beta
    try:
        yield
    finally:
        args.beta = beta


@contextmanager
def kept_precise(model: nn.Module) -> Iterator[None]:
    """Keep trained weights' values and type while a trainer is built, which rounds those of a quantized model."""
    if quantization_of(model) == "none":
        yield
        return
    values = {name: value.data for name, value in model.named_parameters() if value.requires_grad}
    yield
    for name, value in model.named_parameters():
        if name in values:
            value.data = values[name].to(value.device)


def base_record(model: PeftModel) -> dict[str, str]:
    """The record of the base in an adapter's checkpoint: location, type, quantization and fingerprint."""
    base = model.get_base_model()
    return {
        "place": base.name_or_path,
        "dtype": str(base.dtype).removeprefix("torch."),
        "quantization": quantization_of(base),
        "fingerprint": fingerprint(base),
    }


def fingerprint(base: PreTrainedModel) -> str:
    """Hash of a base's vectors (norms, biases): no quantization touches them, and training changes them."""
    vectors = {
        name.replace(".base_layer", ""): value.detach().to("cpu", torch.bfloat16).view(torch.int16).numpy().tobytes()
        for name, value in base.named_parameters()
        if value.ndim == 1 and ".lora_" not in name
    }
    return content_hash(vectors)


def _check_base(base: PreTrainedModel, folder: str) -> None:
    """Raises InputError if the adapter's checkpoint names another base; a foreign folder may name none."""
    record = recorded(folder)
    if record and record["fingerprint"] != fingerprint(base):
        what = f"the adapter at {folder} was trained on another base"
        remedy = "name that base: model.path=BASE model.adapter.path=ADAPTER"
        raise InputError(InputProblem("model", what, base.name_or_path, record["place"], "", remedy))


def adapter_metrics(model: nn.Module) -> Mapping[str, float]:
    """Size of the active adapter and of the change that it makes; nothing for a model without adapters.

    `adapter/norm` is the norm of all A and B; `adapter/delta` the Frobenius norm of scale * B A over all layers, 0 for an
    adapter that was never updated. The magnitudes of DoRA enter neither.
    """
    if not isinstance(model, PeftModel):
        return {}
    layers = [layer for layer in model.modules() if model.active_adapter in getattr(layer, "lora_A", {})]
    with gathered_parameters(adapter_parameters(model, model.active_adapter)):
        squares = [_squares(layer, model.active_adapter) for layer in layers]
        # Layers may be spread over devices. One transfer to the host for all of them.
        norm, delta = torch.stack([one.to(squares[0].device) for one in squares]).sum(0).sqrt().tolist()
    return {"adapter/norm": norm, "adapter/delta": delta}


def _squares(layer: nn.Module, name: str) -> torch.Tensor:
    """||A||^2 + ||B||^2 and ||scale * B A||^2, the latter from r x r products: the full matrix is never built."""
    a, b = layer.lora_A[name].weight.detach().float(), layer.lora_B[name].weight.detach().float()
    inner, outer = a @ a.T, b.T @ b
    return torch.stack([inner.trace() + outer.trace(), layer.scaling[name] ** 2 * (outer * inner).sum()])


def _form(network: nn.Module, settings: Adapter) -> LoraConfig:
    return LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=settings.effective_rank,
        lora_alpha=settings.effective_alpha,
        lora_dropout=settings.dropout,
        target_modules=_targets(network, settings.targets),
        use_dora=settings.kind == "dora",
    )


def _targets(network: nn.Module, wanted: Sequence[str]) -> list[str]:
    """Last parts of the names of linear layers; by default all but the output head's."""
    base = network.get_base_model() if isinstance(network, PeftModel) else network
    head = base.get_output_embeddings()
    names = [
        name.removesuffix(".base_layer")
        for name, module in base.named_modules()
        if isinstance(module, LINEAR) and module is not head and ".lora_" not in name
    ]
    ends = sorted({name.rpartition(".")[2] for name in names})
    lost = [end for end in wanted if not any(f".{name}".endswith(f".{end}") for name in names)]
    if lost:
        raise InputError(*(no_layer(end, ends) for end in lost))
    return list(wanted) or ends


@contextmanager
def _own_numbers(seed: int) -> Iterator[None]:
    """Draw initial weights from their own seed; the global generator's state is restored afterwards."""
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)
