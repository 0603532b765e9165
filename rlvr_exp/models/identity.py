"""A hash that identifies a policy's weights without reading all of them."""

import torch
from torch import nn

from rlvr_exp.core.hashing import content_hash

EACH = 256
"""Values of each parameter that enter the hash, evenly spaced: an update changes nearly all of them."""


def weights_hash(model: nn.Module) -> str:
    """A hash of a part of every parameter, an adapter's included; 32 hexadecimal digits."""
    return content_hash({name: _part(value) for name, value in sorted(model.named_parameters())})


def _part(value: torch.Tensor) -> bytes:
    flat = value.detach().flatten()
    chosen = flat[:: max(1, flat.numel() // EACH)].cpu().contiguous()
    return chosen.view(torch.uint8).numpy().tobytes()
