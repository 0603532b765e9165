"""Answers of the policy to prompts of a round, verified, with what each program returned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.episodes.types import Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import RolloutRequest, SamplingEngine
from rlvr_exp.rollouts.rollout_loop import generate_and_verify
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier

Progress = Callable[[int, int], None]
"""Called with (prompts answered, all prompts)."""


@dataclass(frozen=True)
class Ask:
    """A prompt, and the random key of each completion."""

    task: Task
    prompt: str
    keys: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Answers:
    """Samples and verifies.

    Args:
        verifier: keeps outputs (rlvr_exp.verifiers.execution.KeepsOutputs).
        longest: tokens of the longest prompt; longer ones are not answered.
    """

    policy: Policy
    domain: Domain
    verifier: Verifier
    sampling: SamplingParams
    engine: SamplingEngine
    longest: int

    def to(self, asked: Sequence[Ask], progress: Progress) -> list[tuple[Completion, ...]]:
        """The completions of each prompt, in order; none of a prompt that is too long. All ranks call this together."""
        encoded = [tuple(self.policy.encode_prompt(one.prompt)) for one in asked]
        fits = [place for place, ids in enumerate(encoded) if len(ids) <= self.longest]
        fits.sort(key=lambda place: len(encoded[place]))  # Prompts of similar length are sampled together.
        found: list[tuple[Completion, ...]] = [()] * len(asked)
        size = max(1, self.sampling.batch_size // max((len(one.keys) for one in asked), default=1))
        for start in range(0, len(fits), size):
            places = fits[start : start + size]
            requests = [
                RolloutRequest(asked[place].task, encoded[place], asked[place].keys, asked[place].prompt)
                for place in places
            ]
            result = generate_and_verify(
                self.policy, self.domain, self.verifier, requests, self.sampling, engine=self.engine
            )
            for place, completions in zip(places, result.completions, strict=True):
                found[place] = completions
            progress(start + len(places), len(fits))
        return found
