"""How per-token losses become one number: the weight of each completion token, as a pure function.

The loss of a step is sum(weight * per-token loss) over all its tokens. Weights are computed once for the whole step,
so that splitting it into micro-batches, accumulation steps or ranks changes nothing.
"""

import torch

MODES = ("grpo", "dapo", "dr_grpo")


def token_weights(mask: torch.Tensor, mode: str, max_completion_tokens: int) -> torch.Tensor:
    """(samples, T) mask of live completion tokens -> (samples, T) weights, zero off the mask.

    Args:
        mode: "grpo": mean over a sample's tokens, then over samples (DeepSeekMath, eq. 3);
            "dapo": mean over all tokens of the step (DAPO, eq. 8);
            "dr_grpo": sum over tokens divided by the constant completion limit, mean over samples (Dr. GRPO, sec. 3.2).
    """
    mask = mask.float()
    samples = (mask.sum(1) > 0).sum().clamp(min=1)
    if mode == "grpo":
        return mask / mask.sum(1, keepdim=True).clamp(min=1) / samples
    if mode == "dapo":
        return mask / mask.sum().clamp(min=1)
    if mode == "dr_grpo":
        return mask / (samples * max_completion_tokens)
    raise ValueError(f"token_weights: mode is {mode!r}, allowed {', '.join(MODES)}")
