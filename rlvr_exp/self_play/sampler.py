"""Samples and verifies the prompts of a round; verdicts carry what each program returned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvr_exp.episodes.types import Completion
from rlvr_exp.models.policy import Policy
from rlvr_exp.rollouts.engines.base import RolloutRequest, SamplingEngine
from rlvr_exp.rollouts.rollout_loop import generate_and_verify
from rlvr_exp.rollouts.sampling_params import SampleKey, SamplingParams
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.verifiers.base import Verifier

Progress = Callable[[int, int], None]
"""Called with (prompts sampled, all prompts)."""


@dataclass(frozen=True)
class RoundSampler:
    """Samples and verifies.

    Args:
        verifier: keeps outputs (rlvr_exp.verifiers.execution.KeepsOutputs).
        max_prompt_tokens: longer prompts are not sampled.
    """

    policy: Policy
    domain: Domain
    verifier: Verifier
    sampling: SamplingParams
    engine: SamplingEngine
    max_prompt_tokens: int

    def request(self, task: Task, prompt: str, keys: tuple[SampleKey, ...]) -> RolloutRequest:
        return RolloutRequest(task, tuple(self.policy.encode_prompt(prompt)), keys, prompt)

    def generate(self, requests: Sequence[RolloutRequest], progress: Progress) -> list[tuple[Completion, ...]]:
        """The completions of each request, in order; none where the prompt is too long. All ranks call this together."""
        lengths = [len(one.prompt) for one in requests]
        fits = [place for place, length in enumerate(lengths) if length <= self.max_prompt_tokens]
        fits.sort(key=lengths.__getitem__)  # Prompts of similar length are sampled together.
        found: list[tuple[Completion, ...]] = [()] * len(requests)
        size = max(1, self.sampling.batch_size // max((len(one.keys) for one in requests), default=1))
        for start in range(0, len(fits), size):
            places = fits[start : start + size]
            batch = [requests[place] for place in places]
            result = generate_and_verify(
                self.policy, self.domain, self.verifier, batch, self.sampling, engine=self.engine
            )
            for place, completions in zip(places, result.completions, strict=True):
                found[place] = completions
            progress(start + len(places), len(fits))
        return found
