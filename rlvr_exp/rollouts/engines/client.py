"""Requests to an OpenAI-compatible endpoint: concurrency, time limits, retries, and the reading of answers.

The client repeats a request that failed by the server's fault. It does not repeat one that the server refuses, which would
be refused again. A body that is no answer is never taken for one. Knows nothing of tasks and completions.
"""

import asyncio
import json
import math
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, TypeVar

import openai

from rlvr_exp.config.engine import Endpoint
from rlvr_exp.core.secrets import MASK, masked
from rlvr_exp.core.seeds import uniform

NAMED_BY_ID = re.compile(r"token_id:(\d+)")
"""A token in an answer to `return_tokens_as_token_ids` (vLLM)."""
SHOWN = 200
"""Characters of a body that a message quotes."""


class Nonsense(Exception):
    """A body that is no answer: not JSON, cut off, or without choices. The message names the fault."""


@dataclass(frozen=True)
class Choice:
    """One completion."""

    text: str
    truncated: bool
    """Its token limit ended it."""
    logprobs: tuple[float, ...] | None
    """Of each token, if they were reported."""
    stop: str
    """The stop string that ended it, if the server names it (vLLM does); empty if unknown."""
    ids: tuple[int, ...] | None = None
    """Its tokens, if they were reported (vLLM's `return_token_ids`)."""
    first: Mapping[int, float] = field(default_factory=dict)
    """Log-probabilities of tokens in the place of its first one, if their ids were reported."""


@dataclass(frozen=True)
class Reply:
    choices: tuple[Choice, ...]
    """At least one."""
    prompt_tokens: int | None
    completion_tokens: int | None
    """Of all choices together; None: not reported."""


def reply_of(content: bytes, chat: bool) -> Reply:
    """Raises Nonsense."""
    body = _object(content)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Nonsense(f"no choices: {_shown(content)}")
    usage = body.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    given = [counts.get(name) for name in ("prompt_tokens", "completion_tokens")]
    tokens = (one if isinstance(one, int) and not isinstance(one, bool) and one >= 0 else None for one in given)
    return Reply(tuple(_choice(one, chat, content) for one in choices), *tokens)


def models_of(content: bytes) -> list[str]:
    """The names of an answer to /models. Raises Nonsense."""
    data = _object(content).get("data")
    if not isinstance(data, list) or not all(isinstance(one, dict) and isinstance(one.get("id"), str) for one in data):
        raise Nonsense(f"no list of models: {_shown(content)}")
    return [one["id"] for one in data]


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise Nonsense(f"no JSON ({fault}): {_shown(content)}") from fault
    if not isinstance(body, dict):
        raise Nonsense(f"no JSON object: {_shown(content)}")
    return body


def _choice(one: Any, chat: bool, content: bytes) -> Choice:
    if not isinstance(one, dict) or not isinstance(one.get("finish_reason"), str):
        raise Nonsense(f"a choice without its end: {_shown(content)}")
    message = one.get("message")
    text = (message.get("content") if isinstance(message, dict) else 0) if chat else one.get("text")
    if chat and text is None:  # All tokens went into thoughts, or into nothing.
        text = ""
    if not isinstance(text, str):
        raise Nonsense(f"a choice without text: {_shown(content)}")
    stop = one.get("stop_reason")
    return Choice(
        text.encode("utf-8", "replace").decode(),
        one["finish_reason"] == "length",
        _logprobs(one.get("logprobs"), chat),
        stop if isinstance(stop, str) else "",
        tuple(one["token_ids"]) if isinstance(one.get("token_ids"), list) else None,
        _first(one.get("logprobs")),
    )


def _logprobs(given: Any, chat: bool) -> tuple[float, ...] | None:
    """None unless every token has one."""
    values = given.get("content" if chat else "token_logprobs") if isinstance(given, Mapping) else None
    if not isinstance(values, list):
        return None
    found: list[Any] = [one.get("logprob") if isinstance(one, dict) else one for one in values]
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one) for one in found):
        return None
    return tuple(map(float, found))


def _first(given: Any) -> dict[int, float]:
    places = given.get("top_logprobs") if isinstance(given, Mapping) else None
    if not isinstance(places, list) or not places or not isinstance(places[0], Mapping):
        return {}
    named = ((NAMED_BY_ID.fullmatch(name), value) for name, value in places[0].items())
    return {int(match[1]): float(value) for match, value in named if match}


def _shown(content: bytes) -> str:
    text = " ".join(content[: 4 * SHOWN].decode(errors="replace").split())
    return text[:SHOWN] or "an empty body"


Answer = TypeVar("Answer")
LONGEST_WAIT_S = 60.0
"""The longest wait that we choose ourselves."""
AGAIN = (408, 409, 425, 429)
"""Refusals that a later try may not meet, besides all from 500 on."""
TOO_LONG = re.compile(
    r"context.?(?:length|window|size)|maximum.{0,20}length|(?:prompt|input|messages?).{0,40}too (?:long|many|large)|max_model_len",
    re.IGNORECASE | re.DOTALL,
)
"""In a refusal: the prompt is longer than the model takes."""


