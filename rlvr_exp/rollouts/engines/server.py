"""Completions from an OpenAI-compatible endpoint, which holds the weights. Loads none.

The engine counts choices: if a server leaves some out, it requests them again. A completion that was never answered is
`no_verdict`, because the policy is not at fault. Above a rate they stop the run. A prompt that the server refuses for its
length fails as `prompt_too_long`. A completion ends at the same texts as one of the local sampler (`ended_at`).
"""

import asyncio
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from torch import nn

from rlvr_exp.config import engine as options
from rlvr_exp.config.model import Model
from rlvr_exp.core.errors import GuardStop, InputError, InputProblem, Interrupted
from rlvr_exp.core.seeds import derive
from rlvr_exp.episodes.types import TokenCount
from rlvr_exp.models.policy import Policy, load_tokenizer
from rlvr_exp.rollouts.distributed import broadcast_object, rank
from rlvr_exp.rollouts.engines.base import Drawn, RolloutRequest
from rlvr_exp.rollouts.engines.client import Choice, Client, PromptTooLong, Refused, Reply, Unanswered
from rlvr_exp.rollouts.engines.probe import HONOURED, IGNORED, REFUSED, Features, probe, request_body, wanted_logprobs
from rlvr_exp.rollouts.engines.sampling_fields import sampling_fields
from rlvr_exp.rollouts.sampling_params import SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.tools import Tool
from rlvr_exp.verifiers.base import PROMPT_TOO_LONG, Verdict
from rlvr_exp.verifiers.guarded import MIN_VERDICTS

Result = TypeVar("Result")
POLL_S = 0.2
"""How soon a requested stop is seen."""
_END = object()


def results_of(
    work: Callable[[Callable[[Result], None]], Coroutine[Any, Any, None]], interrupted: Callable[[], bool]
) -> Iterator[Result]:
    """Yield the results of the coroutine as they come. If the iterator is left early, the coroutine is cancelled and has
    ended before that returns.

    Args:
        work: takes a function that emits a result; returns the coroutine.

    Raises:
        Interrupted: a stop was requested. Whatever the coroutine raises, after all that it had emitted.
    """
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    loop, faults = asyncio.new_event_loop(), []

    async def worked() -> None:
        await work(found.put)

    task = loop.create_task(worked())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        except BaseException as fault:  # Raised where the results are awaited.
            faults.append(fault)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
            found.put(_END)

    thread = threading.Thread(target=run, name="engine", daemon=True)
    thread.start()
    try:
        while True:
            if interrupted():
                raise Interrupted("stopped while the engine was asked for completions")
            try:
                one = found.get(timeout=POLL_S)
            except queue.Empty:
                continue
            if one is _END:
                break
            yield one
    finally:
        if thread.is_alive():
            with suppress(RuntimeError):  # The loop has just closed by itself.
                loop.call_soon_threadsafe(task.cancel)
        thread.join()
    if faults:
        raise faults[0]


def ended_at(text: str, stops: Sequence[str], domain: Domain) -> int | None:
    """The length of the text up to where a stop string, which stays part of it, or the domain ends it; None: nothing in
    it does."""
    found = [text.find(stop) + len(stop) for stop in stops if stop in text]
    first = min(found, default=None)
    part, start = domain.stop_text, 0
    while part and (start := text.find(part, start)) >= 0:
        end = start + len(part)
        if first is not None and end >= first:
            break
        if domain.is_complete(text[:end]):
            return end
        start += 1
    return first


SEEDS = 2**31
"""Seeds that every server takes."""
COUNTED = ("requests", "completions", "unanswered", "prompt_tokens", "completion_tokens")
"""Counts that are reported even if they are 0."""
COST = "system/engine_cost"
Emit = Callable[[Drawn], None]


@dataclass(frozen=True)
class _Ask:
    """Completions of a prompt that are asked for together."""

    request: int
    samples: tuple[int, ...]
    key: SampleKey
    """None: greedy."""


@dataclass(frozen=True)
class _Draw:
    """The arguments of one call of `draw`."""

    policy: Policy
    domain: Domain
    requests: Sequence[RolloutRequest]
    sampling: SamplingParams


