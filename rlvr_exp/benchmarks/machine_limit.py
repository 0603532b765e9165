"""The limits of a machine: its speed in products of large matrices and in reading memory, the arithmetic of an update, and
the shortest time to sample a batch.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.memory.workload import WIDTH, Workload
from rlvr_exp.models.onednn_linear import product

SIDE = 2048
"""Rows and columns of the matrices that are multiplied."""
TRIES = 3
FORWARD, BACKWARD = 1, 2
"""Products of a forward pass, and of a backward pass for inputs and weights, for each weight and token."""


def update_flops(model: nn.Module, batch: TrainingBatch, reference: bool = False) -> float:
    """Floating-point operations that an update needs: the prompt of each group once, the head for predicted tokens alone,
    attention for pairs of tokens that see each other. Samples without a gradient need none.

    Args:
        reference: the log-probabilities of a reference policy are computed as well.
    """
    config = model.config.get_text_config()
    outer = {id(part.weight) for part in (model.get_input_embeddings(), model.get_output_embeddings())}
    inner = [value for value in model.parameters() if value.ndim == 2 and id(value) not in outer]
    head = model.get_output_embeddings().weight
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    pair = 2 * config.num_hidden_layers * config.num_attention_heads * size  # Scores, and the sum of values.
    learned = ((batch.weights if reference else batch.weights * batch.advantages) != 0).any(1)
    total = 0.0
    for rows in batch.rows_of:
        lengths = [int(batch.completion_mask[row].sum()) for row in rows if learned[row]]
        if not lengths:
            continue
        prefix, scored = int(batch.prompt_mask[rows.start].sum()) - 1, sum(lengths)  # As in a packed row.
        tokens, pairs = prefix + scored, prefix**2 / 2 + sum(length * prefix + length**2 / 2 for length in lengths)
        times = FORWARD + BACKWARD + FORWARD * reference
        total += 2 * (tokens * sum(_times(value, times) * value.numel() for value in inner))
        total += 2 * (scored * _times(head, times) * head.numel() + times * pair * pairs)
    return total


def _times(weight: torch.Tensor, times: int) -> int:
    """A frozen weight has no gradient of its own."""
    return times if weight.requires_grad else times - 1


def matrix_flops(dtype: torch.dtype = torch.float32, device: str = "cpu") -> float:
    """Floating-point operations a second of a large product on torch's current threads or a GPU, the best of a few tries of
    each library."""
    x, y = torch.randn((2, SIDE, SIDE), device=device).to(dtype)
    libraries = device == "cpu" and dtype == torch.float32 and torch.backends.mkldnn.is_available()
    ways = [torch.matmul, *([product] if libraries else [])]
    fastest = min(seconds_of(partial(way, x, y)) for _ in range(TRIES) for way in ways)
    return 2 * SIDE**3 / fastest


def seconds_of(work: Callable[[], object]) -> float:
    """Seconds of one call, until the GPU has finished if there is one."""
    began = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


READ = 2**28
"""Bytes that are read to measure the bandwidth: more than the caches of a CPU hold."""


@dataclass(frozen=True)
class MachineLimit:
    """Speeds of the threads or the device of this process, in a model's number format."""

    bytes_per_s: float
    """Memory read by a sum of many numbers."""
    flop_per_s: float
    """Of a product of large matrices."""

    @classmethod
    def measured(cls, dtype: torch.dtype, device: str) -> "MachineLimit":
        numbers = torch.ones(READ // dtype.itemsize, dtype=dtype, device=device)
        seconds = min(seconds_of(numbers.sum) for _ in range(TRIES))
        return cls(READ / seconds, matrix_flops(dtype, device))

    def seconds(self, work: "SamplingWork") -> float:
        """The greater of memory and compute time."""
        return max(work.bytes / self.bytes_per_s, work.flop / self.flop_per_s)


@dataclass(frozen=True)
class SamplingWork:
    """The work of sampling a batch at the longest lengths with one pass for each token and each prompt computed once."""

    flop: float
    bytes: float

    @classmethod
    def of(cls, workload: Workload) -> "SamplingWork":
        """Products of the weights and of the attention; reads of the weights, keys and values in every pass."""
        shape, batch = workload.shape, workload.sampling_batch
        body, head = shape.layers * shape.layer_matrices, shape.vocabulary * shape.hidden
        drawn, prompts = batch.groups * batch.size * batch.completion, batch.groups * batch.prompt
        # The first token of a completion follows from its prompt's pass, the last token is not fed.
        fed = drawn - batch.groups * batch.size
        looked_back = fed * (batch.prompt + batch.completion / 2) + prompts * batch.prompt / 2
        attention = 4 * shape.layers * shape.heads * shape.head_dim * looked_back
        flop = 2 * (body * (prompts + fed) + head * (batch.groups + fed)) + attention
        kept = batch.groups * (batch.prompt + batch.size * batch.completion / 2)
        numbers = body + head + 2 * shape.layers * shape.kv_heads * shape.head_dim * kept
        return cls(float(flop), float(batch.completion * numbers * WIDTH[workload.dtype]))


def fastest(limits: Sequence[MachineLimit]) -> MachineLimit:
    """The best of several measurements: the load of other processes is no limit of the machine."""
    return MachineLimit(max(one.bytes_per_s for one in limits), max(one.flop_per_s for one in limits))
