"""The losses of PPO for single tokens, as pure functions of (N, T) tensors.

Sources: Schulman et al. 2017 (PPO, arXiv 1707.06347), eq. 7 and 9; the clipped value loss is that of the authors' code
(openai/baselines, ppo2); the weight of replayed tokens is Hilton et al. 2021 (arXiv 2110.00641), eq. 2, truncated as in
Espeholt et al. 2018 (IMPALA, arXiv 1802.01561), section 4.1; the KL estimate is Schulman 2020, "k3".
"""

from collections.abc import Mapping

import torch

from rlvr_exp.config.ppo import PPO


def surrogate_loss(
    logprobs: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, clip_low: float, clip_high: float
) -> torch.Tensor:
    """-min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A), rho = exp(logprobs - old): eq. 7 with its sign turned."""
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    return -torch.min(ratio * advantages, clipped * advantages)


def clipped(
    logprobs: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, clip_low: float, clip_high: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where the clip removes the gradient: (below, above), as booleans."""
    ratio = (logprobs - old).exp()
    return (ratio < 1 - clip_low) & (advantages < 0), (ratio > 1 + clip_high) & (advantages > 0)


def value_loss(values: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, clip: float) -> torch.Tensor:
    """max((V - R)^2, (clip(V, old - clip, old + clip) - R)^2) / 2; without a clip where `clip` is 0."""
    plain = (values - returns).square()
    if clip:
        near = old + (values - old).clamp(-clip, clip)
        plain = torch.max(plain, (near - returns).square())
    return plain / 2


def kl_estimate(logprobs: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """exp(d) - 1 - d with d = other - logprobs: for tokens drawn from the policy an unbiased estimate of KL(policy || other),
    never negative."""
    difference = other - logprobs
    return difference.expm1() - difference


def importance_weights(old: torch.Tensor, behaviour: torch.Tensor, limit: float) -> torch.Tensor:
    """min(limit, exp(old - behaviour)): how much likelier a replayed token is now than when it was drawn."""
    return (old - behaviour).exp().clamp(max=limit)


def policy_loss(
    logprobs: torch.Tensor,
    entropies: torch.Tensor | None,
    reference: torch.Tensor | None,
    given: Mapping[str, torch.Tensor],
    settings: PPO,
) -> torch.Tensor:
    """Importance * surrogate - entropy_coef * entropy + kl_coef * KL: eq. 9 without its value term.

    Args:
        entropies: of each token; None: no bonus.
        reference: log-probabilities of the reference where the penalty is part of the loss.
        given: `old_logprobs`, `advantages` and `importance` of the same tokens.
    """
    at = (logprobs, given["old_logprobs"], given["advantages"], settings.clip_low, settings.clip_high)
    loss = given["importance"] * surrogate_loss(*at)
    if entropies is not None:
        loss = loss - settings.entropy_coef * entropies
    return loss if reference is None else loss + settings.kl_coef * kl_estimate(logprobs, reference)


def token_metrics(
    logprobs: torch.Tensor,
    values: torch.Tensor,
    reference: torch.Tensor | None,
    given: Mapping[str, torch.Tensor],
    settings: PPO,
) -> dict[str, torch.Tensor]:
    """Metrics of each token: where the clips act, and the distances from the old policy and the reference."""
    old = given["old_logprobs"]
    low, high = clipped(logprobs, old, given["advantages"], settings.clip_low, settings.clip_high)
    far = (values - given["old_values"]).abs() > (settings.value_clip or torch.inf)
    figures = {
        "clip_ratio/low_mean": low,
        "clip_ratio/high_mean": high,
        "value/clipped": far,
        "kl/old": kl_estimate(old, logprobs),
    }
    return figures if reference is None else figures | {"kl": kl_estimate(logprobs, reference)}
