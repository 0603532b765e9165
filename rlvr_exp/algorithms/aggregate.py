"""How per-token losses become one number: the weight of each completion token, as a pure function.

The loss of a step is sum(weight * per-token loss) over all its tokens. Weights are computed once per step, so that
splitting it into micro-batches, accumulation steps or ranks changes nothing. An expectation over prompts in a paper is
the mean over the step's prompts here. Samples that are not trained on (no verdict, masked) count nowhere.
"""

import torch

MODES = ("grpo", "dapo", "dr_grpo", "token", "sequence")


def token_weights(
    mask: torch.Tensor, mode: str, max_completion_tokens: int, groups: torch.Tensor | None = None
) -> torch.Tensor:
    """(samples, T) mask of live completion tokens -> (samples, T) weights, zero off the mask.

    Args:
        mode: "grpo": mean over a sample's tokens, then over samples (DeepSeekMath, eq. 3; GSPO, eq. 5);
            "dapo": mean over the tokens of all of a prompt's samples, then over prompts (DAPO, eq. 8 and 12; MiniMax-M1,
            eq. 4);
            "dr_grpo": sum over tokens divided by the constant completion limit, mean over samples (Dr. GRPO, section 3.2);
            "token": mean over all tokens of the step, as DAPO's and PPO's implementations have it;
            "sequence": sum over a sample's tokens, mean over samples (RLOO: the log-probability of a complete answer).
        groups: (samples,) the group of each sample, counted from 0; "dapo" alone needs it, and calls it a prompt.
    """
    mask = mask.float()
    samples = (mask.sum(1) > 0).sum().clamp(min=1)
    if mode == "grpo":
        return mask / mask.sum(1, keepdim=True).clamp(min=1) / samples
    if mode == "dapo":
        return _of_prompts(mask, groups)
    if mode == "dr_grpo":
        return mask / (samples * max_completion_tokens)
    if mode == "token":
        return mask / mask.sum().clamp(min=1)
    if mode == "sequence":
        return mask / samples
    raise ValueError(f"token_weights: mode is {mode!r}, allowed {', '.join(MODES)}")


def _of_prompts(mask: torch.Tensor, groups: torch.Tensor | None) -> torch.Tensor:
    if groups is None:
        raise ValueError("token_weights: mode 'dapo' needs the group of each sample")
    tokens = torch.zeros(int(groups.max()) + 1).index_add(0, groups, mask.sum(1))
    prompts = (tokens > 0).sum().clamp(min=1)
    return mask / tokens.clamp(min=1)[groups][:, None] / prompts
