"""A self-test of an endpoint: a dozen requests of a few tokens find the options that it silently ignores.

Servers take options that they do not know without a word: one returns a single choice for n=2, another takes the largest
logit at any temperature. Nothing is assumed: each option is tried, and its effect looked for.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.models.policy import plain_prompt
from rlvr_exp.rollouts.engines.client import Client, PromptTooLong, Refused, Reply, Unanswered
from rlvr_exp.rollouts.engines.sampling_fields import BARE, DIALECTS, OPENAI, sampling_fields
from rlvr_exp.rollouts.sampling_params import LogitFilters

PROMPT = "Write a line about a river, and another about the sea."
FEW = 16
"""Tokens of a probe's completion."""
HOT = LogitFilters(temperature=2.0)
"""The highest temperature of the API: two draws of so many tokens are equal only if nothing is drawn."""
ONE_TOKEN = {
    "top_k": replace(HOT, top_k=1),
    "top_p": replace(HOT, top_p=1e-3),
    "min_p": replace(HOT, min_p=1.0),
}
"""Filters that leave the likeliest token alone."""
PENALTY = 2.0
"""A repetition penalty, at the upper limit of some servers, that changes a greedy completion."""
AT_ONCE = 4
"""Draws under way together: a seed that holds for one request at a time holds for none of several."""
WORD = re.compile(r"[A-Za-z0-9]{2,4}")
HONOURED, IGNORED, REFUSED, UNKNOWN = "honoured", "ignored", "refused", "not known"
KEPT, REMOVED = "honoured, the text is kept", "honoured, the text is removed"


@dataclass(frozen=True)
class Features:
    """The features of a server."""

    model: str
    """Its name there."""
    chat: bool
    """Prompts go as messages; otherwise as text."""
    why_text: str = ""
    """The reason for text, if messages were tried."""
    limit: str = "max_tokens"
    """The name of the parameter that limits a completion's tokens."""
    dialect: str = DIALECTS[0]
    """The sampling fields that it takes."""
    max_tokens: str = UNKNOWN
    usage: str = UNKNOWN
    greedy: str = UNKNOWN
    """Whether completions at temperature 0 are equal."""
    temperature: str = UNKNOWN
    top_p: str = UNKNOWN
    top_k: str = UNKNOWN
    min_p: str = UNKNOWN
    repetition_penalty: str = UNKNOWN
    seed: str = UNKNOWN
    n: str = UNKNOWN
    logprobs: str = UNKNOWN
    stop: str = UNKNOWN

    def section(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self) | {"api": "chat" if self.chat else "completions"}

    def limitations(self) -> Iterator[str]:
        """Limitations that a person should know, each a clause."""
        if self.why_text:
            yield f"prompts go as plain text, since it does not chat ({self.why_text})"
        if self.greedy == IGNORED:
            yield "completions at temperature 0 differ: greedy ones are not repeatable"
        if self.temperature == IGNORED:
            yield "temperature has no effect: sampled completions of a prompt are all the same"
        elif self.seed != HONOURED:
            yield f"seed is {self.seed}: another run draws other completions"
        for how in (IGNORED, REFUSED, UNKNOWN):
            if self.temperature != IGNORED and (names := [one for one in FILTERS if getattr(self, one) == how]):
                yield f"{', '.join(names)}: {how}, so that values of the server may apply"
        if self.max_tokens == IGNORED:
            yield "max_tokens is ignored: completions are as long as the server likes"
        if self.n != HONOURED:
            yield f"n is {self.n}: each completion is a request of its own"
        if self.logprobs != HONOURED:
            yield f"logprobs are {self.logprobs}"
        if self.stop in (IGNORED, REFUSED):
            yield f"stop is {self.stop}: completions are cut here, after they were paid for"
        if self.usage == IGNORED:
            yield "usage is not reported: tokens are not counted"


FILTERS = (*ONE_TOKEN, "repetition_penalty")


