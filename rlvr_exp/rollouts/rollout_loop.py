"""Given tasks, answered and judged: one function for training, evaluation and inference.

A completion goes to the verifier when it ends, while the others still draw. Which tasks are asked, and what an answer is
worth, is not decided here.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rlvr_exp.core.phase import GENERATE, VERIFY, go_over, phase
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.completion import CUT, Answer, Read, read
from rlvr_exp.rollouts.sampler import Finished, Keys, Sampling, causal_model, stream
from rlvr_exp.rollouts.distributed import by_all_ranks, gathered, mine
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Request, Verdict, Verifier

Stream = Callable[[nn.Module, Sequence[Sequence[int]], Sequence[Sequence[Keys]], Sampling], Iterator[Finished]]
"""Makes the wanted completions of prompts, and hands each out as it ends; as rlvr_exp.rollouts.sampler.stream does."""
SMALL = 20_000_000
"""Parameters up to which a model samples with one thread."""


@dataclass(frozen=True)
class Question:
    """A task as it is put to the policy."""

    task: Task
    prompt: tuple[int, ...]
    """Token ids; never cut."""
    keys: tuple[Keys, ...]
    """The key of each wanted completion's draws, e.g. (run seed, "rollout", step, place, task id, sample); None: greedy."""


@dataclass(frozen=True)
class Answered:
    """What came of the questions asked together."""

    answers: tuple[tuple[Answer, ...], ...]
    """For each question its completions, in the order of its keys."""
    seconds: Mapping[str, float]
    """Wall seconds: `generate`, and `verify`, what waiting for verdicts cost once sampling had ended."""


def _sampler(*given: Any) -> Iterator[Finished]:
    """Our own, found by its name when it is asked and not when this module is read."""
    return stream(*given)


UNASKED = Verdict("no_verdict", log="nobody has been asked yet")


class Later:
    """Stands where a verifier is given while verdicts can wait: it is asked about answers without a candidate alone, whose
    verdicts cost nothing; all others are UNASKED."""

    def __init__(self, verifier: Verifier):
        self._verifier = verifier

    def as_ready(self, requests: Iterable[Request]) -> Iterator[tuple[int, Verdict]]:
        for index, request in enumerate(requests):
            yield index, self._verifier.verify([request])[0] if request.candidate.text is None else UNASKED


@by_all_ranks
def answer(
    policy: Policy,
    domain: Domain,
    verifier: Verifier | Later,
    questions: Sequence[Question],
    sampling: Sampling,
    stream: Stream = _sampler,
) -> Answered:
    """Sample every completion that the questions ask for, and judge it, where the verifier is no `Later`. `stream`: what
    makes completions."""
    asking = _Asking(policy, domain, questions, sampling, stream)
    with phase(GENERATE):
        for index, verdict in verifier.as_ready(asking.requests()):
            asking.judged(asking.submitted[index], verdict)
    answers = tuple(tuple(asking.done[place, i] for i in range(len(one.keys))) for place, one in enumerate(questions))
    return Answered(answers, asking.seconds())


def judge(verifier: Verifier, drawn: Sequence[Answer]) -> Answered:
    """Completions that were drawn before, judged: an `Answered` with one completion for each. All ranks call this
    together."""
    began, share = time.perf_counter(), mine(drawn)
    with phase(VERIFY):
        verdicts = verifier.verify([Request(one.task.problem, one.candidate) for one in share])
    answers = tuple((replace(one, verdict=verdict),) for one, verdict in zip(share, verdicts, strict=True))
    return gathered(Answered(answers, {"verify": time.perf_counter() - began}))


class _Asking:
    """The state of one `answer`: what has ended is read and waits for its verdict."""

    def __init__(
        self, policy: Policy, domain: Domain, questions: Sequence[Question], sampling: Sampling, stream: Stream
    ):
        self._policy, self._domain, self._questions, self._sampling = policy, domain, questions, sampling
        self._stream = stream
        self._began = self._generated = time.perf_counter()
        self._read: dict[tuple[int, int], Read] = {}
        self._drawn: dict[tuple[int, int], float] = {}
        self.submitted: list[tuple[int, int]] = []
        """(question, sample) of each request, in the order of their submission."""
        self.done: dict[tuple[int, int], Answer] = {}

    def requests(self) -> Iterator[Request]:
        """A request for each completion as it ends."""
        with beside_workers(self._policy.model):
            for batch in batches(self._questions, self._sampling.batch_size):
                yield from self._requests(batch)
        self._generated = time.perf_counter()
        go_over(VERIFY)

    def _requests(self, batch: Sequence[int]) -> Iterator[Request]:
        prompts, keys = [self._questions[i].prompt for i in batch], [self._questions[i].keys for i in batch]
        for one in self._stream(self._policy.model, prompts, keys, self._sampling):
            place = batch[one.prompt]
            task = self._questions[place].task
            self._drawn[place, one.sample] = time.perf_counter() - self._began
            self._read[place, one.sample] = found = read(self._policy, self._domain, task, one.sample, one.sampled)
            if one.sampled.truncated:
                self.judged((place, one.sample), CUT)
            else:
                self.submitted.append((place, one.sample))
                yield Request(task.problem, found.candidate)

    def judged(self, place: tuple[int, int], verdict: Verdict) -> None:
        found, drawn = vars(self._read.pop(place)), self._drawn.pop(place)
        self.done[place] = Answer(**found, verdict=verdict, seconds=time.perf_counter() - self._began, drawn=drawn)

    def seconds(self) -> dict[str, float]:
        return {"generate": self._generated - self._began, "verify": time.perf_counter() - self._generated}


@contextmanager
def beside_workers(model: nn.Module) -> Iterator[None]:
    """One thread for a small model on CPU: the verifier's workers need the other cores meanwhile, and threads that wait for
    each other on cores that are taken come to a crawl (ten times slower was seen). A large one has use for them all."""
    inner, threads = causal_model(model), torch.get_num_threads()
    small = inner.device.type == "cpu" and sum(value.numel() for value in inner.parameters()) <= SMALL
    torch.set_num_threads(1 if small else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def batches(questions: Sequence[Question], batch_size: int) -> Iterator[list[int]]:
    """Places of the questions that are answered together, those with prompts of like length: as many as have no more
    than `batch_size` completions, at least one."""
    batch: list[int] = []
    size = 0
    for place in sorted(range(len(questions)), key=lambda place: len(questions[place].prompt)):
        wanted = len(questions[place].keys)
        if batch and size + wanted > batch_size:
            yield batch
            batch, size = [], 0
        batch.append(place)
        size += wanted
    if batch:
        yield batch
