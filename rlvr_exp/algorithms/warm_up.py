"""A pass at the longest lengths before step 1, so that memory runs out in the first minute or not at all.

Only devices with memory of their own are tried: a host that is short of memory slows down or ends any process, and a pass
at the longest lengths costs a CPU as much as a step. Weights, optimizer state and random numbers stay as they are: the
gradient is exactly zero and thrown away. The moments of an optimizer are made in step 1 and are not part of it.
"""

from collections.abc import Callable

import torch

from rlvr_exp.config.batching import BatchLimits


def longest_part(
    limits: BatchLimits, group: int, completion: int, shared: bool
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Prompts, completions and groups of the samples of one pass that holds as many tokens as any can.

    Args:
        group: completions of a prompt.
        completion: tokens of the longest.
        shared: whether completions share their prompt.
    """
    asked = (limits.tokens - limits.prompt) // completion if shared else 1
    together = min(max(asked, 1), group if shared else 1)
    passes = max(1, limits.tokens // (limits.prompt + together * completion))
    owners = [number for number in range(passes) for _ in range(together)]
    return [[0] * limits.prompt for _ in owners], [[0] * completion for _ in owners], owners


def warm_up(model: torch.nn.Module, run: Callable[[], torch.Tensor], backward: Callable[[torch.Tensor], None]) -> None:
    """Forward and backward through `run`, whose gradient counts nothing.

    Args:
        model: what `run` runs, training as it does in a step.
        run: gives a number that every trained weight takes part in.
        backward: takes a loss back through the model.
    """
    was_training = model.training
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_available() else []):
        model.train()
        backward(run() * 0.0)
    model.zero_grad()
    model.train(was_training)
