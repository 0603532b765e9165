"""`benchmark=packing`: forward and backward over packed rows against one padded row a completion.

Random weights of the configured model's shape, groups that fill a pass of `algorithm.max_tokens_per_device`, completions of
random lengths. First both compute the same, log-probabilities and gradients, in float32 on two layers of the shape; then
they are timed in turns in the model's own type, each first in every other round, and their peaks of memory are measured.
Padded rows are cut into passes of at most as many tokens.
"""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rlvr_exp.algorithms.logprobs import score
from rlvr_exp.algorithms.packing import FLEX, SDPA_PACKED, ModelRows, attending, packed, row_by_row
from rlvr_exp.benchmarks.contest import Ratio, of_rounds
from rlvr_exp.benchmarks.memory import measuring, random_model, required_workload
from rlvr_exp.benchmarks.training import difference
from rlvr_exp.config.schema import Config
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.memory.workload import GIB, Workload
from rlvr_exp.records.context import RunContext

PADDED = "padded"
ALIKE = 1e-4
"""Difference of log-probabilities in nats, and of gradients over their norm, up to which two ways compute the same."""
LAYERS = 2
"""Layers on which the ways are compared in float32."""
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
    """Groups that fill a pass where every completion has its longest length; the lengths are then drawn."""
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


@dataclass(frozen=True)
class Agreement:
    """How far a way is from padded rows: the largest difference of a log-probability, and that of the gradient over its
    norm."""

    logprobs: float
    gradient: float


def agreement(config: Config, workload: Workload, way: str, device: str) -> Agreement:
    """On two layers of the shape in float32."""
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
    return Agreement(float(apart), difference(found[way][1], found[PADDED][1]))


@dataclass(frozen=True)
class Contest:
    """Seconds and peak bytes of padded rows over those of a way; the tokens learned from a second."""

    speed: Ratio
    memory: float
    per_s: float


def contest(model: nn.Module, workload: Workload, samples: Samples, way: str, device: str, rounds: int) -> Contest:
    """Both timed in turns after a pass that is not counted."""
    mixed = workload.width == 2
    sides = {one: Learner(model, one, samples.passes(one, workload.limit), device, mixed) for one in (way, PADDED)}
    with measuring(device) as measure:
        peaks = {one: measure(_cleared(model, side)) for one, side in sides.items()}
    seconds: dict[str, list[float]] = {way: [], PADDED: []}
    for turn in range(rounds):
        for one in (way, PADDED) if turn % 2 == 0 else (PADDED, way):
            seconds[one].append(sides[one].timed())
    speed = of_rounds(seconds[way], seconds[PADDED])
    return Contest(speed, peaks[PADDED] / peaks[way], samples.tokens * rounds / sum(seconds[way]))


def _cleared(model: nn.Module, side: Learner) -> Callable[[], object]:
    def work() -> None:
        side()
        model.zero_grad()

    return work


def measure(config: Config, context: RunContext) -> tuple[str, dict[str, float]]:
    """Each way's agreement with padded rows, and how much faster and smaller it is.

    Raises:
        GuardStop: a way computes something else.
        InputError: the model's shape is unknown.
    """
    workload = required_workload(config)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    same = {way: agreement(config, workload, way, device) for way in ways(device)}
    for way, apart in same.items():
        if max(apart.logprobs, apart.gradient) > ALIKE:
            raise GuardStop(
                f"{way} differs from padded rows: {apart.logprobs:.2g} nats, {apart.gradient:.2g} of the gradient's norm, "
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
    for done, (way, apart) in enumerate(same.items()):
        context.progress(kind="phase", name=way, done=done, total=len(same))
        found = contest(model, workload, samples, way, device, config.benchmark.rounds)
        lines.append(
            f"{way:<20}{found.speed!s:>22}{found.memory:>8.2f}x{found.per_s:>12,.0f}{apart.logprobs:>12.1e}{apart.gradient:>11.1e}"
        )
        metrics |= {f"faster/{way}": found.speed.value, f"memory/{way}": found.memory, f"per_s/{way}": found.per_s}
    return "\n".join([*lines, f"peak {_peak(device)}"]), metrics


def _peak(device: str) -> str:
    return (
        f"{torch.cuda.max_memory_allocated() / GIB:.2f} GiB" if device == "cuda" else "counted from torch's operations"
    )
