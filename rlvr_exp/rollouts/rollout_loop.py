"""Completions of given tasks, generated and verified: one function for training, evaluation and inference.

A completion goes to the verifier when it ends, while the others are still being sampled. Which tasks are chosen, and what
reward a completion earns, is not decided here.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rlvr_exp.core.phase import GENERATE, VERIFY, go_over, phase
from rlvr_exp.episodes.types import PENDING, TRUNCATED, Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.distributed import all_gather_rollouts, data_parallel, shard
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest, SamplingEngine
from rlvr_exp.rollouts.engines.local import LocalEngine
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Candidate, Domain
from rlvr_exp.verifiers.base import Request, Verdict, Verifier


@dataclass(frozen=True)
class RolloutResult:
    """The verified completions of a list of requests."""

    completions: tuple[tuple[Completion, ...], ...]
    """The completions of each request, in the order of its keys."""
    seconds: Mapping[str, float]
    """Wall seconds: `generate`, and `verify`, the wait for pending verdicts after sampling had ended."""


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
    engine: SamplingEngine | None = None,
) -> RolloutResult:
    """Sample the completions of every request and verify them; a `DeferredVerifier` leaves them pending.
    `engine`: what samples; None: our own sampler."""
    loop = _RolloutLoop(policy, domain, requests, sampling, engine or LocalEngine())
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
        engine: SamplingEngine,
    ):
        self._policy, self._domain, self._requests, self._sampling = policy, domain, requests, sampling
        self._engine = engine
        self._began = self._generated = time.perf_counter()
        self.submitted: list[tuple[int, int]] = []
        """(request, sample) of each verification, in the order of submission."""
        self._parsed: dict[tuple[int, int], Completion] = {}
        """Completions that wait for their verdicts, by request and sample."""
        self._asked: dict[tuple[int, int], float] = {}
        """When each of them was asked for; earlier than this batch for one that an earlier process has sampled."""
        self.done: dict[tuple[int, int], Completion] = {}

    def verifier_requests(self) -> Iterator[Request]:
        """A verification request for each completion as it ends."""
        for one in self._engine.draw(self._policy, self._domain, self._requests, self._sampling):
            place, found = (one.request, one.sample), self._completion(one)
            self._parsed[place], self._asked[place] = found, time.perf_counter() - found.drawn
            verdict = TRUNCATED if one.verdict is None and found.truncated else one.verdict
            if verdict is not None:
                self.record_verdict(place, verdict)
            else:
                self.submitted.append(place)
                yield Request(found.task.problem, found.candidate)
        self._generated = time.perf_counter()
        go_over(VERIFY)

    def _completion(self, one: Drawn) -> Completion:
        task = self._requests[one.request].task
        drawn = time.perf_counter() - self._began if one.seconds is None else one.seconds
        parsed = self._domain.parse(one.text, task) if one.verdict is None else Candidate(None, one.verdict.log)
        return Completion(task, one.sample, one.sampled, one.text, parsed, drawn=drawn)

    def record_verdict(self, place: tuple[int, int], verdict: Verdict) -> None:
        seconds = time.perf_counter() - self._asked.pop(place)
        self.done[place] = replace(self._parsed.pop(place), verdict=verdict, seconds=seconds)

    def seconds(self) -> dict[str, float]:
        return {"generate": self._generated - self._began, "verify": time.perf_counter() - self._generated}