class ServerEngine(options.Server):
    """
    Args:
        system: the system message before each prompt.
        wants_logprobs: ask for log-probabilities, if the server has them.
        filters: options that exclude tokens, by their path in the configuration; the server has to honour them.
        interrupted: whether a stop is requested.
    """

    def __init__(
        self,
        system: str = "",
        wants_logprobs: bool = False,
        filters: Mapping[str, float] = MappingProxyType({}),
        interrupted: Callable[[], bool] = lambda: False,
        **given: Any,
    ):
        super().__init__(**given)
        self._system, self._wants_logprobs, self._interrupted = system, wants_logprobs, interrupted
        self._filters = filters
        self._counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self._client = Client(self, self._counts)
        self.features = Features("", chat=True)
        """Of the server, once `begin` has returned."""

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        """Test the features of the server; see rlvr_exp.rollouts.engines.probe.

        Raises:
            InputError: the server cannot be used, or does not honour a filter of the configuration.
        """

        async def work(emit: Callable[[Features], None]) -> None:
            async with self._client as client:
                emit(await probe(client, self.model, self.api, self._system))

        if rank() == 0:
            (self.features,) = results_of(work, self._interrupted)
        self.features = broadcast_object(self.features)
        if problems := list(self._unmet()):
            raise InputError(*problems)
        requests, said = self._counts["requests"], "; ".join(self.features.limitations())
        note(f"{self.url} serves {self.features.model}{f': {said}' if said else ''} ({requests} requests of a probe)")
        return {"url": self.url, **self.features.section()}

    def _unmet(self) -> Iterator[InputProblem]:
        """Filters of the configuration that the server does not honour."""
        for path, value in self._filters.items():
            how = getattr(self.features, path.rpartition(".")[2])
            if how in (IGNORED, REFUSED):
                what = f"not honoured by {self.url} ({how})"
                remedy = "drop it, or engine=local, or serve the model with vLLM or llama.cpp"
                yield InputProblem(path, what, f"{value:g}", "neutral with this server", "", remedy)

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        work = partial(self._all, _Draw(policy, domain, requests, sampling))
        try:
            for one in results_of(work, self._interrupted):
                self._check_rate(one)
                yield one
        except Refused as fault:
            remedy = "see what the server's log says, then run the same command again"
            raise GuardStop(f"engine {self.url}: {fault}. Remedy: {remedy}") from fault

    async def _all(self, draw: _Draw, emit: Emit) -> None:
        watch = draw.sampling.watch

        def ended(one: Drawn) -> None:
            if watch is not None:
                watch.ended(one)
            emit(one)

        try:
            async with self._client, asyncio.TaskGroup() as group:
                for ask in self._asks(draw.requests):
                    group.create_task(self._answer(draw, ask, ended))
        except ExceptionGroup as several:
            raise several.exceptions[0] from several

    def _asks(self, requests: Sequence[RolloutRequest]) -> Iterator[_Ask]:
        """Each completion by itself if it has its own seed; otherwise those of a prompt together, if the server
        takes a number of them."""
        together = self.features.seed != HONOURED and self.features.n == HONOURED
        for place, request in enumerate(requests):
            drawn = [sample for sample, key in enumerate(request.keys) if key is not None]
            alone = [sample for sample in range(len(request.keys)) if not together or request.keys[sample] is None]
            yield from (_Ask(place, (sample,), request.keys[sample]) for sample in alone)
            if together and drawn:
                yield _Ask(place, tuple(drawn), request.keys[drawn[0]])

    async def _answer(self, draw: _Draw, ask: _Ask, emit: Emit) -> None:
        left, request = list(ask.samples), draw.requests[ask.request]
        while left:
            body = self._body(request.text, draw.sampling, ask.key, len(left))
            try:
                reply = await self._client.ask(self.features.chat, body, request.task.id, ask.request, left[0])
            except (Unanswered, PromptTooLong) as fault:
                for sample in left:
                    emit(self._never(ask.request, sample, fault))
                return
            if (surplus := len(reply.choices) - len(left)) > 0:
                self._counts["surplus_choices"] += surplus
            self._counts["prompt_tokens"] += reply.prompt_tokens or 0
            tokens = _tokens(reply, draw.policy)
            for sample, choice, count in zip(left, reply.choices, tokens, strict=False):
                emit(self._drawn(draw, ask.request, sample, choice, count))
            left = left[len(reply.choices) :]

    def _body(self, prompt: str, sampling: SamplingParams, key: SampleKey, n: int) -> dict[str, Any]:
        more: dict[str, Any] = {} if n == 1 else {"n": n}
        if key is not None and self.features.seed == HONOURED:
            more["seed"] = derive(*key) % SEEDS
        if sampling.stop:
            more["stop"] = list(sampling.stop)
        if self._wants_logprobs and self.features.logprobs == HONOURED:
            more |= wanted_logprobs(self.features.chat)
        more |= sampling_fields(self.features.dialect, None if key is None else sampling.filters)
        return request_body(self.features, prompt, self._system, sampling.max_new_tokens, **more)

    def _drawn(self, draw: _Draw, request: int, sample: int, choice: Choice, tokens: int) -> Drawn:
        self._counts["completions"] += 1
        self._counts["completion_tokens"] += tokens
        removed = choice.stop in draw.sampling.stop and not choice.text.endswith(choice.stop)
        text = choice.text + choice.stop if removed else choice.text
        end = ended_at(text, draw.sampling.stop, draw.domain)
        sampled = TokenCount(tokens, choice.truncated and end is None, choice.logprobs)
        return Drawn(request, sample, sampled, text if end is None else text[:end])

    def _never(self, request: int, sample: int, fault: Unanswered | PromptTooLong) -> Drawn:
        if isinstance(fault, PromptTooLong):
            self._counts["prompts_too_long"] += 1
            verdict = Verdict("failed", bucket=PROMPT_TOO_LONG, log=f"the server takes no such prompt: {fault}")
        else:
            self._counts["unanswered"] += 1
            verdict = Verdict("no_verdict", log=f"the server never answered: {fault}")
        return Drawn(request, sample, TokenCount(0, False), "", verdict)

    def _check_rate(self, one: Drawn) -> None:
        """Raises GuardStop past the rate."""
        lost, kept = self._counts["unanswered"], self._counts["completions"]
        if (
            one.verdict is not None
            and one.verdict.outcome == "no_verdict"
            and lost > self.max_unanswered_rate * max(lost + kept, MIN_VERDICTS)
        ):
            raise GuardStop(
                f"engine {self.url}: {lost} of {lost + kept} completions were never answered, allowed share "
                f"{self.max_unanswered_rate}. Last reason: {one.verdict.log}. "
                "Mend the server and run the same command again, or raise engine.max_unanswered_rate"
            )

    def metrics(self) -> Mapping[str, float]:
        """Counts of requests, answers and retries; the cost if the engine has prices."""
        found = {f"system/engine_{name}": float(count) for name, count in sorted(self._counts.items())}
        if self.prompt_price or self.completion_price:
            prompts = self._counts["prompt_tokens"] * self.prompt_price
            found[COST] = (prompts + self._counts["completion_tokens"] * self.completion_price) / 1e6
        return found


