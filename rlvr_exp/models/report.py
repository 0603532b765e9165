"""Which parameters of a policy are trained and how large it is: for the manifest, and in one line for a person."""

import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from rlvr_exp.models.quantization import quantization_of, weight_bytes

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
