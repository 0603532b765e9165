"""This project's own sampler as an engine: the policy's weights in this process, batches of prompts of similar length."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from rlvr_exp.config import engine as options
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest
from rlvr_exp.rollouts.kept_prefixes import KeptPrefix, Turns
from rlvr_exp.rollouts.sampler import causal_model, stream
from rlvr_exp.rollouts.sampling_params import FinishedSample, SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain

Stream = Callable[
    [nn.Module, Sequence[Sequence[int]], Sequence[Sequence[SampleKey]], SamplingParams, Turns],
    Iterator[FinishedSample],
]
"""Generates the requested completions of prompts, and yields each as it ends; as rlvr_exp.rollouts.sampler.stream does."""
SMALL = 20_000_000
"""The most parameters of a model that samples with one thread."""


def own_stream(*given: Any) -> Iterator[FinishedSample]:
    """Our own sampler, looked up when it is called and not when this module is imported."""
    return stream(*given)


class LocalEngine(options.Local):
    """
    Args:
        stream: samples a batch.
    """

    def __init__(self, stream: Stream = own_stream, **given: Any):
        super().__init__(**given)
        self._stream = stream

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        return {}

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        kept = requests[0].kept if requests and self.prefix_caching and _on_cpu(policy.model) else None
        begun = [None if kept is None else kept.of(one.prompt, one.follows) for one in requests]
        with single_threaded_if_small(policy.model):
            for batch in batches(requests, sampling.batch_size, begun):
                prompts, keys = [requests[i].prompt for i in batch], [requests[i].keys for i in batch]
                turns = Turns(kept, [found for i in batch if (found := begun[i]) is not None])
                for one in self._stream(policy.model, prompts, keys, sampling, turns):
                    yield Drawn(batch[one.prompt], one.sample, one.sampled, policy.decode(one.sampled.ids))

    def metrics(self) -> Mapping[str, float]:
        return {}


@contextmanager
def single_threaded_if_small(model: nn.Module) -> Iterator[None]:
    """One thread for a small model on CPU: the verifier's workers need the other cores meanwhile, and threads that wait for
    each other on busy cores slow to a crawl (ten times slower was measured). A large model uses all threads."""
    inner, threads = causal_model(model), torch.get_num_threads()
    small = inner.device.type == "cpu" and sum(value.numel() for value in inner.parameters()) <= SMALL
    torch.set_num_threads(1 if small else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def batches(
    requests: Sequence[RolloutRequest], batch_size: int, begun: Sequence[KeptPrefix | None] | None = None
) -> Iterator[list[int]]:
    """Indices of the requests of each batch: those of prompts that have begun apart from the others, and of similar length; as many as
    have no more than `batch_size` completions, at least one."""
    batch: list[int] = []
    size = 0

    def order(place: int) -> tuple[bool, int]:
        return begun is not None and begun[place] is not None, len(requests[place].prompt)

    for place in sorted(range(len(requests)), key=order):
        wanted = len(requests[place].keys)
        if batch and (size + wanted > batch_size or order(batch[0])[0] != order(place)[0]):
            yield batch
            batch, size = [], 0
        batch.append(place)
        size += wanted
    if batch:
        yield batch


def _on_cpu(model: nn.Module) -> bool:
    """An accelerator's memory is planned for (rlvr_exp/docs/memory.md), and has no room left."""
    return next(model.parameters()).device.type == "cpu"
