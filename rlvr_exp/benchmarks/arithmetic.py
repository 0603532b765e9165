"""The arithmetic of an update, and how fast this machine multiplies large matrices: the limit of any update on it."""

import time
from collections.abc import Callable

import torch
from torch import nn

from rlvr_exp.algorithms.training_batch import TrainingBatch
from rlvr_exp.models.onednn_linear import product

WIDTH = 2048
"""Rows and columns of the matrices that are multiplied."""
TRIES = 3
FORWARD, BACKWARD = 1, 2
"""Products of a forward pass, and of a backward pass for inputs and weights, for each weight and token."""


def update_flops(model: nn.Module, batch: TrainingBatch, reference: bool = False) -> float:
    """Floating-point operations that an update needs: the prompt of each group once, the head for predicted tokens alone,
    attention for pairs of tokens that see each other. Samples without a gradient need none.

    Args:
        reference: the log-probabilities of a reference policy are computed as well.
    """
    config = model.config.get_text_config()
    outer = {id(part.weight) for part in (model.get_input_embeddings(), model.get_output_embeddings())}
    inner = [value for value in model.parameters() if value.ndim == 2 and id(value) not in outer]
    head = model.get_output_embeddings().weight
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    pair = 2 * config.num_hidden_layers * config.num_attention_heads * size  # Scores, and the sum of values.
    learned = ((batch.weights if reference else batch.weights * batch.advantages) != 0).any(1)
    total = 0.0
    for rows in batch.rows_of:
        lengths = [int(batch.completion_mask[row].sum()) for row in rows if learned[row]]
        if not lengths:
            continue
        prefix, scored = int(batch.prompt_mask[rows.start].sum()) - 1, sum(lengths)  # As in a packed row.
        tokens, pairs = prefix + scored, prefix**2 / 2 + sum(length * prefix + length**2 / 2 for length in lengths)
        times = FORWARD + BACKWARD + FORWARD * reference
        total += 2 * (tokens * sum(_times(value, times) * value.numel() for value in inner))
        total += 2 * (scored * _times(head, times) * head.numel() + times * pair * pairs)
    return total


def _times(weight: torch.Tensor, times: int) -> int:
    """A frozen weight has no gradient of its own."""
    return times if weight.requires_grad else times - 1


def matrix_flops(dtype: torch.dtype = torch.float32, device: str = "cpu") -> float:
    """Floating-point operations a second of a large product on torch's current threads or a GPU, the best of a few tries of
    each library."""
    x, y = torch.randn((2, WIDTH, WIDTH), device=device).to(dtype)
    libraries = device == "cpu" and dtype == torch.float32 and torch.backends.mkldnn.is_available()
    ways = [torch.matmul, *([product] if libraries else [])]
    fastest = min(_seconds(way, x, y) for _ in range(TRIES) for way in ways)
    return 2 * WIDTH**3 / fastest


def _seconds(way: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> float:
    began = time.perf_counter()
    way(x, y)
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - began
