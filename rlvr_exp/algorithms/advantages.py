"""From rewards to per-sample advantages, as pure functions.

Source: DeepSeekMath (GRPO), eq. 3 and section 4.1.2: A_i = (r_i - mean(r)) / std(r) over a group's G samples;
Dr. GRPO (Liu et al. 2025) leaves the division out. Samples without a verdict are NaN: they enter neither mean nor
deviation and their advantage is zero.
"""

import torch

EPSILON = 1e-6
"""Added to the deviation, and the spread (max - min) up to which a group counts as having no signal."""


def group_advantages(rewards: torch.Tensor, scale: str) -> torch.Tensor:
    """(groups, G) rewards, NaN where there is no verdict -> (groups, G) advantages.

    Args:
        scale: "group" divides by the group's standard deviation, "batch" by that of all rewards, "none" by nothing.
    """
    judged = ~rewards.isnan()
    centred = rewards - rewards.nanmean(1, keepdim=True)
    if scale == "group":
        centred = centred / (_deviation(rewards, dim=1) + EPSILON)
    elif scale == "batch":
        centred = centred / (_deviation(rewards.flatten()[None], dim=1) + EPSILON)
    elif scale != "none":
        raise ValueError(f"group_advantages: scale is {scale!r}, allowed group, batch, none")
    alive = (spread(rewards) > EPSILON)[:, None]
    return torch.where(judged & alive, centred, torch.zeros_like(rewards))


def spread(rewards: torch.Tensor) -> torch.Tensor:
    """(groups,) max - min over each full group; zero where nothing was judged."""
    high = rewards.nan_to_num(-torch.inf).amax(1)
    low = rewards.nan_to_num(torch.inf).amin(1)
    return torch.where(high >= low, high - low, torch.zeros_like(high))


def _deviation(rewards: torch.Tensor, dim: int) -> torch.Tensor:
    """Sample standard deviation (n - 1) over what was judged; zero where fewer than two were."""
    count = (~rewards.isnan()).sum(dim, keepdim=True)
    squares = (rewards - rewards.nanmean(dim, keepdim=True)).square().nansum(dim, keepdim=True)
    return torch.where(count > 1, (squares / (count - 1).clamp(min=1)).sqrt(), torch.zeros_like(squares))
