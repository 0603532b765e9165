"""The interface of an engine: completions for requests, each as it ends. Nothing here samples or verifies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from rlvr_exp.episodes.types import TokenCount, TokenSample
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.kept_prefixes import KeptPrefixes
from rlvr_exp.rollouts.sampling_params import SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verdict


@dataclass(frozen=True)
class RolloutRequest:
    """A task as a prompt for the policy, and how many completions to sample."""

    task: Task
    prompt: tuple[int, ...]
    """Token ids; never truncated. Empty if an endpoint tokenizes."""
    keys: tuple[SampleKey, ...]
    """The random key of each completion, e.g. (run seed, "rollout", step, index, task id, sample); None: greedy."""
    text: str = ""
    """The prompt in words. Endpoints get it."""
    follows: tuple[int, ...] = ()
    """The tokens of the turn that it goes on from, without the last one drawn; empty: of none."""
    kept: KeptPrefixes | None = None
    """The store of keys and values of such turns; None: no turns follow from each other."""


@dataclass(frozen=True)
class Drawn:
    """A completion that has ended: sample `sample` of request `request`."""

    request: int
    sample: int
    sampled: TokenSample | TokenCount
    text: str
    verdict: Verdict | None = None
    """Of a completion that never came, because the prompt is too long or the engine did not answer; None: it is there."""
    seconds: float | None = None
    """Of a completion that an earlier process has sampled: how long that took. None: it was sampled just now."""
    version: int | None = None
    """Updates of the weights that sampled it. None: the engine does not say."""


class SamplingEngine(Protocol):
    """Draws each requested completion exactly once, in whatever order they end."""

    def begin(self, note: Callable[[str], None]) -> Mapping[str, Any]:
        """Get ready; returns entries for the manifest. All ranks call this together.

        Args:
            note: tells a person something, once.

        Raises:
            InputError: it cannot sample.
        """

    def draw(
        self, policy: Policy, domain: Domain, requests: Sequence[RolloutRequest], sampling: SamplingParams
    ) -> Iterator[Drawn]:
        """Raises GuardStop if it can sample no longer, Interrupted if a stop is requested while it waits."""

    def metrics(self) -> Mapping[str, float]:
        """Counters of the run so far, named `system/engine_...`."""


class HoldsWeights(Protocol):
    """An engine with its own copy of the policy's weights."""

    def weights_dtype(self, policy: Policy) -> torch.dtype:
        """The type of the weights that sample."""

    def scored(
        self,
        policy: Policy,
        prompts: Sequence[Sequence[int]],
        completions: Sequence[Sequence[Sequence[int]]],
        temperature: float,
    ) -> torch.Tensor:
        """(completions, tokens) log-probabilities of given completions by the weights that sample now."""
