"""What an endpoint's answer holds: a pure reading of its body. A body that is no answer is never taken for one."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHOWN = 200
"""Characters of a body that a message quotes."""


class Nonsense(Exception):
    """A body that is no answer: not JSON, cut off, or without choices; says what is wrong."""


@dataclass(frozen=True)
class Choice:
    """One completion."""

    text: str
    truncated: bool
    """Its token limit ended it."""
    logprobs: tuple[float, ...] | None
    """Of each token, where they were reported."""
    stop: str
    """The stop string that ended it, where the server says which (vLLM does); empty: not known."""


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
    return Reply(
        tuple(_choice(one, chat, content) for one in choices),
        _count(counts.get("prompt_tokens")),
        _count(counts.get("completion_tokens")),
    )


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
    )


def _logprobs(given: Any, chat: bool) -> tuple[float, ...] | None:
    """None where they are not there for every token."""
    values = given.get("content" if chat else "token_logprobs") if isinstance(given, Mapping) else None
    if not isinstance(values, list):
        return None
    found: list[Any] = [one.get("logprob") if isinstance(one, dict) else one for one in values]
    if any(isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one) for one in found):
        return None
    return tuple(map(float, found))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _shown(content: bytes) -> str:
    text = " ".join(content[: 4 * SHOWN].decode(errors="replace").split())
    return text[:SHOWN] or "an empty body"
