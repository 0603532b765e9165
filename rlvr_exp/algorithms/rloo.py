"""REINFORCE Leave-One-Out (Ahmadian et al. 2024, Back to Basics, arXiv 2402.14740).

The reward of an answer is R = r - kl_coef * log(pi(y|x) / pi_ref(y|x)) (its eq. 3), its advantage R_i less the mean of the
other answers to its prompt, and the loss the REINFORCE loss of the entire answer, -A_i log pi(y_i|x), a sum over its
tokens: no ratio, no clipping, one update on each batch. kl_coef is the 0.03 of its TL;DR runs. With baseline=none it is
REINFORCE (Williams 1992); with baseline=batch the mean of all other answers takes the place of the group's.

Differences from the paper:
- log pi of the reward is the sampler's record, under the distribution that tokens were drawn from.
- The sizes of a batch are the experiment's; the paper draws two or four answers to a prompt.
- A member without a verdict leaves its group's baseline and the loss; the paper has no such case.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from rlvr_exp.algorithms.advantages import reinforce_advantages
from rlvr_exp.algorithms.grpo import GroupAlgorithm
from rlvr_exp.algorithms.loss import token_weights
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.config import algorithm as options
from rlvr_exp.models.policy import Policy


class RLOO(GroupAlgorithm, options.RLOO):
    @property
    def regularised(self) -> bool:
        """With another baseline than the group's, answers of equal rewards have advantages, too."""
        return self.kl_coef > 0 or self.baseline != "group"

    def advantages(self, rewards: torch.Tensor) -> torch.Tensor:
        return reinforce_advantages(rewards, self.baseline, options.EQUAL_REWARDS)

    def weights(self, mask: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
        return token_weights(mask, "sequence", self.max_completion_tokens)

    def trl_arguments(self) -> Mapping[str, Any]:
        # `beta` makes TRL keep the reference; RewardKLTrainer removes TRL's own penalty from the loss.
        return {**super().trl_arguments(), "beta": self.kl_coef, **self.trl}

    def trainer(self, policy: Policy, *common: Any) -> PolicyTrainer:
        return RewardKLTrainer(self.kl_coef, self.baseline, policy, *common)


class RewardKLTrainer(PolicyTrainer):
    """Penalises each completion's distance from the reference, in its reward and not in the loss.

    Args:
        kl_coef: the penalty of a log-ratio of 1; 0: no penalty.
        baseline: as in `reinforce_advantages`.
        common: the arguments of PolicyTrainer.
    """

    def __init__(self, kl_coef: float, baseline: str, *common: Any):
        super().__init__(*common)
        self._kl_coef, self._baseline, self.beta = kl_coef, baseline, 0.0

    def _prepared(self, experience: TrainingBatch) -> TrainingBatch:
        if not self._kl_coef:
            return experience
        (reference,) = self._of_all(experience, lambda inputs: [self._reference_logprobs(inputs)])
        drawn, learned = experience.sampling_logprobs, experience.weights != 0
        ratios = (drawn - reference) * experience.completion_mask
        distance = ((-ratios).expm1() + ratios)[learned]  # DeepSeekMath, eq. 4, as the other methods report it
        self._metrics["train"]["kl"].append((distance.sum() / learned.sum().clamp(min=1)).item())
        return charged(experience, ratios.sum(1), self._kl_coef, self._baseline)


def charged(experience: TrainingBatch, ratios: torch.Tensor, kl_coef: float, baseline: str = "group") -> TrainingBatch:
    """The batch with the advantages of r - kl_coef * log-ratio. A baseline is linear: the penalty's own advantage is added to
    the reward's.

    Args:
        ratios: (N,) log pi(y|x) - log pi_ref(y|x) of entire completions.
        baseline: as in `reinforce_advantages`.
    """
    counted = (experience.weights != 0).any(1)
    penalty = (-kl_coef * ratios).masked_fill(~counted, torch.nan)
    sizes = experience.group_ids.unique_consecutive(return_counts=True)[1].tolist()
    parts = penalty.split(sizes) if baseline == "group" else [penalty]
    own = torch.cat([reinforce_advantages(part[None], baseline, eps=0.0)[0] for part in parts])[:, None]
    learned = (experience.weights != 0).to(experience.advantages)
    return dataclasses.replace(experience, advantages=(experience.advantages + own) * learned)
