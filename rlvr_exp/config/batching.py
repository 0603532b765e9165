"""How a step is cut into micro-batches: one pure function that the dry plan and the trainers share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Batches:
    """What one training process does in one step."""

    sequences: int
    """Sequences of one process."""
    micro_batch: int
    """Sequences of one forward and backward pass."""
    accumulation: int
    """Passes in one update."""


def derive(sequences: int, longest: int, max_tokens_per_device: int, processes: int = 1) -> Batches:
    """The largest micro-batch that divides a process's share and holds no more than the tokens allowed; at least 1.

    Args:
        sequences: sequences of a step over all processes (prompts_per_step x group_size, or batch_size); a
            process's share is rounded up.
        longest: tokens of the longest prompt and completion together.
    """
    share = -(-sequences // processes)
    fitting = [size for size in range(1, share + 1) if share % size == 0 and size * longest <= max_tokens_per_device]
    micro = max(fitting, default=1)
    return Batches(share, micro, share // micro)


def of_groups(
    prompts_per_step: int, group_size: int, prompt: int, completion: int, tokens: int, processes: int
) -> Batches:
    """Batches counted in groups: the completions of one prompt are learned from together, the prompt held once.

    Args:
        prompt, completion: the longest allowed, in tokens.
        tokens: max_tokens_per_device.
    """
    return derive(prompts_per_step, prompt + group_size * completion, tokens, processes)
