"""The parameters of a policy: which are trained (freezing by patterns of names), how many there are, and a hash of their values."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from rlvr_exp.config.checkpoint_files import frozen_nothing, nothing_left
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.models.quantization import quantization_of, weight_bytes


def freeze(network: nn.Module, patterns: Sequence[str]) -> int:
    """Freeze every parameter whose name fits a shell pattern; returns how many tensors that were.

    A tensor with several names, such as tied embeddings and head, is frozen by each of them.

    Raises:
        InputError: a pattern fits no name, or nothing is left to train.
    """
    names = dict(network.named_parameters(remove_duplicate=False))
    lost = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
    if lost:
        raise InputError(*(frozen_nothing(pattern, [*names]) for pattern in lost))
    frozen = [value for name, value in names.items() if any(fnmatchcase(name, pattern) for pattern in patterns)]
    for value in frozen:
        value.requires_grad_(False)
    if not any(value.requires_grad for value in names.values()):
        raise InputError(nothing_left(patterns))
    return len({id(value) for value in frozen})


NUMBER = re.compile(r"\.\d+(?=\.)")


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters, tied parameters counted once, and the memory of all weights as they are held now."""

    total: int
    trained: int
    weight_bytes: int
    quantization: str
    trained_by_part: dict[str, int]
    """By name, every layer's number as `*`."""

    @property
    def share(self) -> float:
        return self.trained / self.total

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "share": self.share}

    def __str__(self) -> str:
        bits = "" if self.quantization == "none" else f", base in {self.quantization}"
        held = f"weights hold {self.weight_bytes / 2**20:,.1f} MiB{bits}"
        return f"{self.trained:,} of {self.total:,} parameters are trained ({self.share:.2%}); {held}"


def parameters(model: nn.Module) -> Parameters:
    """Count the parameters of a loaded model."""
    total, by_part = 0, Counter[str]()
    for name, value in model.named_parameters():
        size = _size(value)
        total += size
        if value.requires_grad:
            by_part[NUMBER.sub(".*", name)] += size
    return Parameters(total, by_part.total(), weight_bytes(model), quantization_of(model), dict(by_part))


def _size(value: nn.Parameter) -> int:
    """Numbers in a parameter. A 4-bit parameter has the shape of its bytes, and a sharded parameter holds nothing."""
    state = getattr(value, "quant_state", None)
    return getattr(value, "ds_numel", value.numel()) if state is None else state.shape.numel()


EACH = 256
"""Values of each parameter that enter the hash, evenly spaced: an update changes nearly all of them."""


def weights_hash(model: nn.Module) -> str:
    """A hash of a part of every parameter, an adapter's included; 32 hexadecimal digits."""
    return content_hash({name: _part(value) for name, value in sorted(model.named_parameters())})


def _part(value: torch.Tensor) -> bytes:
    flat = value.detach().flatten()
    chosen = flat[:: max(1, flat.numel() // EACH)].cpu().contiguous()
    return chosen.view(torch.uint8).numpy().tobytes()
