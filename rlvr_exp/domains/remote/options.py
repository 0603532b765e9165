"""Options of the domain of OpenEnv servers: address, tasks, episodes, verdicts and reward."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from rlvr_exp.config.data import Data
from rlvr_exp.config.engine import key_problems
from rlvr_exp.config.options import configures, option
from rlvr_exp.config.verifier import Term, Verifier
from rlvr_exp.core.errors import InputProblem
from rlvr_exp.core.secrets import masked

TASKS = "rlvr_exp.domains.remote.tasks.RemoteTasks"


@dataclass
class Address:
    """The address of an OpenEnv server."""

    url: str = ""
    """Address of the server, http://HOST:PORT. Required."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key; empty: no key."""


@configures(TASKS)
@dataclass
class RemoteTasks(Data, Address):
    """Resets of an OpenEnv server with the seeds 0, 1, 2 and so on. A seed names a task."""

    tasks: int = option(64, low=1)
    """Number of tasks of the split `train`."""
    held_out: int = option(32, low=1)
    """Number of tasks of the split `test`. They have the seeds after those of `train`."""
    field: str = ""
    """Field of an observation that prompts show. Empty: `prompt` if there is one, else all fields as JSON."""

    def problems(self) -> list[InputProblem]:
        found = super().problems()
        if self.path:
            what, remedy = "the tasks come from the server", "drop it; environment.url names the server"
            found.append(InputProblem("path", what, self.path, "", "", remedy))
        return found


@configures("rlvr_exp.domains.remote.verifier.RemoteJudge")
@dataclass
class RemoteJudge(Verifier, Address):
    """Plays each answer on an OpenEnv server in a new session, and reports the rewards of the episode."""

    success: float = 1.0
    """Sum of rewards from which an answer counts as passed."""
    concurrency: int = option(8, low=1)
    """Sessions at the same time. A server that has fewer is asked again."""
    timeout_s: float = option(60.0, above=0)
    """Seconds for a session, waiting for a free one included. After that, an answer has no verdict."""

    def missing(self) -> Iterator[tuple[InputProblem, str]]:
        """The package openenv, or the variable of the key, and the command that supplies it."""
        if find_spec("openenv") is None:
            command = "pip install 'rlvr_exp[openenv]'"
            yield InputProblem("verifier", "the package openenv is not installed", "openenv", remedy=command), command
        if (name := self.api_key_env) and not os.environ.get(name):
            remedy = f"export {name}=KEY, or drop it for a server without keys"
            yield InputProblem("environment.api_key_env", "the variable is not set", name, remedy=remedy), ""


@configures("rlvr_exp.domains.remote.environment.RemoteEpisodes")
@dataclass
class RemoteEpisodes(Address):
    """Episodes on an OpenEnv server. The server decides when an episode is over."""

    turns: int = option(8, low=1)
    """Most answers of an episode."""

    def problems(self) -> list[InputProblem]:
        found, parts = key_problems(self.api_key_env, "environment"), urlsplit(self.url)
        remedy = "environment.url=http://HOST:PORT"
        if parts.scheme not in ("http", "https") or not parts.hostname:
            found.append(
                InputProblem(
                    "url", "no address", masked(self.url) or "nothing", "http:// or https://, HOST", "", remedy
                )
            )
        elif parts.username or parts.password or parts.query or parts.fragment:
            what = "an address of a run holds no credentials, query or fragment"
            remedy = f"{remedy}, and the key in a variable: environment.api_key_env=NAME"
            found.append(InputProblem("url", what, f"{parts.scheme}://***", remedy=remedy))
        return found

    def conflicts(self, config: Any, reads: Callable[[str], bool]) -> Iterator[InputProblem]:
        target = getattr(config.data, "_target_", "")
        if reads("data") and target != TASKS:
            what, remedy = "the tasks of a server are its own", "drop data=..., which environment=openenv chooses"
            yield InputProblem("environment", what, f"openenv with {target}", "data=openenv", "", remedy)


@configures("rlvr_exp.domains.remote.environment.RemoteReward")
@dataclass
class RemoteReward(Term):
    """Sum of the rewards that the server gave in the episode."""
