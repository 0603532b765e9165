"""The full weights of a policy whose parameters are sharded over the ranks (ZeRO-3), for sampling and saving.

Gathered once for a block and not at every layer of every token: sampling by the layer took hours for a step where this
takes one exchange. Meanwhile it holds the full model next to the shard. It does nothing for every other policy.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

_trainers: dict[nn.Module, Any] = {}
"""They outlive training: what a trainer's engine has done to its model lasts as well."""
_gathered: dict[nn.Module, bool] = {}
"""Models whose weights are gathered now, and whether what is written into them is kept."""


def register_engine(model: nn.Module, trainer: Any) -> None:
    """Register a model's trainer, which holds its DeepSpeed engine: the engine's hooks would release gathered weights."""
    _trainers[model] = trainer


def is_sharded(model: nn.Module) -> bool:
    return any(hasattr(value, "ds_id") for value in model.parameters())


@contextmanager
def gathered_weights(model: nn.Module, write: bool = False) -> Iterator[None]:
    """Gather every parameter of `model` for the block. Collective: all ranks enter it.

    Args:
        write: what rank 0 writes into the parameters inside the block is what all ranks hold after it.

    Raises:
        ValueError: `write` inside a block that only reads.
    """
    if not is_sharded(model) or model in _gathered:
        if write and not _gathered.get(model, True):
            raise ValueError("gathered_weights: what is written inside a block that only reads would be lost")
        yield
        return
    import deepspeed

    with (
        deepspeed.zero.GatheredParameters(list(model.parameters()), modifier_rank=0 if write else None),
        unsharded_loading() if write else nullcontext(),
        _without_hooks(model),
    ):
        _gathered[model] = write
        try:
            yield
        finally:
            del _gathered[model]


@contextmanager
def _without_hooks(model: nn.Module) -> Iterator[None]:
    from trl.models.utils import add_hooks, remove_hooks

    trainer = _trainers.get(model)
    if trainer is None:  # A model that only scores, as a reference does: it is never sampled from.
        yield
        return
    remove_hooks(trainer.model_wrapped)
    try:
        with _no_new_step(trainer.model_wrapped):
            yield
    finally:
        add_hooks(trainer.model_wrapped)


@contextmanager
def _no_new_step(engine: Any) -> Iterator[None]:
    """DeepSpeed takes a forward pass of the full model as the beginning of a step, where ranks compare their traces;
    ranks that sample make different numbers of passes, and a rank without work makes none: the others would wait for it
    for ever."""
    offload = getattr(getattr(engine, "optimizer", None), "parameter_offload", None)
    if offload is None:  # Before training there is no engine.
        yield
        return
    hooks, key = offload.module._forward_pre_hooks, offload.fwd_pre_hook.id
    hook = hooks.pop(key)
    try:
        yield
    finally:
        hooks[key] = hook  # Before the hooks that fetch are put back: it runs first.


@contextmanager
def gathered_parameters(values: Sequence[nn.Parameter]) -> Iterator[None]:
    """Gather some parameters for the block, to read them. Collective; nothing to do where they are not sharded."""
    if not any(hasattr(value, "ds_id") for value in values):
        yield
        return
    import deepspeed

    with deepspeed.zero.GatheredParameters(list(values)):
        yield


@torch.no_grad()
def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Give `target` the weights of `source`, a model of the same form; either may be sharded over the ranks."""
    with gathered_weights(source), gathered_weights(target, write=True):
        for theirs, own in zip(source.parameters(), target.parameters(), strict=True):
            own.copy_(theirs)


@contextmanager
def unsharded_loading() -> Iterator[None]:
    """A model that is loaded inside the block is not sharded, which Transformers does once ZeRO-3 is configured."""
    from transformers.integrations import deepspeed as known

    config = known._hf_deepspeed_config_weak_ref
    known.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        known._hf_deepspeed_config_weak_ref = config
