"""From a group's rewards to its samples' advantages, as pure functions.

Samples without a verdict are NaN: they enter neither mean nor deviation and their advantage is zero. A group whose
rewards are no further apart than `eps` has no advantages at all: the quotient of two rounding errors is no signal.
Standard deviations are those of a sample (n - 1), as in the authors' released code; the papers write std alone.
"""

import torch

from rlvr_exp.config.algorithm import BASELINES

SCALES = ("group", "batch", "none")


def group_advantages(rewards: torch.Tensor, scale: str, eps: float = 1e-6) -> torch.Tensor:
    """(groups, G) rewards, NaN where there is no verdict -> (groups, G) advantages.

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


def weighted(advantages: torch.Tensor, positive: float) -> torch.Tensor:
    """(groups, G) advantages, those above 0 times `positive`: W-REINFORCE (Zhu et al. 2025, The Surprising Effectiveness of
    Negative Reinforcement, arXiv 2506.01347), whose factor is 0.1. At 0 only failures teach."""
    return torch.where(advantages > 0, positive * advantages, advantages)


def spread(rewards: torch.Tensor) -> torch.Tensor:
    """(groups,) max - min over each full group; zero where no member has a verdict."""
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
