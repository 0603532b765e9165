"""Linear layers of a model on CPU by oneDNN, for sampling and for training.

PyTorch multiplies float32 matrices by MKL, which uses half of what AMD's cores can do; oneDNN uses all of it. The result
is float32 all the same and differs by rounding alone. The op is the one that torch.compile puts in a frozen graph's
linear layers; if a build lacks it, nothing changes. Equal inputs on equally many threads give equal bits.

oneDNN compiles a kernel of some 0.3 MB for every number of rows that a layer ever meets, and keeps it for as long as the
process lives: a run whose batches differ in length grows by gigabytes. So rows of zeros are added up to one of a few
numbers; the results of the other rows stay the same.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear, pad

_STEPS = 16
"""Numbers of rows between a power of two and the next: at most a sixteenth of the rows is added."""
_AVX512 = "AVX512" in torch.backends.cpu.get_cpu_capability()
Forward = Callable[[torch.Tensor], torch.Tensor]


@contextmanager
def onednn_inference(model: nn.Module) -> Iterator[None]:
    """Inside the block the float32 linear layers on CPU compute with copies of their current weights, packed for the
    few rows of a decoding step; no gradients."""
    with _replaced(model, _packed):
        yield


@contextmanager
def onednn_training(model: nn.Module) -> Iterator[None]:
    """Inside the block oneDNN computes the float32 linear layers on CPU, and their gradients, from their own weights.

    Holds for a backward pass as well, where gradient checkpointing recomputes layers. Layers whose weights are sharded
    over ranks (ZeRO-3) are left out: their presence depends on earlier computations, and a resumed run
    has computed nothing yet.
    """
    with _replaced(model, _trained, lambda module: not hasattr(module.weight, "ds_id")):
        yield


@contextmanager
def _replaced(
    model: nn.Module, made: Callable[[nn.Linear], Forward], wanted: Callable[[nn.Linear], bool] = lambda _: True
) -> Iterator[None]:
    """Layers that are replaced already stay as they are."""
    found = [module for module in model.modules() if packable(module) and wanted(module)]
    for module in found:
        module.forward = made(module)
    try:
        yield
    finally:
        for module in found:
            del module.forward


def packable(module: nn.Module) -> bool:
    """Whether it is exactly PyTorch's own layer: neither quantised, nor wrapped, nor sharded by something else."""
    if type(module) is not nn.Linear or "forward" in vars(module) or not torch.backends.mkldnn.is_available():
        return False
    weight = module.weight
    plain = type(weight) is nn.Parameter and weight.device.type == "cpu" and weight.dtype == torch.float32
    return plain and weight.numel() > 0 and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class PackedLinear:
    """x W^T + b with a copy of W packed for the few rows of a decoding step; no gradients. A number of rows is best one that
    `padded_rows` gives.

    Args:
        weight: (outputs, inputs)
        bias: (outputs,) or None
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
        self._bias = None if bias is None else bias.detach()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return product(x, self._weight, self._bias)

    def plus(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """residual + x W^T + b, added as the product is stored."""
        return torch.ops.mkldnn._linear_pointwise.binary(x, residual, self._weight, self._bias, "add")

    def silu(self, x: torch.Tensor) -> torch.Tensor:
        """silu(x W^T + b), computed as the product is stored."""
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "swish", [], "")

    def gated(self, gate: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """gate * (x W^T + b), multiplied as the product is stored."""
        return torch.ops.mkldnn._linear_pointwise.binary(x, gate, self._weight, self._bias, "mul")


def _packed(module: nn.Linear) -> Forward:
    packed = PackedLinear(module.weight, module.bias)
    return lambda x: _with_filled_rows(packed, x)


def _trained(module: nn.Linear) -> Forward:
    def forward(x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float32 or x.numel() == 0 or torch.is_autocast_enabled("cpu"):
            return linear(x, module.weight, module.bias)
        return _Linear.apply(x, module.weight, module.bias)

    return forward


def padded_rows(count: int) -> int:
    """The number of rows that `count` rows are padded to: two at least, since oneDNN sums one row's product in another order
    where its inputs are many."""
    step = max(1, (1 << count.bit_length()) // 2 // _STEPS)
    return max(2, -(-count // step) * step)


def filled_rows(rows: torch.Tensor) -> torch.Tensor:
    """(rows, columns) with rows of zeros below."""
    missing = padded_rows(len(rows)) - len(rows)
    return pad(rows, (0, 0, 0, missing)) if missing else rows


def _times(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias; the weight may be transposed in memory."""
    return _with_filled_rows(lambda rows: product(rows, weight, bias), x)


def _with_filled_rows(multiply: Forward, x: torch.Tensor) -> torch.Tensor:
    """The product of all rows of x (..., inputs), with rows of zeros below."""
    found = multiply(filled_rows(x.reshape(-1, x.shape[-1])))
    return found.resize_(*x.shape[:-1], found.shape[-1])  # No view: what a model does in place would be refused.


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias; any of them may be transposed in memory."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class _Linear(torch.autograd.Function):
    """x W^T + b with the gradients of all three: dx = g W, dW = g^T x, db = the sum of g over rows."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return _times(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        rows = grad.reshape(-1, grad.shape[-1])
        return (
            _times(rows, weight.t()).view(x.shape) if for_x else None,
            outer(rows, x.reshape(-1, x.shape[-1])) if for_weight else None,
            rows.sum(0) if for_bias else None,
        )


def outer(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """left^T right, of many rows and few columns; oneDNN is up to twice as fast if the result is wide, not tall. Without
    AVX-512 MKL is faster than either."""
    if not _AVX512:
        return left.t() @ right
    left, right = filled_rows(left), filled_rows(right)
    if left.shape[1] <= right.shape[1]:
        return product(left.t(), right.t())
    return product(right.t(), left.t()).t()
