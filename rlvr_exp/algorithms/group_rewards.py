"""Rewards of a group that pay for variety, as pure functions. A method's own advantages follow from the changed rewards.

- Pass-at-k Policy Optimization (Walder & Karkhanis 2025, arXiv 2505.15201): the objective is the largest reward among k
  draws, in place of the mean reward.
- The unlikeliness reward (He et al. 2025, Rewarding the Unlikely, arXiv 2506.02355): of the correct completions of a group
  the less probable ones earn more.

Completions without a verdict have the reward None: they belong to no subset, and keep None.
"""

from collections.abc import Sequence
from math import comb

from rlvr_exp.episodes.types import Completion

Rewards = tuple[float | None, ...]


def rewards_at_k(rewards: Sequence[float | None], k: int, weight: float = 1.0) -> Rewards:
    """Each reward becomes the mean, over all subsets of k verified members that contain the member, of the subset's largest
    reward (PKPO's transformed reward for continuous rewards, up to its factor k / n).

    Less its mean over the n verified members it is (1 - k/n) times PKPO's estimator with the leave-one-out baseline ("sloo"),
    as r - mean(r) is (1 - 1/n) times RLOO's: unbiased for the gradient of the expected maximum of k draws, up to a factor.
    Where n is at most k all members get the largest reward: the group has no advantages.

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
    """A correct completion's reward r becomes r * (1 - beta * (G - rank) / G), where rank counts the G verified members
    that were more probable when they were drawn. Equal completions share a rank, whatever rounding did to their
    log-probabilities; a completion that is not correct keeps its reward."""
    logprobs: dict[tuple[int, ...], float] = {}
    for one in completions:
        logprobs.setdefault(one.sampled.ids, sum(one.sampled.logprobs))
    own = [logprobs[one.sampled.ids] for one in completions]
    judged = [logprob for logprob, reward in zip(own, rewards, strict=True) if reward is not None]
    found: list[float | None] = []
    for reward, logprob, one in zip(rewards, own, completions, strict=True):
        rank = sum(other > logprob for other in judged)
        paid = reward is not None and one.correct
        found.append(reward * (1 - beta * (len(judged) - rank) / len(judged)) if paid else reward)
    return tuple(found)
