"""Whether a model supports packed rows: tried on a few tokens, against one row per completion.

Models whose tokens influence each other in ways other than attention (recurrent or convolutional states), or whose
attention ignores its arguments, give other log-probabilities when packed; they are then trained row by row.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from rlvr_exp.algorithms.fused_head import plain_head
from rlvr_exp.algorithms.logprobs import model_config, score
from rlvr_exp.algorithms.packed_layers import differs, packed_layers, plain_layers
from rlvr_exp.algorithms.packing import ModelRows, packed, row_by_row
from rlvr_exp.algorithms.packing_attention import FLEX, SDPA_PACKED, attending

PROMPTS, COMPLETIONS = (19, 12), ((5, 9, 7), (6, 8))
"""Tokens of two prompts and of their completions."""
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
COARSE = 0.03
"""The mean difference of log-probabilities that counts as rounding: in 32 bits or more, and in fewer."""
WAYS = (FLEX, SDPA_PACKED)
"""In the order in which they are tried."""
ROUNDING = 2.0
"""So many times the difference that two ways of attention over the same rows show counts as rounding, too: in many layers of
few bits it adds up."""


@dataclass(frozen=True)
class Choice:
    """How packed rows are attended to."""

    implementation: str | None
    """None: rows are not packed, one row per completion."""
    reasons: tuple[str, ...]
    """Why each implementation tried before, or every one, cannot be used."""
    fused: bool = False
    """Layers and head are computed by algorithms.packed_layers and algorithms.fused_head."""


def choose(model: torch.nn.Module, longest: int, device: torch.device, dtype: torch.dtype) -> Choice:
    """The first implementation that agrees with one row per completion. Draws no random number, changes nothing.

    Args:
        model: as it is trained, wrapped or not.
        longest: tokens of the longest possible prompt with its completion.
    """
    if window := _window(model, longest):
        return Choice(None, (f"attention reaches back {window} tokens, and {longest} are allowed",))
    if not _exchangeable(model):  # Its layers would see other examples, which a trial of small weights might not show.
        return Choice(None, ("its attention is not exchangeable",))
    reasons = []
    ways = WAYS if device.type == "cuda" and not _dropout(model) else (SDPA_PACKED,)
    for implementation in ways:
        reason = _difference(model, implementation, device, TOLERANCE.get(dtype, COARSE))
        if not reason:
            fused, why = _fused(model, implementation, device, dtype)
            return Choice(implementation, (*reasons, *why), fused)
        reasons.append(f"{implementation}: {reason}")
    return Choice(None, tuple(reasons))


def for_all(choices: Sequence[Choice]) -> Choice:
    """What every process can take, of the choices of all: the last one tried. With different ones they would wait for each
    other, or round differently."""
    order: tuple[str | None, ...] = (*WAYS, None)
    return max(choices, key=lambda choice: (order.index(choice.implementation), not choice.fused))


def _fused(
    model: torch.nn.Module, implementation: str, device: torch.device, dtype: torch.dtype
) -> tuple[bool, tuple[str, ...]]:
    """Whether layers and head can be computed by functions of our own, and why not if they differ from the library's."""
    if device.type != "cpu" or dtype != torch.float32 or not (plain_layers(model) or plain_head(model)):
        return False, ()
    reason = differs(model) or _difference(model, implementation, device, TOLERANCE[dtype], fused=True)
    return not reason, (f"layers and head are computed by the library: {reason}",) if reason else ()


def _window(model: torch.nn.Module, longest: int) -> int:
    """The shortest reach of any layer, where it is too short; 0 otherwise. A short trial would not show it."""
    config = model_config(model).get_text_config()
    sliding = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    reaches = [reach for reach in (sliding, getattr(config, "attention_chunk_size", None)) if reach]
    return min((reach for reach in reaches if reach < longest), default=0)


def _exchangeable(model: torch.nn.Module) -> bool:
    inner = (one for one in model.modules() if isinstance(one, PreTrainedModel))
    return all(type(one)._supports_attention_backend for one in inner)


def _dropout(model: torch.nn.Module) -> float:
    """Dropout of attention weights, which FlexAttention does not have; the trial runs without dropout."""
    return getattr(model_config(model).get_text_config(), "attention_dropout", 0.0)


def _difference(
    model: torch.nn.Module, implementation: str, device: torch.device, tolerance: float, fused: bool = False
) -> str:
    """The reason why an implementation cannot be used; empty where it agrees."""
    vocabulary = model_config(model).get_text_config().vocab_size
    try:  # All of it on every process, since those that share a model's weights compute together.
        together = _scores(model, _rows(vocabulary), device, implementation, fused)
        alone = _scores(model, _rows(vocabulary, False), device)
        with attending(model, "eager"):
            plain = _scores(model, _rows(vocabulary, False), device)
    except torch.OutOfMemoryError:
        raise
    except Exception as fault:  # A model may fail in any way on inputs that it does not expect; the reason is logged.
        return f"{type(fault).__name__}: {fault}".splitlines()[0]
    apart, rounding = (float((other - alone).abs().mean()) for other in (together, plain))
    if apart <= max(tolerance, ROUNDING * rounding):
        return ""
    return f"log-probabilities differ by {apart:.2g}"


@torch.no_grad()
def _scores(
    model: torch.nn.Module,
    rows: ModelRows,
    device: torch.device,
    implementation: str = SDPA_PACKED,
    fused: bool = False,
) -> torch.Tensor:
    """(samples, T) log-probabilities without dropout."""
    was_training = model.training
    model.eval()
    try:
        rows = rows.to(device)
        with packed_layers(model) if fused else nullcontext():
            return rows.placed(score(model, rows, 1.0, implementation=implementation, fused=fused).logprobs)
    finally:
        model.train(was_training)


def _rows(vocabulary: int, together: bool = True) -> ModelRows:
    """Two groups of arbitrary tokens, all different where the vocabulary is large enough."""
    prompts: list[Sequence[int]] = []
    completions: list[Sequence[int]] = []
    owners, drawn = [], iter(range(7, 10_000, 13))
    for group, (prompt, lengths) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        head = [next(drawn) % vocabulary for _ in range(prompt)]
        for length in lengths:
            prompts.append(head)
            completions.append([next(drawn) % vocabulary for _ in range(length)])
            owners.append(group)
    width = max(map(len, completions))
    return packed(prompts, completions, owners, width) if together else row_by_row(prompts, completions, width)
