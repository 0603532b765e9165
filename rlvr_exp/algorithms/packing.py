"""One row a group: the prompt is computed once for all completions that share it.

A packed row is `[prompt without its last token, then for each completion: the last prompt token, c1 .. c(T-1)]`.
Position ids restart at the prompt's end in every segment and the mask lets a segment see the prompt and itself, so
each completion's log-probabilities equal those of its own row. Repeating the last prompt token gives every completion
its own position to be predicted from, so labels line up without gathering.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class PackedRows:
    """Model inputs for `rows` groups; W = prompt width - 1 + group * T."""

    input_ids: torch.Tensor
    """(rows, W)"""
    position_ids: torch.Tensor
    """(rows, W)"""
    attention_mask: torch.Tensor
    """(rows, 1, W, W), additive"""
    labels: torch.Tensor
    """(rows, W): the token that each position predicts, -100 where none is scored. Already shifted."""
    prefix: int
    """Columns before the first segment."""


def pack_groups(
    input_ids: torch.Tensor, attention_mask: torch.Tensor, completion: int, group: int, dtype: torch.dtype
) -> PackedRows:
    """Pack contiguous groups of `group` rows that share their (left-padded) prompt.

    Args:
        input_ids: (rows * group, prompt + completion)
        attention_mask: same shape, 1 for real tokens.
        completion: number of trailing completion columns, T.
        dtype: dtype of the additive mask, the model's own.

    Raises:
        ValueError: rows of a group do not share one prompt.
    """
    prompts, answers = input_ids[:, :-completion], input_ids[:, -completion:]
    seen, scored = attention_mask[:, :-completion], attention_mask[:, -completion:]
    rows = input_ids.shape[0] // group
    shared = prompts.view(rows, group, -1)
    if (shared != shared[:, :1]).any():
        raise ValueError("pack_groups: rows of a group differ in their prompt; groups must be contiguous")
    first, first_seen = shared[:, 0], seen.view(rows, group, -1)[:, 0]
    lengths = first_seen.sum(1)
    last = first[:, -1:].repeat_interleave(group, 0)
    segments = torch.cat([last, answers[:, :-1]], dim=1).view(rows, -1)
    labels = answers.masked_fill(scored == 0, -100).view(rows, -1)
    prefix = first.shape[1] - 1
    prefix_positions = (first_seen.cumsum(1) - 1).clamp(min=0)[:, :-1]
    steps = torch.arange(completion, device=input_ids.device).repeat(group)
    return PackedRows(
        input_ids=torch.cat([first[:, :-1], segments], dim=1),
        position_ids=torch.cat([prefix_positions, lengths[:, None] - 1 + steps], dim=1),
        attention_mask=_mask(first_seen[:, :-1].bool(), group, completion, dtype),
        labels=torch.cat([labels.new_full((rows, prefix), -100), labels], dim=1),
        prefix=prefix,
    )


def unpack(values: torch.Tensor, packed: PackedRows, group: int) -> torch.Tensor:
    """(rows, W) values at the packed positions -> (rows * group, T), in the order the rows came in."""
    return values[:, packed.prefix :].reshape(values.shape[0] * group, -1)


def _mask(seen: torch.Tensor, group: int, completion: int, dtype: torch.dtype) -> torch.Tensor:
    """(rows, 1, W, W) additive mask from the prefix columns that hold real tokens, (rows, prefix)."""
    rows, prefix = seen.shape
    width = prefix + group * completion
    segment = torch.arange(group, device=seen.device).repeat_interleave(completion)
    segment = torch.cat([segment.new_full((prefix,), -1), segment])
    causal = torch.ones((width, width), dtype=torch.bool, device=seen.device).tril()
    own = (segment[:, None] == segment[None, :]) | (segment[None, :] == -1)
    real = torch.cat([seen, seen.new_ones((rows, width - prefix))], dim=1)
    # A padding query keeps its own column, so that no softmax runs over nothing.
    allowed = (causal & own)[None] & real[:, None, :] | torch.eye(width, dtype=torch.bool, device=seen.device)
    mask = torch.zeros(allowed.shape, dtype=dtype, device=seen.device)
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min)[:, None]
