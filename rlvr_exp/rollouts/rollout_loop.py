"""Completions of given tasks, generated and verified: one function for training, evaluation and inference.

A completion goes to the verifier when it ends, while the others are still being sampled. Which tasks are chosen, and what
reward a completion earns, is not decided here.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rlvr_exp.core.phase import GENERATE, VERIFY, go_over, phase
from rlvr_exp.episodes.types import PENDING, TRUNCATED, Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.distributed import all_gather_rollouts, data_parallel, shard
from rlvr_exp.rollouts.sampler import causal_model, stream
from rlvr_exp.rollouts.sampling_params import FinishedSample, SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

Stream = Callable[
    [nn.Module, Sequence[Sequence[int]], Sequence[Sequence[SampleKey]], SamplingParams], Iterator[FinishedSample]
]
"""Generates the requested completions of prompts, and yields each as it ends; as rlvr_exp.rollouts.sampler.stream does."""
SMALL = 20_000_000
"""The most parameters of a model that samples with one thread."""


@dataclass(frozen=True)
class RolloutRequest:
    """A task as a prompt for the policy, and how many completions to sample."""

    task: Task
    prompt: tuple[int, ...]
    """Token ids; never truncated."""
    keys: tuple[SampleKey, ...]
    """The random key of each completion, e.g. (run seed, "rollout", step, index, task id, sample); None: greedy."""


@dataclass(frozen=True)
class RolloutResult:
    """The verified completions of a list of requests."""

    completions: tuple[tuple[Completion, ...], ...]
    """The completions of each request, in the order of its keys."""
    seconds: Mapping[str, float]
    """Wall seconds: `generate`, and `verify`, the wait for pending verdicts after sampling had ended."""


def own_stream(*given: Any) -> Iterator[FinishedSample]:
    """Our own sampler, looked up when it is called and not when this module is imported."""
    return stream(*given)


class DeferredVerifier:
    """A verifier for verdicts that can wait: it verifies only completions without a candidate, which costs nothing; all
    others are PENDING."""

    def __init__(self, verifier: Verifier):
        self._verifier = verifier

    def as_ready(self, requests: Iterable[Request]) -> Iterator[tuple[int, Verdict]]:
        for index, request in enumerate(requests):
            yield index, self._verifier.verify([request])[0] if request.candidate.text is None else PENDING


@data_parallel
def generate_and_verify(
    policy: Policy,
    domain: Domain,
    verifier: Verifier | DeferredVerifier,
    requests: Sequence[RolloutRequest],
    sampling: SamplingParams,
    stream: Stream = own_stream,
) -> RolloutResult:
    """Sample the completions of every request and verify them; a `DeferredVerifier` leaves them pending.
    `stream`: the sampler."""
    loop = _RolloutLoop(policy, domain, requests, sampling, stream)
    with phase(GENERATE):
        for index, verdict in verifier.as_ready(loop.verifier_requests()):
            loop.record_verdict(loop.submitted[index], verdict)
    completions = tuple(tuple(loop.done[place, i] for i in range(len(one.keys))) for place, one in enumerate(requests))
    return RolloutResult(completions, loop.seconds())


def verify_completions(verifier: Verifier, drawn: Sequence[Completion]) -> RolloutResult:
    """Verify completions that were sampled earlier: a `RolloutResult` with one completion for each. All ranks call this
    together."""
    began = time.perf_counter()
    with phase(VERIFY):
        completions = tuple((one,) for one in verified(verifier, shard(drawn)))
    return all_gather_rollouts(RolloutResult(completions, {"verify": time.perf_counter() - began}))


def verified(verifier: Verifier, completions: Sequence[Completion]) -> list[Completion]:
    """The same completions with their verdicts; truncated ones are not verified."""
    ended = [Request(one.task.problem, one.candidate) for one in completions if not one.truncated]
    verdicts = iter(verifier.verify(ended))
    return [replace(one, verdict=TRUNCATED if one.truncated else next(verdicts)) for one in completions]


class _RolloutLoop:
    """The state of one `generate_and_verify`: completions that have ended are parsed and wait for their verdicts."""

    def __init__(
        self,
        policy: Policy,
        domain: Domain,
        requests: Sequence[RolloutRequest],
        sampling: SamplingParams,
        stream: Stream,
    ):
        self._policy, self._domain, self._requests, self._sampling = policy, domain, requests, sampling
        self._stream = stream
        self._began = self._generated = time.perf_counter()
        self.submitted: list[tuple[int, int]] = []
        """(request, sample) of each verification, in the order of submission."""
        self._parsed: dict[tuple[int, int], Completion] = {}
        """Completions that wait for their verdicts, by request and sample."""
        self.done: dict[tuple[int, int], Completion] = {}

    def verifier_requests(self) -> Iterator[Request]:
        """A verification request for each completion as it ends."""
        with single_threaded_if_small(self._policy.model):
            for batch in batches(self._requests, self._sampling.batch_size):
                yield from self._verifier_requests(batch)
        self._generated = time.perf_counter()
        go_over(VERIFY)

    def _verifier_requests(self, batch: Sequence[int]) -> Iterator[Request]:
        prompts, keys = [self._requests[i].prompt for i in batch], [self._requests[i].keys for i in batch]
        for one in self._stream(self._policy.model, prompts, keys, self._sampling):
            place = batch[one.prompt]
            task = self._requests[place].task
            drawn, text = time.perf_counter() - self._began, self._policy.decode(one.sampled.ids)
            found = Completion(task, one.sample, one.sampled, text, self._domain.parse(text, task), drawn=drawn)
            self._parsed[place, one.sample] = found
            if one.sampled.truncated:
                self.record_verdict((place, one.sample), TRUNCATED)
            else:
                self.submitted.append((place, one.sample))
                yield Request(task.problem, found.candidate)

    def record_verdict(self, place: tuple[int, int], verdict: Verdict) -> None:
        self.done[place] = replace(self._parsed.pop(place), verdict=verdict, seconds=time.perf_counter() - self._began)

    def seconds(self) -> dict[str, float]:
        return {"generate": self._generated - self._began, "verify": time.perf_counter() - self._generated}


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


def batches(requests: Sequence[RolloutRequest], batch_size: int) -> Iterator[list[int]]:
    """Indices of the requests of each batch. Prompts of similar length are batched together: as many requests as have no
    more than `batch_size` completions, at least one request."""
    batch: list[int] = []
    size = 0
    for place in sorted(range(len(requests)), key=lambda place: len(requests[place].prompt)):
        wanted = len(requests[place].keys)
        if batch and size + wanted > batch_size:
            yield batch
            batch, size = [], 0
        batch.append(place)
        size += wanted
    if batch:
        yield batch
