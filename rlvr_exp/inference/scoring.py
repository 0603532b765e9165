"""The log-probability of a completion under the policy itself, however it was found."""

from collections.abc import Sequence

import torch
from torch import nn

from rlvr_exp.rollouts.sampler import causal_model


@torch.inference_mode()
def logprob(model: nn.Module, prompt: Sequence[int], ids: Sequence[int]) -> float:
    """Log-probability of the tokens `ids` after the prompt, all together, at temperature 1 and without filters.

    Computed for this sequence alone, so that no other sequence of a batch changes a bit of it.
    """
    inner = causal_model(model)
    was_training = inner.training
    inner.eval()
    try:
        row = torch.tensor([[*prompt, *ids]], device=inner.device)
        logits = inner(input_ids=row, use_cache=False, logits_to_keep=len(ids) + 1).logits[0, :-1]
    finally:
        inner.train(was_training)
    chances = logits.float().log_softmax(-1)
    wanted = torch.tensor(list(ids), device=chances.device)
    return chances.gather(-1, wanted[:, None]).sum(dtype=torch.float64).item()