def request_body(found: Features, prompt: str, system: str, tokens: int, **more: Any) -> dict[str, Any]:
    """The parameters of a request for completions of a prompt.

    Args:
        more: sampling fields, and any other parameters.
    """
    messages = [{"role": "system", "content": system}] if system else []
    words: dict[str, Any] = {"messages": [*messages, {"role": "user", "content": prompt}]}
    if not found.chat:
        words = {"prompt": plain_prompt(system, prompt)}
    return {"model": found.model, **words, found.limit: tokens, **more}


async def probe(client: Client, model: str, api: str, system: str) -> Features:
    """
    Args:
        model: its name on the server; empty: the only one that the server lists.
        api: as `engine.api`.

    Raises:
        InputError: the server does not answer, refuses, or does not say which model it serves.
    """
    try:
        return await _Probe(client, system).run(model or await _only_model(client), api)
    except Unanswered as fault:
        remedy = "start the server, correct engine.url, or raise engine.retries and engine.timeout_s"
        if not model:
            remedy += "; engine.model=NAME for one that does not list its models"
        raise InputError(InputProblem("engine.url", f"the server does not answer: {fault}", remedy=remedy)) from fault
    except PromptTooLong as fault:
        what = f"the server takes not even a prompt of a few words: {fault}"
        raise InputError(InputProblem("engine.url", what, remedy="serve a model with a longer context")) from fault
    except Refused as fault:
        raise InputError(_refusal(fault)) from fault


def _refusal(fault: Refused) -> InputProblem:
    if fault.status in (401, 403):
        remedy = "engine.api_key_env=NAME, the variable that holds a key of this server"
        return InputProblem("engine.api_key_env", f"the server wants another key: {fault}", remedy=remedy)
    if fault.status == 404:
        remedy = "engine.model=NAME as the server lists it, engine.url with its /v1, or the other engine.api"
        return InputProblem("engine.model", f"the server has no such model or address: {fault}", remedy=remedy)
    remedy = "engine.model=NAME as the server lists it, or the other engine.api"
    return InputProblem("engine.url", f"the server refuses a plain request: {fault}", remedy=remedy)


async def _only_model(client: Client) -> str:
    names = await client.models()
    if len(names) != 1:
        what = f"the server lists {len(names)} models" if names else "the server lists no model"
        allowed = ", ".join(names[:10])
        raise InputError(InputProblem("engine.model", what, "none is named", allowed, "", "engine.model=NAME"))
    return names[0]