class Unanswered(Exception):
    """The server did not answer, however often it was asked; says why the last time."""


class PromptTooLong(Exception):
    """The server refused the prompt for its length."""


class Refused(Exception):
    """The server refuses such requests: a wrong name, a wrong key, an option that it does not know."""

    def __init__(self, status: int, text: str):
        self.status = status
        super().__init__(f"it refused with {status}: {text}")


class Client:
    """To be entered, once or several times in turn, by the coroutine that asks.

    Args:
        counts: receives the counts `requests`, `retries_REASON`.
    """

    def __init__(self, options: Endpoint, counts: Counter[str]):
        self._options, self._counts = options, counts
        self._key = os.environ.get(options.api_key_env, "") if options.api_key_env else ""

    async def __aenter__(self) -> "Client":
        self._slots = asyncio.Semaphore(self._options.concurrency)
        self._http = openai.AsyncOpenAI(
            base_url=self._options.url,
            api_key=self._key or "none",  # The library wants one; a server without keys does not look.
            max_retries=0,
            timeout=self._options.timeout_s,
        )
        return self

    async def __aexit__(self, kind: type | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.close()

    async def models(self) -> list[str]:
        """The names of the served models. Raises Unanswered, Refused."""

        async def send() -> bytes:
            return (await self._http.models.with_raw_response.list()).http_response.content

        return await self._answered(send, models_of, ("models",))

    async def call(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer of another endpoint: values of its JSON, or its text.

        Args:
            path: from the root of the server, outside of /v1.
            body: None: a GET request.

        Raises:
            Unanswered, PromptTooLong, Refused.
        """
        url = self._options.url.rstrip("/").removesuffix("/v1") + path

        async def send() -> Any:
            if body is None:
                return await self._http.get(url, cast_to=object)
            return await self._http.post(url, cast_to=object, body=body)

        return await self._answered(send, lambda answer: answer, (path,))

    async def ask(self, chat: bool, body: dict[str, Any], *label: str | int) -> Reply:
        """The answer to a body.

        Args:
            label: of the request; the waits between its tries depend on it.

        Raises:
            Unanswered, PromptTooLong, Refused.
        """
        api = self._http.chat.completions if chat else self._http.completions
        named = ("model", "messages" if chat else "prompt")
        known = {name: body[name] for name in named}
        more = {name: value for name, value in body.items() if name not in named}  # The library names not all of them.

        async def send() -> bytes:
            return (await api.with_raw_response.create(**known, extra_body=more)).http_response.content

        return await self._answered(send, lambda content: reply_of(content, chat), label)

    async def _answered(
        self, send: Callable[[], Awaitable[Any]], read: Callable[[Any], Answer], label: tuple[str | int, ...]
    ) -> Answer:
        async with self._slots:  # Held while it waits: a server that is behind is asked for less.
            for attempt in range(self._options.retries + 1):
                self._counts["requests"] += 1
                try:
                    async with asyncio.timeout(self._options.timeout_s):
                        return read(await send())
                except openai.APIStatusError as fault:
                    self._check_refused(fault)
                    reason = "rate_limit" if fault.status_code == 429 else "server_error"
                    last, wait = f"{fault.status_code}: {self._clean(fault.message)}", _retry_after(fault)
                except (TimeoutError, openai.APITimeoutError):
                    reason, last, wait = "timeout", f"no answer within {self._options.timeout_s:g} s", 0.0
                except openai.APIConnectionError as fault:
                    reason, wait = "connection", 0.0
                    last = self._clean(f"no connection, or it was cut: {fault.__cause__ or fault}")
                except Nonsense as fault:
                    reason, last, wait = "no_answer", self._clean(str(fault)), 0.0
                if attempt < self._options.retries:
                    self._counts[f"retries_{reason}"] += 1
                    await asyncio.sleep(self._wait(attempt, wait, label))
            raise Unanswered(f"asked {self._options.retries + 1} times, the last time {last}")

    def _check_refused(self, fault: openai.APIStatusError) -> None:
        """Raises the fault of a refusal that a later try would meet again."""
        if fault.status_code in AGAIN or fault.status_code >= 500:
            return
        text = self._clean(fault.message)
        if fault.status_code in (400, 413, 422) and (fault.status_code == 413 or TOO_LONG.search(text)):
            raise PromptTooLong(text) from fault
        raise Refused(fault.status_code, text) from fault

    def _wait(self, attempt: int, asked: float, label: tuple[str | int, ...]) -> float:
        """Seconds before the next try: doubled each time and spread, at least the server's Retry-After."""
        own = min(self._options.backoff_s * 2**attempt, LONGEST_WAIT_S) * (0.5 + uniform("engine", *label, attempt))
        return max(own, min(asked, self._options.timeout_s))

    def _clean(self, text: str) -> str:
        """A server's words without the key, since some servers quote it."""
        text = text.replace(self._key, MASK) if self._key else text
        return masked(" ".join(text.split()))[: 2 * SHOWN]


def _retry_after(fault: openai.APIStatusError) -> float:
    """Seconds, from a number or a date; 0 without one."""
    given = fault.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
