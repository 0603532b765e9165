"""From rewards to advantages, as pure functions: rewards shaped within a group, group baselines, and GAE.

Samples without a verdict are NaN: they enter neither mean nor deviation and their advantage is zero. A group whose
rewards are no further apart than `eps` has no advantages at all: the quotient of two rounding errors is no signal.
Standard deviations are those of a sample (n - 1), as in the authors' released code; the papers write std alone.

Shaped rewards pay a group for variety; the method's advantages follow from the changed rewards.

- Pass-at-k Policy Optimization (Walder & Karkhanis 2025, arXiv 2505.15201): the objective is the largest reward among k
  draws, in place of the mean reward.
- The unlikeliness reward (He et al. 2025, Rewarding the Unlikely, arXiv 2506.02355): of the correct completions of a group
  the less probable ones earn more.

Completions without a verdict have the reward None: they belong to no subset, and keep None.

GAE gives advantages of single tokens from a value estimate, (N, T) tensors. A completion is an episode: its state before
token t is the prompt and the tokens drawn so far, its action is token t.

Sources: Schulman et al. 2016 (GAE, arXiv 1506.02438), eq. 11, 12 and 16; the per-token reward with a KL penalty is
Ouyang et al. 2022 (InstructGPT, arXiv 2203.02155), appendix C.4, and Ziegler et al. 2019, eq. 2.

Completions are right-padded: a mask is 1 on a prefix of each row. Values off the mask have no effect.
"""

from collections.abc import Mapping, Sequence
from math import comb
from statistics import fmean, stdev
from typing import Any

import torch

from rlvr_exp.config.algorithm import BASELINES
from rlvr_exp.episodes.types import Completion, RewardBreakdown

SCALES = ("group", "batch", "none")


def group_advantages(rewards: torch.Tensor, scale: str, eps: float = 1e-6) -> torch.Tensor:
    """(groups, G) rewards, NaN if there is no verdict -> (groups, G) advantages.

    Args:
        scale: "group" divides by the group's standard deviation (DeepSeekMath, section 4.1.2: A_i = (r_i - mean(r)) /
            std(r)), "batch" by that of all rewards, "none" by nothing (Dr. GRPO, section 3.2).
        eps: added to the deviation, and the spread (max - min) up to which a group counts as having no signal.
    """
    judged = ~rewards.isnan()
    centred = rewards - rewards.nanmean(1, keepdim=True)
    if scale == "group":
        centred = centred / (_deviation(rewards, dim=1) + eps)
    elif scale == "batch":
        centred = centred / (_deviation(rewards.flatten()[None], dim=1) + eps)
    elif scale != "none":
        raise ValueError(f"group_advantages: scale is {scale!r}, allowed {', '.join(SCALES)}")
    return _silenced(centred, rewards, judged, eps)


