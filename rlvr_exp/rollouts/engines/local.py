"""This project's own sampler as an engine: the policy's weights in this process, prompts in the order of their lengths."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from rlvr_exp.config import engine as options
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest
from rlvr_exp.rollouts.kept_prefixes import Turns
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
        stream: samples the completions.
    """

    def __init__(self, stream: Stream = own_stream, **given: Any):
        super().__init__(**given)
        self._stream = stream

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        return {}

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        cpu = next(policy.model.parameters()).device.type == "cpu"
        # An accelerator's memory is planned for (rlvr_exp/docs/memory.md): nothing is kept there. The plan for a CPU counts the
        # prompts as they are.
        kept = requests[0].kept if requests and self.prefix_caching and cpu else None
        sampling = replace(sampling, planned_prompt=0) if cpu else sampling
        begun = {} if kept is None else {i: kept.of(one.prompt, one.follows) for i, one in enumerate(requests)}
        places = sorted(range(len(requests)), key=lambda i: len(requests[i].prompt))
        fresh, going_on = ([i for i in places if (begun.get(i) is None) == new] for new in (True, False))
        with single_threaded_if_small(policy.model):
            for own in filter(None, (fresh, going_on)):
                prompts, keys = [requests[i].prompt for i in own], [requests[i].keys for i in own]
                turns = Turns(kept, [found for i in own if (found := begun.get(i)) is not None])
                for one in self._stream(policy.model, prompts, keys, sampling, turns):
                    yield Drawn(own[one.prompt], one.sample, one.sampled, policy.decode(one.sampled.ids))

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
