"""`benchmark=packing`: forward and backward over packed rows against one padded row a completion.

Random weights of the configured model's shape, groups that fill a pass of `algorithm.max_tokens_per_device`, completions of
random lengths. First both compute the same, log-probabilities and gradients, in float32 on two layers of the shape; then
they are timed in turns in the model's own type, each first in every other round, and their peaks of memory are measured.
Padded rows are cut into passes of at most as many tokens.
"""

import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import FLEX, SDPA_PACKED, ModelRows, attending, packed, row_by_row
from rlvr_exp.benchmarks.contest import of_rounds
from rlvr_exp.benchmarks.memory import measuring, random_model, required_workload
from rlvr_exp.benchmarks.training import difference
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.memory.workload import GIB, Workload
from rlvr_exp.records.context import RunContext

PADDED = "padded"
ALIKE = 1e-4
"""Largest difference of log-probabilities in nats, and of gradients over their norm, of two equal computations."""
LAYERS = 2
"""Layers of the model that compares the ways in float32."""
SHORTEST = 0.25
"""The shortest completion, as a share of the longest."""


@dataclass(frozen=True)
class Samples:
    """Token ids of each sample's prompt and completion, and its group; groups are contiguous."""

    prompts: list[list[int]]
    completions: list[list[int]]
    owners: list[int]

    @property
    def tokens(self) -> int:
        """Learned from."""
        return sum(map(len, self.completions))

    def passes(self, way: str, limit: int) -> list[ModelRows]:
        """The rows of each pass of at most `limit` tokens, one sample at least."""
        width = max(map(len, self.completions))
        if way != PADDED:
            return [packed(self.prompts, self.completions, self.owners, width)]
        longest = max(len(one) + len(other) for one, other in zip(self.prompts, self.completions, strict=True))
        rows = max(1, limit // longest)
        starts = range(0, len(self.owners), rows)
        return [row_by_row(self.prompts[at : at + rows], self.completions[at : at + rows], width) for at in starts]


def samples_of(workload: Workload, seed: int) -> Samples:
    """Groups that fill a pass if every completion has its longest length. The lengths are then drawn."""
    draw, found = random.Random(seed), Samples([], [], [])
    shortest = max(1, int(SHORTEST * workload.completion))
    for group, (length, count) in enumerate(workload.groups):
        prompt = _ids(draw, length, workload)
        for _ in range(count):
            found.prompts.append(prompt)
            found.completions.append(_ids(draw, draw.randint(shortest, workload.completion), workload))
            found.owners.append(group)
    return found


def _ids(draw: random.Random, length: int, workload: Workload) -> list[int]:
    return [draw.randrange(workload.shape.vocabulary) for _ in range(length)]


class Learner:
    """Passes over the same samples, forward and backward, one way."""

    def __init__(self, model: nn.Module, way: str, rows: Sequence[ModelRows], device: str, mixed: bool = False):
        self._model, self._way, self._mixed = model, way, mixed
        self._device = torch.device(device)
        self._rows = [one.to(self._device) for one in rows]

    def __call__(self) -> list[torch.Tensor]:
        """The log-probabilities of each pass, (samples, T), after its backward pass."""
        found = []
        for rows in self._rows:
            arithmetic = torch.autocast(self._device.type, torch.bfloat16) if self._mixed else nullcontext()
            attention = nullcontext() if self._way == PADDED else attending(self._model, self._way)
            with attention:
                with arithmetic:
                    options: dict[str, Any] = {} if self._way == PADDED else {"implementation": self._way}
                    logprobs = score(self._model, rows, 1.0, **options).logprobs
                logprobs.sum().backward()
            found.append(rows.placed(logprobs.detach()))
        return found

    def timed(self) -> float:
        """Seconds of all passes."""
        self._wait()
        began = time.perf_counter()
        self()
        self._wait()
        self._model.zero_grad()
        return time.perf_counter() - began

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()


def ways(device: str) -> tuple[str, ...]:
    """The implementations of packed rows that have a backward pass on a device; FlexAttention has none on CPUs."""
    return (FLEX, SDPA_PACKED) if torch.device(device).type == "cuda" else (SDPA_PACKED,)


def agreement(config: Config, workload: Workload, way: str, device: str) -> tuple[float, float]:
    """The largest difference of a log-probability between a way and padded rows, and the difference of their gradients over
    the norm. Computed on two layers of the shape in float32."""
    shape = replace(workload.shape, layers=min(LAYERS, workload.shape.layers))
    small = replace(workload, shape=shape, dtype="float32", quantization="", checkpointing=False)
    model, samples = random_model(config, small, device), samples_of(small, config.seed)
    found = {}
    for one in (PADDED, way):
        logprobs = torch.cat(Learner(model, one, samples.passes(one, workload.limit), device)())
        gradients = [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
        found[one] = logprobs, torch.cat(gradients).clone()
        model.zero_grad()
    apart = (found[way][0] - found[PADDED][0]).abs().max()
    return float(apart), difference(found[way][1], found[PADDED][1])


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, float]]:
    """Each way's agreement with padded rows, and how much faster and smaller it is.

    Raises:
        GuardStop: a way computes something else.
        InputError: the model's shape is unknown.
    """
    workload = required_workload(config)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    same = {way: agreement(config, workload, way, device) for way in ways(device)}
    for way, (logprobs, gradient) in same.items():
        if max(logprobs, gradient) > ALIKE:
            raise GuardStop(
                f"{way} differs from padded rows: {logprobs:.2g} nats, {gradient:.2g} of the gradient's norm, "
                f"allowed {ALIKE:g}"
            )
    model, samples = random_model(config, workload, device), samples_of(workload, config.seed)
    model.train()
    lines = [
        f"{len(samples.owners)} completions of {len(set(samples.owners))} prompts of {workload.prompt} tokens, "
        f"{samples.tokens} tokens learned from, {workload.dtype} on {device}",
        f"{'against padded rows':<20}{'faster [95%]':>22}{'memory':>9}{'tokens/s':>12}{'log-probs':>12}{'gradient':>11}",
    ]
    metrics: dict[str, float] = {}
    rounds, mixed = config.benchmark.rounds, workload.width == 2
    for done, (way, (logprobs, gradient)) in enumerate(same.items()):
        context.progress(kind="phase", name=way, done=done, total=len(same))
        sides = {one: Learner(model, one, samples.passes(one, workload.limit), device, mixed) for one in (way, PADDED)}
        with measuring(device) as peak_of:  # The first pass of each is not timed.
            peaks = {one: peak_of(side.timed) for one, side in sides.items()}
        seconds: dict[str, list[float]] = {way: [], PADDED: []}
        for turn in range(rounds):
            for one in (way, PADDED) if turn % 2 == 0 else (PADDED, way):
                seconds[one].append(sides[one].timed())
        faster, smaller = of_rounds(seconds[way], seconds[PADDED]), peaks[PADDED] / peaks[way]
        per_s = samples.tokens * rounds / sum(seconds[way])
        lines.append(f"{way:<20}{faster!s:>22}{smaller:>8.2f}x{per_s:>12,.0f}{logprobs:>12.1e}{gradient:>11.1e}")
        metrics |= {f"faster/{way}": faster.value, f"memory/{way}": smaller, f"per_s/{way}": per_s}
    on_cuda = (
        f"{torch.cuda.max_memory_allocated() / GIB:.2f} GiB" if device == "cuda" else "counted from torch's operations"
    )
    return "\n".join([*lines, f"peak {on_cuda}"]), metrics