def leave_one_out(rewards: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """(groups, G) rewards -> (groups, G): each less the mean of the other members with verdicts (RLOO, arXiv 2402.14740,
    the estimator of its section on REINFORCE Leave-One-Out). The only verified member of a group has no advantage."""
    judged = ~rewards.isnan()
    count = judged.sum(1, keepdim=True)
    others = (rewards.nansum(1, keepdim=True) - rewards) / (count - 1).clamp(min=1)
    return _silenced(torch.where(count > 1, rewards - others, 0.0), rewards, judged, eps)


def reinforce_advantages(rewards: torch.Tensor, baseline: str, eps: float = 1e-6) -> torch.Tensor:
    """(groups, G) rewards -> (groups, G): each less its baseline, which no sample's own reward is a part of, so that the
    gradient's mean is the same with all of them, and its variance alone is not (Greensmith et al. 2004).

    Args:
        baseline: "group", the mean of the group's others; "batch", that of all others; "none", 0.
    """
    if baseline == "group":
        return leave_one_out(rewards, eps)
    if baseline == "batch":
        return leave_one_out(rewards.flatten()[None], eps).view_as(rewards)
    if baseline == "none":
        return rewards.nan_to_num(0.0)
    raise ValueError(f"reinforce_advantages: baseline is {baseline!r}, allowed {', '.join(BASELINES)}")


def over_mean(rewards: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """(groups, G) rewards of 0 or above -> (groups, G): (r - mean(r)) / mean(r) of the group (MaxRL, arXiv 2602.02710,
    algorithm 1). A group without a reward above 0 has no advantages."""
    mean = rewards.nanmean(1, keepdim=True)
    return _silenced((rewards - mean) / mean, rewards, ~rewards.isnan(), eps)


def weighted(advantages: torch.Tensor, positive: float) -> torch.Tensor:
    """(groups, G) advantages, those above 0 times `positive`: W-REINFORCE (Zhu et al. 2025, The Surprising Effectiveness of
    Negative Reinforcement, arXiv 2506.01347), whose factor is 0.1. At 0 only failures teach."""
    return torch.where(advantages > 0, positive * advantages, advantages)


def spread(rewards: torch.Tensor) -> torch.Tensor:
    """(groups,) max - min over each full group; zero if no member has a verdict."""
    high = rewards.nan_to_num(-torch.inf).amax(1)
    low = rewards.nan_to_num(torch.inf).amin(1)
    return torch.where(high >= low, high - low, torch.zeros_like(high))


def _silenced(values: torch.Tensor, rewards: torch.Tensor, judged: torch.Tensor, eps: float) -> torch.Tensor:
    alive = (spread(rewards) > eps)[:, None]
    return torch.where(judged & alive, values, torch.zeros_like(values))


def _deviation(rewards: torch.Tensor, dim: int) -> torch.Tensor:
    """Sample standard deviation (n - 1) over members with verdicts; zero for fewer than two."""
    count = (~rewards.isnan()).sum(dim, keepdim=True)
    squares = (rewards - rewards.nanmean(dim, keepdim=True)).square().nansum(dim, keepdim=True)
    return torch.where(count > 1, (squares / (count - 1).clamp(min=1)).sqrt(), torch.zeros_like(squares))


Rewards = tuple[float | None, ...]


def rewards_at_k(rewards: Sequence[float | None], k: int, weight: float = 1.0) -> Rewards:
    """Each reward becomes the mean, over all subsets of k verified members that contain the member, of the subset's largest
    reward (PKPO's transformed reward for continuous rewards, up to its factor k / n).

    Less its mean over the n verified members it is (1 - k/n) times PKPO's estimator with the leave-one-out baseline ("sloo"),
    as r - mean(r) is (1 - 1/n) times RLOO's: unbiased for the gradient of the expected maximum of k draws, up to a factor.
    If n is at most k, all members get the largest reward: the group has no advantages.

    Args:
        weight: share of the changed reward; the rest is the reward as it is.
    """
    judged = sorted((reward, place) for place, reward in enumerate(rewards) if reward is not None)
    ranked = [reward for reward, _ in judged]
    at_k = {place: _mean_maximum(ranked, rank, min(k, len(ranked))) for rank, (_, place) in enumerate(judged)}
    return tuple(
        None if reward is None else (1 - weight) * reward + weight * at_k[place] for place, reward in enumerate(rewards)
    )


def _mean_maximum(ranked: Sequence[float], rank: int, k: int) -> float:
    """Over the subsets of k of the ascending rewards that contain the one at `rank`: the mean of the largest."""
    largest = comb(rank, k - 1) * ranked[rank]
    if k > 1:  # A later reward is the largest; k - 2 further members come before it.
        largest += sum(comb(later - 1, k - 2) * ranked[later] for later in range(rank + 1, len(ranked)))
    return largest / comb(len(ranked) - 1, k - 1)


def unlikeliness(rewards: Sequence[float | None], completions: Sequence[Completion], beta: float) -> Rewards:
    """A correct completion's reward r becomes r * (1 - beta * (G - rank) / G), with rank the number of the G verified members
    that were more probable when they were drawn. Equal completions share a rank, whatever rounding did to their
    log-probabilities; a completion that is not correct keeps its reward."""
    logprobs: dict[tuple[int, ...], float] = {}
    samples: list[Any] = [one.sampled for one in completions]
    for one in samples:
        logprobs.setdefault(one.ids, sum(one.logprobs))
    own = [logprobs[one.ids] for one in samples]
    judged = [logprob for logprob, reward in zip(own, rewards, strict=True) if reward is not None]
    found: list[float | None] = []
    for reward, logprob, completion in zip(rewards, own, completions, strict=True):
        rank = sum(other > logprob for other in judged)
        if reward is not None and completion.correct:
            reward = reward * (1 - beta * (len(judged) - rank) / len(judged))
        found.append(reward)
    return tuple(found)


def normalized_terms(
    rewarded: Sequence[RewardBreakdown], weights: Mapping[str, float], eps: float = 1e-6
) -> tuple[float | None, ...]:
    """Of each member of a group: the sum over reward terms of |weight| * (term - mean) / std, mean and standard deviation over
    the group (GDPO, arXiv 2601.05242). A term that does not vary adds 0. A reward without terms is one term.

    Args:
        rewarded: their terms include the weight, and so its sign.
        weights: by term; 1 if absent.
    """
    judged = [
        (place, one.terms or {"reward": one.total}) for place, one in enumerate(rewarded) if one.total is not None
    ]
    sums = dict.fromkeys((place for place, _ in judged), 0.0)
    for name in judged[0][1] if judged else ():
        values = [terms[name] for _, terms in judged]
        if max(values) - min(values) <= eps:
            continue
        mean, scale = fmean(values), abs(weights.get(name, 1.0)) / (stdev(values) + eps)
        for (place, _), value in zip(judged, values, strict=True):
            sums[place] += scale * (value - mean)
    return tuple(sums.get(place) for place in range(len(rewarded)))


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

    NaN if returns do not vary, or the mask is empty.
    """
    chosen = mask > 0
    if not chosen.any():
        return float("nan")
    total = returns[chosen].var(correction=0)
    rest = (returns - values)[chosen].var(correction=0)
    return float(1 - rest / total) if total > 0 else float("nan")
