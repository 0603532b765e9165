"""Group Relative Policy Optimization (Shao et al. 2024, DeepSeekMath, arXiv 2402.03300).

Differences from the paper:
- `kl_coef` is 0 by default, as in DAPO and Dr. GRPO: no reference model is held. The paper uses 0.04.
- `loss=grpo` averages over each sample's tokens as in eq. 3; `dapo` and `dr_grpo` are offered beside it.
- One update a step on fresh samples by default (`iterations=1`), so the ratio is 1 and clipping acts only beyond that.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlvr_exp.algorithms.advantages import EPSILON, group_advantages, spread
from rlvr_exp.algorithms.aggregate import token_weights
from rlvr_exp.algorithms.experience import Experience, completions, pad_left
from rlvr_exp.rollouts.sampler import Sampled


@dataclass(frozen=True)
class GRPO:
    """Built from the `algorithm` group; its fields are documented in rlvr_exp.config.algorithm."""

    max_steps: int
    prompts_per_step: int
    group_size: int
    max_tokens_per_device: int
    temperature: float
    clip_low: float
    clip_high: float
    kl_coef: float
    reference_sync_steps: int
    loss: str
    advantage_scale: str
    iterations: int
    zero_variance: str
    entropy_coef: float
    trl: Mapping[str, Any]
    max_completion_tokens: int
    """From the `model` node."""

    @property
    def regularised(self) -> bool:
        """The loss has terms beside the reward's, so that groups without an advantage are learned from as well."""
        return self.kl_coef > 0 or self.entropy_coef > 0

    def experience(
        self, prompts: Sequence[Sequence[int]], groups: Sequence[Sequence[Sampled]], rewards: torch.Tensor, pad_id: int
    ) -> Experience:
        """One step's samples with advantages and weights.

        Args:
            prompts: token ids of each group's prompt.
            rewards: (groups, G), NaN where there is no verdict.
        """
        prompt_ids, prompt_mask = pad_left([list(p) for p in prompts for _ in range(self.group_size)], pad_id)
        ids, mask, logprobs = completions(groups, pad_id)
        advantages = group_advantages(rewards, self.advantage_scale)
        learned = mask * self._learned(rewards).flatten()[:, None]
        return Experience(
            prompt_ids=prompt_ids,
            prompt_mask=prompt_mask,
            completion_ids=ids,
            completion_mask=mask,
            sampling_logprobs=logprobs,
            advantages=advantages.flatten()[:, None] * learned,
            weights=token_weights(learned, self.loss, self.max_completion_tokens),
            group_size=self.group_size,
        )

    def _learned(self, rewards: torch.Tensor) -> torch.Tensor:
        """(groups, G): which samples count in the loss. Samples without a verdict never do."""
        judged = ~rewards.isnan()
        if self.zero_variance == "mask":
            return judged & (spread(rewards) > EPSILON)[:, None]
        return judged

    def trl_arguments(self) -> Mapping[str, Any]:
        """What TRL's GRPOConfig has to know; everything that decides the loss beyond this is in the experience."""
        return {
            "max_steps": self.max_steps,
            "num_generations": self.group_size,
            "max_completion_length": self.max_completion_tokens,
            "temperature": self.temperature,
            "epsilon": self.clip_low,
            "epsilon_high": self.clip_high,
            "beta": self.kl_coef,
            "sync_ref_model": self.reference_sync_steps > 0,
            "ref_model_sync_steps": max(1, self.reference_sync_steps),
            "ref_model_mixup_alpha": 1.0,
            "num_iterations": self.iterations,
            # Weights carry the aggregation; TRL's "dapo" form is the one that adds nothing of its own to them.
            "loss_type": "dapo",
            "use_bias_correction_kl": False,
            **self.trl,
        }
