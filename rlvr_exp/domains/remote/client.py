"""A client of an OpenEnv server, on the client of the package openenv."""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.request import Request, urlopen

from rlvr_exp.core.errors import InputError, InputProblem

SCHEMA_S = 10.0
"""Seconds for the schema of a server."""


class Unfit(ValueError):
    """An answer that is no action of the server. The text is the log of its verdict."""


class RemoteServer:
    """An OpenEnv server.

    Args:
        url: its address, with http:// or https://.
        api_key_env: the variable with its key; empty: no key.
    """

    def __init__(self, url: str, api_key_env: str):
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {os.environ.get(api_key_env, '')}"} if api_key_env else {}

    def session(self, timeout_s: float) -> Any:
        """A client of the package for one session, which connects when it is entered."""
        from openenv import GenericEnvClient  # Optional, and not needed before the first session.

        return GenericEnvClient(
            base_url=self._url,
            connect_timeout_s=timeout_s,
            message_timeout_s=timeout_s,
            mode="simulation",
            headers=self._headers,
        )

    @cached_property
    def action(self) -> Mapping[str, Any]:
        """The JSON schema of an action. Raises OSError and ValueError if the server does not give it."""
        with urlopen(Request(f"{self._url}/schema", headers=self._headers), timeout=SCHEMA_S) as answer:
            return json.load(answer)["action"]

    def action_of(self, text: str) -> dict[str, Any]:
        """The action in an answer: the text or JSON value of the only required field, else a JSON object. Raises Unfit."""
        required = self.action.get("required", [])
        if len(required) == 1:
            [name] = required
            if self.action.get("properties", {}).get(name, {}).get("type") == "string":
                return {name: text}
            value = _parsed(text)
            return value if isinstance(value, dict) and name in value else {name: value}
        value = _parsed(text)
        if not isinstance(value, dict):
            raise Unfit(f"an action has to be a JSON object with the fields {', '.join(required) or 'of the schema'}")
        return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise Unfit(f"not JSON: {fault}") from fault


def canonical(observation: Any) -> str:
    """An observation as JSON, without metadata, which may differ between equal episodes."""
    if isinstance(observation, dict):
        observation = {name: value for name, value in observation.items() if name != "metadata"}
    return json.dumps(observation, sort_keys=True, ensure_ascii=False)


def not_reached(fault: Exception, url: str) -> InputError:
    """The problem of a server that gives no tasks."""
    what = f"the OpenEnv server gives no tasks: {fault}"[:300]
    return InputError(InputProblem("environment.url", what, url, remedy="start the server, or correct the address"))
