"""The shortest time in which a machine can sample a batch, from its measured memory bandwidth and matrix-product rate."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from rlvr_exp.benchmarks.arithmetic import matrix_flops
from rlvr_exp.memory.workload import WIDTH, Workload

READ = 2**28
"""Bytes that are read to measure the bandwidth: more than the caches of a CPU hold."""
TRIES = 3


@dataclass(frozen=True)
class MachineLimit:
    """What the threads or the device of this process can do, in a model's number format."""

    bytes_per_s: float
    """Memory read by a sum of many numbers."""
    flop_per_s: float
    """Of a product of large matrices."""

    @classmethod
    def measured(cls, dtype: torch.dtype, device: str) -> "MachineLimit":
        numbers = torch.ones(READ // dtype.itemsize, dtype=dtype, device=device)
        return cls(READ / _shortest(numbers.sum, device), matrix_flops(dtype, device))

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
    """The best of several measurements: what other processes take from some of them is no limit of the machine."""
    return MachineLimit(max(one.bytes_per_s for one in limits), max(one.flop_per_s for one in limits))


def _shortest(work: Callable[[], object], device: str) -> float:
    """Seconds of the fastest of several tries."""
    found = []
    for _ in range(TRIES):
        began = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return min(found)
