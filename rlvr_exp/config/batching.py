"""How a step is cut into micro-batches: one pure function that the dry plan and the trainers share."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Batches:
    """The work of one training process in one step."""

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
    """Batches counted in groups: the completions of a prompt are learned from together, with the prompt held once.

    Args:
        prompt, completion: the longest allowed, in tokens.
        tokens: max_tokens_per_device.
    """
    return derive(prompts_per_step, prompt + group_size * completion, tokens, processes)


@dataclass(frozen=True)
class BatchLimits:
    """Limits of a training process's passes."""

    tokens: int
    """Tokens of one forward and backward pass: `algorithm.max_tokens_per_device`."""
    prompt: int
    """Tokens of the longest prompt that is taken."""


@dataclass(frozen=True)
class Piece:
    """Completions of one group that are computed together."""

    group: int
    samples: tuple[int, ...]
    """Which of the group's completions."""
    tokens: int
    """Of the row: the prompt once, and each completion; of several rows: the prompt with each completion."""


def pieces(
    prompts: Sequence[int], answers: Sequence[Mapping[int, int]], tokens: int, shared: bool = True
) -> list[Piece]:
    """The pieces of each group, cut where a piece would pass `tokens`; at least one completion in each.

    Args:
        prompts: tokens of each group's prompt.
        answers: for each group the tokens of those completions that are learned from, by their place in the group.
        shared: the completions of a piece share their prompt; otherwise each is a piece of its own.
    """
    found = []
    for group, (prompt, lengths) in enumerate(zip(prompts, answers, strict=True)):
        held: dict[int, int] = {}
        for sample, length in lengths.items():
            if held and (not shared or prompt + sum(held.values()) + length > tokens):
                found.append(Piece(group, tuple(held), prompt + sum(held.values())))
                held = {}
            held[sample] = length
        if held:
            found.append(Piece(group, tuple(held), prompt + sum(held.values())))
    return found


def micro_batches(wanted: Sequence[Piece], tokens: int, processes: int = 1) -> list[list[Piece]]:
    """Every pass of a step over all processes, in the order in which they are dealt out: number i is run by process
    i % processes. All processes run equally many; where there is less to do, some are empty.

    The fewest passes that stay within `tokens` (a piece that does not is alone), and of those the ones that are most even.
    Alike pieces, which differ little in length, run together, and neighbours at the same time, so that nobody waits long.
    """
    ordered = sorted(wanted, key=lambda piece: (piece.tokens, piece.group, piece.samples))
    count = max(1, len(_filled(ordered, tokens)))
    count = -(-count // processes) * processes
    caps = range(1, max([tokens, *(piece.tokens for piece in ordered)]) + 1)
    cap = caps[bisect_left(caps, True, key=lambda cap: len(_filled(ordered, cap)) <= count)]
    parts = _filled(ordered, cap)
    return parts + [[] for _ in range(count - len(parts))]


def _filled(ordered: Sequence[Piece], cap: int) -> list[list[Piece]]:
    """Neighbours together for as long as they stay within `cap` tokens."""
    parts: list[list[Piece]] = []
    held = cap
    for piece in ordered:
        held += piece.tokens
        if held > cap:
            parts.append([])
            held = piece.tokens
        parts[-1].append(piece)
    return parts
