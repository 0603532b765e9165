"""Advantages of single tokens from a value estimate, as pure functions of (N, T) tensors.

A completion is an episode: its state before token t is the prompt and the tokens drawn so far, its action is token t.
Sources: Schulman et al. 2016 (GAE, arXiv 1506.02438), eq. 11, 12 and 16; the per-token reward with a KL penalty is
Ouyang et al. 2022 (InstructGPT, arXiv 2203.02155), appendix C.4, and Ziegler et al. 2019, eq. 2.

Completions are right-padded: a mask is 1 on a prefix of each row. Values off the mask have no effect.
"""

import torch

EPSILON = 1e-8
"""Added to the deviation when advantages are whitened."""


def token_rewards(rewards: torch.Tensor, mask: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
    """The episode's reward on its last token, less a penalty on every token.

    Args:
        rewards: (N,), finite; one per completion.
        mask: (N, T).
        penalty: (N, T), e.g. coefficient * (log-probability - reference log-probability).
    """
    mask = mask.to(rewards.dtype)
    steps = torch.arange(mask.shape[1], device=mask.device)
    last = (steps == mask.sum(1, keepdim=True) - 1).to(rewards.dtype)
    return last * rewards[:, None] - mask * penalty


def gae(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, gamma: float, lam: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Generalised advantage estimates and the returns that the value is fitted to; both (N, T), zero off the mask.

    delta_t = r_t + gamma V(s_t+1) - V(s_t), A_t = sum over l of (gamma lambda)^l delta_t+l, R_t = A_t + V(s_t).
    V is zero after a completion's last token, whether it ended by itself or at the token limit: the limit is part of
    the task and its reward is the episode's final outcome, so there is nothing to bootstrap from.

    Args:
        rewards: (N, T) reward of each token.
        values: (N, T) V(s_t), the estimate before token t.
    """
    mask = mask.to(values.dtype)
    advantages = torch.zeros_like(values)
    ahead = next_value = torch.zeros_like(values[:, 0])
    for t in reversed(range(values.shape[1])):
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        ahead = (delta + gamma * lam * ahead) * mask[:, t]
        next_value = values[:, t] * mask[:, t]
        advantages[:, t] = ahead
    return advantages, (advantages + values) * mask


def whiten(advantages: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Advantages with mean 0 and deviation 1 over the tokens of the mask; zero off it."""
    mask = mask.to(advantages.dtype)
    count = mask.sum().clamp(min=1)
    mean = (advantages * mask).sum() / count
    centred = (advantages - mean) * mask
    deviation = (centred.square().sum() / count).sqrt()
    return centred / (deviation + EPSILON)


def explained_variance(values: torch.Tensor, returns: torch.Tensor, mask: torch.Tensor) -> float:
    """1 - Var(returns - values) / Var(returns) over the tokens of the mask: 1 for a perfect value, 0 for a constant.

    NaN where returns do not vary, or the mask is empty.
    """
    chosen = mask > 0
    if not chosen.any():
        return float("nan")
    total = returns[chosen].var(correction=0)
    rest = (returns - values)[chosen].var(correction=0)
    return float(1 - rest / total) if total > 0 else float("nan")
