"""Options of the `engine` group: the sampler of completions. rlvr_exp.config.cross_checks checks which stages and options
an engine supports."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.secrets import masked

ROWS_OF_VLLM, TOKENS_OF_VLLM = 256, 4096
"""Completions that vLLM samples at the same time, and tokens of one pass. For vLLM's own 32,768 it reserves too much memory."""
LONGEST_ON_CPU, BLOCK_ON_CPU = 32, 128
"""Completions of the longest length that vLLM's cache holds on a CPU, and tokens of a block. Most are shorter; others wait."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@configures("rlvr_exp.rollouts.engines.local.LocalEngine")
@dataclass
class Local:
    """This project's own sampler, with the weights of the `model` node."""

    prefix_caching: bool = option(True, rare=True)
    """In episodes of several turns, reuse the keys and values of the tokens that a prompt shares with the previous turn.
    Only on CPU, and only if one process samples."""


@dataclass
class Endpoint:
    """An OpenAI-compatible endpoint, and the limits of its requests."""

    url: str = ""
    """Address of the endpoint up to /v1, without credentials. Required."""
    model: str = ""
    """Name of the served model; empty: the only one that the server lists."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key; empty: no key."""
    concurrency: int = option(16, low=1)
    """Parallel requests."""
    timeout_s: float = option(600.0, above=0)
    """Seconds for a request, until its last byte."""
    retries: int = option(4, low=0)
    """Retries of a request that failed because of the server: 429, 5xx, no connection, timeout or an invalid body."""
    backoff_s: float = option(1.0, above=0, rare=True)
    """Seconds before the first retry. They double for each further retry. A Retry-After header of the server takes
    precedence."""

    def problems(self) -> list[InputProblem]:
        found = []
        remedy = "engine.url=http://HOST:PORT/v1"
        if self.url and not _is_address(self.url):  # No address at all is reported before a run starts.
            found.append(InputProblem("url", "no address", masked(self.url), "http:// or https://, HOST", "", remedy))
        elif (parts := urlsplit(self.url)).username or parts.password or parts.query or parts.fragment:
            remedy = f"{remedy}, and the key in a variable: engine.api_key_env=NAME"
            what = "an address of a run holds no credentials, query or fragment"
            found.append(InputProblem("url", what, f"{parts.scheme}://***", remedy=remedy))
        return [*found, *key_problems(self.api_key_env, "engine")]


def key_problems(name: str, node: str) -> list[InputProblem]:
    """Problems of a node's `api_key_env`."""
    if not name or VARIABLE.fullmatch(name):
        return []
    what, remedy = "the name of an environment variable, never the key", f"{node}.api_key_env=MY_API_KEY"
    return [InputProblem("api_key_env", what, "***", "letters, digits, _", "", remedy)]


@configures("rlvr_exp.rollouts.engines.server.ServerEngine")
@dataclass
class Server(Endpoint):
    """An OpenAI-compatible endpoint. It holds the weights (evaluate, infer, collect), or a vLLM server receives those that
    are trained."""

    weights: str = option("none", choices=("none", "lora", "full"))
    """Weights that a vLLM server receives from the training run. none: it keeps its own. lora: the adapter. full: all."""
    api: str = option("auto", choices=("auto", "chat", "completions"))
    """chat: prompts are messages for the chat template of the server. completions: prompts are plain text. auto: chat, if
    the server supports it."""
    max_unanswered_rate: float = option(0.05, low=0, high=1)
    """Largest share of completions that the server never answered. Above it, the run stops with exit code 3."""
    prompt_price: float = option(0.0, low=0, rare=True)
    """Price of a million prompt tokens, in any currency. With completion_price it gives the metric system/engine_cost."""
    completion_price: float = option(0.0, low=0, rare=True)
    """Price of a million sampled tokens."""

    def problems(self) -> list[InputProblem]:
        found = super().problems()
        if self.weights != "none" and self.api == "chat":
            what, remedy = "a policy words its own prompts", "drop it"
            found.append(InputProblem("api", what, f"chat with engine.weights={self.weights}", "auto", "", remedy))
        return found


@configures("rlvr_exp.rollouts.engines.vllm.VLLMEngine")
@dataclass
class VLLM:
    """vLLM in the process that trains, on its GPU or on a CPU."""

    memory_share: float = option(0.5, above=0, below=1)
    """Share of each device's memory for vLLM's weights and cache during a rollout. On a GPU, training has all of it
    afterwards. On a CPU it limits the cache."""
    dtype: str = option("auto", choices=("auto", "float32", "bfloat16", "float16"))
    """Type of vLLM's weights. auto: that of the policy's weights."""


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A port that is no number, brackets that do not match.
        return False


def is_server(node: object) -> bool:
    """Whether the `engine` node chooses an endpoint with weights of its own, so that no weights are loaded here."""
    return isinstance(node, Server) and node.weights == "none"


def receives_weights(node: object) -> bool:
    """Whether the `engine` node chooses a server that samples with the weights that are trained here."""
    return isinstance(node, Server) and node.weights != "none"


def is_exact(node: object) -> bool:
    """Whether the engine's log-probabilities are the trainer's own."""
    return isinstance(node, Local)


def is_vllm(node: object) -> bool:
    return isinstance(node, VLLM)
