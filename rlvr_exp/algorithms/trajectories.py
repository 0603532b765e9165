"""The training data of PPO: completions as episodes, with estimates for each of their tokens.

Collecting (`collected`) and estimating (`estimated`) are pure functions; neither runs a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from rlvr_exp.algorithms.advantages import gae, token_rewards, whiten
from rlvr_exp.algorithms.loss import importance_weights, token_weights
from rlvr_exp.algorithms.training_batch import (
    TrainingBatch,
    collate_completions,
    collate_kept_token_ids,
    group_ids,
    members_of,
    pad_left,
    prompt_sizes,
    rewards_of,
    sampled,
)
from rlvr_exp.rollouts.groups import Group


@dataclass(frozen=True, kw_only=True)
class Trajectories(TrainingBatch):
    """Groups of a batch, freshly sampled groups before replayed groups."""

    recent: tuple[Group, ...]
    """The fresh groups as they were sampled."""
    rewards: torch.Tensor
    """(N,), NaN without a verdict"""
    old_logprobs: torch.Tensor
    """(N, T) under the policy before this batch's updates; the sampler's until `estimated`"""
    old_values: torch.Tensor
    """(N, T) V before each token, by the value model before this batch's updates; zero until `estimated`"""
    returns: torch.Tensor
    """(N, T) targets of the value; zero until `estimated`"""
    importance: torch.Tensor
    """(N, T) weight of each token in the policy's loss: 1 for fresh samples"""

    @property
    def fresh(self) -> int:
        """The number of fresh samples: the first rows."""
        return sum(len(group.completions) for group in self.recent)


class Settings(Protocol):
    """The options of an algorithm that `collected` and `estimated` read."""

    loss: str
    max_completion_tokens: int
    gamma: float
    gae_lambda: float
    whiten_advantages: bool
    kl_coef: float
    replay_max_weight: float


def collected(groups: Sequence[Group], fresh: int, pad_id: int, settings: Settings) -> Trajectories:
    """Groups as tensors, nothing estimated yet.

    Args:
        fresh: how many, from the first on, were sampled from the current policy.
    """
    samples = [sampled(group) for group in groups]
    prompt_ids, prompt_mask = pad_left([list(ids) for group in groups for ids in group.prompt_ids], pad_id)
    ids, mask, logprobs = collate_completions(samples, pad_id)
    rewards = rewards_of(groups)[members_of(groups)]
    return Trajectories(
        prompt_ids=prompt_ids,
        prompt_mask=prompt_mask,
        completion_ids=ids,
        completion_mask=mask,
        sampling_logprobs=logprobs,
        advantages=torch.zeros_like(logprobs),
        weights=token_weights(mask * ~rewards.isnan()[:, None], settings.loss, settings.max_completion_tokens),
        sizes=prompt_sizes(groups),
        group_ids=group_ids(groups),
        kept_token_ids=collate_kept_token_ids([one for group in samples for one in group]),
        off_policy=fresh < len(groups),
        recent=tuple(groups[:fresh]),
        rewards=rewards,
        old_logprobs=logprobs,
        old_values=torch.zeros_like(logprobs),
        returns=torch.zeros_like(logprobs),
        importance=torch.ones_like(logprobs),
    )


def estimated(
    given: Trajectories,
    logprobs: torch.Tensor,
    values: torch.Tensor,
    reference: torch.Tensor | None,
    settings: Settings,
) -> Trajectories:
    """Advantages, returns and importance weights of every token.

    Args:
        logprobs: (N, T) under the policy before this batch's updates.
        values: (N, T) by the value before this batch's updates.
        reference: (N, T) log-probabilities of the reference where the KL penalty is part of the reward; None: no penalty.
    """
    mask = given.completion_mask
    penalty = torch.zeros_like(values) if reference is None else settings.kl_coef * (logprobs - reference)
    rewards = token_rewards(given.rewards.nan_to_num(0.0), mask, penalty)
    advantages, returns = gae(rewards, values, mask, settings.gamma, settings.gae_lambda)
    learned = given.weights > 0
    advantages = whiten(advantages, learned) if settings.whiten_advantages else advantages * learned
    fresh = given.fresh
    importance = importance_weights(logprobs, given.sampling_logprobs, settings.replay_max_weight)
    importance[:fresh] = 1.0
    return replace(
        given, advantages=advantages, old_logprobs=logprobs, old_values=values, returns=returns, importance=importance
    )
