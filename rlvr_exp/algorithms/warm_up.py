"""A pass at the longest lengths before step 1, so that memory runs out in the first minute or not at all.

Only accelerators with their own memory are tried: a host that is short of memory slows down or ends any process, and a
pass at the longest lengths costs a CPU as much as a step. Weights, optimizer state and random numbers stay unchanged: the
gradient is exactly zero and discarded. The moments of an optimizer are allocated in step 1 and are not part of the trial.
"""

from collections.abc import Callable

import torch

from rlvr_exp.config.parallel import BatchLimits


def longest_part(
    limits: BatchLimits, group: int, completion: int, shared: bool
) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """Prompts, completions and groups of the samples of the largest possible pass.

    Args:
        group: completions of a prompt.
        completion: tokens of the longest.
        shared: whether completions share their prompt.
    """
    fitting = (limits.tokens - limits.prompt) // completion if shared else 1
    together = min(max(fitting, 1), group if shared else 1)
    passes = max(1, limits.tokens // (limits.prompt + together * completion))
    owners = [number for number in range(passes) for _ in range(together)]
    return [[0] * limits.prompt for _ in owners], [[0] * completion for _ in owners], owners


def warm_up(model: torch.nn.Module, run: Callable[[], torch.Tensor], backward: Callable[[torch.Tensor], None]) -> None:
    """Forward and backward through `run`, whose gradient is zero.

    Args:
        model: what `run` runs, training as it does in a step.
        run: returns a number that depends on every trained weight.
        backward: runs the backward pass of a loss.
    """
    was_training = model.training
    with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if torch.cuda.is_available() else []):
        model.train()
        with torch.enable_grad():  # Whoever comes first may only want to score.
            backward(run() * 0.0)
    model.zero_grad()
    model.train(was_training)