def _tokens(reply: Reply, policy: Policy) -> list[int]:
    """Tokens of each choice: as reported, else by the tokenizer, else an equal part of the total."""
    count = len(reply.choices)
    if count == 1 and reply.completion_tokens is not None:
        return [reply.completion_tokens]
    if all(one.logprobs is not None for one in reply.choices):
        return [len(one.logprobs or ()) for one in reply.choices]
    if policy.tokenizer is not None:
        return [len(policy.tokenizer(one.text, add_special_tokens=False).input_ids) for one in reply.choices]
    each, rest = divmod(reply.completion_tokens or 0, count)
    return [each + (place < rest) for place in range(count)]


@dataclass(frozen=True)
class ServedPolicy(Policy):
    """`model` has no parameters; `tokenizer` is that of `model.tokenizer`, or None: lengths are then the server's matter."""

    def encode_prompt(self, text: str, tools: Sequence[Tool] = ()) -> list[int]:
        """No ids without a tokenizer."""
        return [] if self.tokenizer is None else super().encode_prompt(text, tools)

    @property
    def notes(self) -> Iterator[str]:
        """None: the endpoint renders prompts and ends answers itself."""
        return iter(())


def served_policy(model: Model, chat: bool) -> ServedPolicy:
    """
    Args:
        model: the `model` node.
        chat: prompts go as messages.
    """
    tokenizer = load_tokenizer(model) if model.tokenizer else None
    worded = chat and tokenizer is not None and tokenizer.chat_template is not None
    return ServedPolicy(nn.Module(), tokenizer, (), worded, False, sys.maxsize, model.system)
