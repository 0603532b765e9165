"""Weights in fewer bits, by bitsandbytes: NF4 with doubly quantized scales (Dettmers et al. 2023, QLoRA, arXiv
2305.14314) and LLM.int8() (Dettmers et al. 2022, arXiv 2208.07339). Embeddings, norms and the output head keep their type.

Quantized weights are never trained and never written: a checkpoint holds only the adapter.
"""

import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, BitsAndBytesConfig, PreTrainedModel

from rlvr_exp.config.model import Model


def quantizer(model: Model, origin: str) -> BitsAndBytesConfig | None:
    """`model.quantization` for `from_pretrained`; matrix products run in the type of the other weights."""
    # It logs casts at every product, and a faster kernel that `settle` leaves unused.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    if model.quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    if model.quantization == "4bit":
        return BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=_held_in(model, origin),
        )
    return None


def _held_in(model: Model, origin: str) -> torch.dtype:
    if model.dtype != "auto":
        return getattr(torch, model.dtype)
    stored = AutoConfig.from_pretrained(origin, trust_remote_code=model.trust_remote_code).dtype
    return stored or torch.float32


def quantization_of(network: nn.Module) -> str:
    """`none`, `4bit` or `8bit`, as recorded by a loaded model."""
    if getattr(network, "is_loaded_in_4bit", False):
        return "4bit"
    return "8bit" if getattr(network, "is_loaded_in_8bit", False) else "none"


def settle(network: PreTrainedModel) -> None:
    """Make sampling and training compute alike on a CPU.

    There bitsandbytes packs 4-bit weights for bfloat16 kernels in eval mode, after which no gradient passes, and rounds
    the activations of 8-bit layers in eval mode alone. On a GPU both modes are equal already.
    """
    from bitsandbytes.nn import Linear4bit, Linear8bitLt

    for module in network.modules():
        if isinstance(module, Linear4bit):
            module.support_avx512bf16_for_cpu = False
        elif isinstance(module, Linear8bitLt) and module.weight.device.type == "cpu":
            kind: Any = type(module)
            module.__class__ = _always_training(kind)
            module.train()


@cache
def _always_training(kind: type[nn.Module]) -> type[nn.Module]:
    """The layer with a single way to compute, that of its training mode."""

    def train(self: nn.Module, mode: bool = True) -> nn.Module:
        return kind.train(self, True)

    return type(kind.__name__, (kind,), {"train": train, "__doc__": kind.__doc__})


def weight_bytes(network: nn.Module) -> int:
    """Memory of all weights: parameters, buffers, and the scales of quantized weights. Shared storage counts once."""
    return sum({(tensor.device, tensor.data_ptr()): tensor.nbytes for tensor in _tensors(network)}.values())


def _tensors(network: nn.Module) -> Iterator[torch.Tensor]:
    yield from network.buffers()
    for value in network.parameters():
        yield value
        yield from _scales(getattr(value, "quant_state", None))
    for module in network.modules():
        # An 8-bit layer hands its weight and scales to its state at the first forward pass.
        state = getattr(module, "state", None)
        held = (
            getattr(value, name, None)
            for value in (module, state, getattr(module, "weight", None))
            for name in ("CB", "SCB")
        )
        yield from (tensor for tensor in held if isinstance(tensor, torch.Tensor))


def _scales(state: object) -> Iterator[torch.Tensor]:
    """The tensors of a 4-bit weight's scales; doubly quantized, they have scales of their own."""
    if state is None:
        return
    yield from (value for value in vars(state).values() if isinstance(value, torch.Tensor))
    yield from _scales(getattr(state, "state2", None))