class _Probe:
    def __init__(self, client: Client, system: str):
        self._client, self._system = client, system
        self._greedy: set[str] = set()

    async def run(self, model: str, api: str) -> Features:
        found, first = await self._api(Features(model, chat=api != "completions"), api == "auto")
        found = replace(
            found,
            max_tokens=IGNORED if (first.completion_tokens or 0) > FEW else HONOURED,
            usage=IGNORED if first.completion_tokens is None or first.prompt_tokens is None else HONOURED,
        )
        text = first.choices[0].text
        n, logprobs, stop, penalty = await asyncio.gather(
            self._n(found), self._logprobs(found), self._stop(found, text), self._penalty(found, text)
        )
        narrowed = await asyncio.gather(*(self._filtered(found, filters) for filters in ONE_TOKEN.values()))
        temperature, seed = await self._draws(found)
        greedy = HONOURED if len(self._greedy) == 1 else IGNORED
        found = replace(found, n=n, logprobs=logprobs, stop=stop, temperature=temperature, seed=seed, greedy=greedy)
        top_k, top_p, min_p = (self._filter(found, *one) for one in zip(ONE_TOKEN, narrowed, strict=True))
        return replace(found, repetition_penalty=penalty, top_k=top_k, top_p=top_p, min_p=min_p)

    async def _ask(
        self, found: Features, filters: LogitFilters | None = None, penalty: float = 1.0, **more: Any
    ) -> Reply:
        fields = sampling_fields(found.dialect, filters, penalty)
        body = request_body(found, PROMPT, self._system, FEW, **fields, **more)
        reply = await self._client.ask(found.chat, body, "probe", *more)
        if filters is None and penalty == 1 and "stop" not in more:
            self._greedy.update(choice.text for choice in reply.choices)
        return reply

    async def _api(self, found: Features, either: bool) -> tuple[Features, Reply]:
        """The first answer, and the features that it needed."""
        try:
            return await self._dialect(found)
        except Refused as fault:
            if not either or fault.status in (401, 403):
                raise
            refusal: Refused | Unanswered = fault
        except Unanswered as fault:
            if not either:
                raise
            refusal = fault
        try:
            return await self._dialect(replace(found, chat=False, why_text=str(refusal)))
        except (Refused, Unanswered):
            raise refusal from None  # Neither answers: the first one says why.

    async def _dialect(self, found: Features) -> tuple[Features, Reply]:
        """The first answer in the first dialect that the server does not refuse."""
        for dialect in DIALECTS:
            found = replace(found, dialect=dialect)
            try:
                try:
                    return found, await self._ask(found)
                except Refused as fault:
                    if not found.chat or "max_completion_tokens" not in str(fault):
                        raise
                    found = replace(found, limit="max_completion_tokens")
                    return found, await self._ask(found)
            except Refused as fault:
                if dialect == BARE or fault.status in (401, 403, 404):
                    raise
        raise AssertionError

    async def _n(self, found: Features) -> str:
        """Drawn, since vLLM refuses several greedy completions."""
        try:
            return HONOURED if len((await self._ask(found, HOT, n=2)).choices) == 2 else IGNORED
        except (Refused, Unanswered):
            return REFUSED

    async def _logprobs(self, found: Features) -> str:
        try:
            reply = await self._ask(found, **wanted_logprobs(found.chat))
        except (Refused, Unanswered):
            return REFUSED
        return IGNORED if reply.choices[0].logprobs is None else HONOURED

    async def _stop(self, found: Features, text: str) -> str:
        """Stop at a word from the middle of the answer without a stop."""
        words = WORD.findall(text)
        if not words:
            return UNKNOWN
        part = words[len(words) // 2]
        try:
            stopped = (await self._ask(found, stop=[part])).choices[0].text
        except (Refused, Unanswered):
            return REFUSED
        if stopped == text:
            return IGNORED
        return KEPT if part in stopped else REMOVED

    async def _penalty(self, found: Features, text: str) -> str:
        """Whether a repetition penalty changes the greedy completion."""
        if found.dialect in (OPENAI, BARE):
            return REFUSED
        try:
            other = (await self._ask(found, penalty=PENALTY)).choices[0].text
        except (Refused, Unanswered):
            return REFUSED
        return IGNORED if other == text else HONOURED

    async def _filtered(self, found: Features, filters: LogitFilters) -> str | None:
        """The completion with a filter; None: refused."""
        try:
            return (await self._ask(found, filters)).choices[0].text
        except (Refused, Unanswered):
            return None

    def _filter(self, found: Features, name: str, text: str | None) -> str:
        """Whether a filter that leaves one token made a hot draw greedy."""
        if text is None or (found.dialect in (OPENAI, BARE) and name != "top_p"):
            return REFUSED
        if found.temperature == IGNORED or found.greedy == IGNORED:
            return UNKNOWN
        return HONOURED if text in self._greedy else IGNORED

    async def _draws(self, found: Features) -> tuple[str, str]:
        """Whether the server honours the temperature, and a seed."""
        seeds = [number % 2 for number in range(AT_ONCE)]
        try:
            replies = await asyncio.gather(*(self._ask(found, HOT, seed=seed) for seed in seeds))
        except (Refused, Unanswered):
            one, other = [await self._ask(found, HOT) for _ in range(2)]
            return (IGNORED if one.choices[0].text == other.choices[0].text else HONOURED), REFUSED
        of_seed = [{replies[place].choices[0].text for place in range(at, AT_ONCE, 2)} for at in range(2)]
        if of_seed[0] == of_seed[1] and len(of_seed[0]) == 1:
            return IGNORED, UNKNOWN
        return HONOURED, HONOURED if all(len(texts) == 1 for texts in of_seed) else IGNORED


def wanted_logprobs(chat: bool) -> dict[str, Any]:
    """The parameter that asks for the log-probability of each token."""
    return {"logprobs": True} if chat else {"logprobs": 1}
