"""Linear layers of a model on CPU by oneDNN, with their weights packed once a batch.

PyTorch multiplies float32 matrices by MKL, which uses half of what AMD's cores can do; oneDNN uses all of it, and packed
weights suit the few rows of a decoding step. The result is float32 all the same and differs by rounding alone. The op is
the one that torch.compile puts in a frozen graph's linear layers; where a build lacks it nothing changes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def packed_linears(model: nn.Module) -> Iterator[None]:
    """Meanwhile the float32 linear layers on CPU compute with copies of their weights as they are now; no gradients."""
    packed = [module for module in model.modules() if _suits(module)]
    for module in packed:
        module.forward = _forward(module)
    try:
        yield
    finally:
        for module in packed:
            del module.forward


def _suits(module: nn.Module) -> bool:
    """Exactly PyTorch's own layer, not a quantised one, nor one whose forward pass something else has wrapped."""
    if type(module) is not nn.Linear or "forward" in vars(module) or not torch.backends.mkldnn.is_available():
        return False
    weight = module.weight
    plain = weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.numel() > 0
    return plain and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _forward(module: nn.Linear) -> Callable[[torch.Tensor], torch.Tensor]:
    weight, bias = torch.ops.mkldnn._reorder_linear_weight(module.weight.detach()), module.bias

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")

    return forward
