"""The parameters of a policy: sharded ones gathered (ZeRO-3), frozen ones by patterns of names, counts, and a hash.

`gathered_weights` gathers the full weights once for a block, to sample or to save, and not at every layer of every token:
sampling by the layer took hours for a step that takes one exchange this way. Meanwhile it holds the full model next to the
shard. It does nothing for every other policy.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from rlvr_exp.config.checkpoint_files import frozen_nothing, nothing_left
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.models.quantization import quantization_of, weight_bytes

_trainers: dict[nn.Module, Any] = {}
"""They outlive training, as the changes of a trainer's engine to its model do."""
_gathered: dict[nn.Module, bool] = {}
"""Models whose weights are gathered now, and whether writes into them are kept."""


def register_engine(model: nn.Module, trainer: Any) -> None:
    """Register a model's trainer, which holds its DeepSpeed engine: the engine's hooks would release gathered weights."""
    _trainers[model] = trainer


def is_sharded(model: nn.Module) -> bool:
    return any(hasattr(value, "ds_id") for value in model.parameters())


@contextmanager
def gathered_weights(model: nn.Module, write: bool = False) -> Iterator[None]:
    """Gather every parameter of `model` for the block. Collective: all ranks enter it.

    Args:
        write: after the block all ranks hold the values that rank 0 wrote inside it.

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
    """Gather some parameters for the block, to read them. Collective; nothing to do if they are not sharded."""
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
    """Do not shard a model that is loaded inside the block. Transformers shards models once ZeRO-3 is configured."""
    from transformers.integrations import deepspeed as known

    config = known._hf_deepspeed_config_weak_ref
    known.unset_hf_deepspeed_config()
    try:
        yield
    finally:
        known._hf_deepspeed_config_weak_ref = config


def freeze(network: nn.Module, patterns: Sequence[str]) -> int:
    """Freeze every parameter whose name fits a shell pattern; returns how many tensors that were.

    A tensor with several names, such as tied embeddings and head, is frozen by each of them.

    Raises:
        InputError: a pattern fits no name, or nothing is left to train.
    """
    names = dict(network.named_parameters(remove_duplicate=False))
    lost = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
    if lost:
        raise InputError(*(frozen_nothing(pattern, [*names]) for pattern in lost))
    frozen = [value for name, value in names.items() if any(fnmatchcase(name, pattern) for pattern in patterns)]
    for value in frozen:
        value.requires_grad_(False)
    if not any(value.requires_grad for value in names.values()):
        raise InputError(nothing_left(patterns))
    return len({id(value) for value in frozen})


NUMBER = re.compile(r"\.\d+(?=\.)")


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters, tied parameters counted once, and the memory of all weights as they are held now."""

    total: int
    trained: int
    weight_bytes: int
    quantization: str
    trained_by_part: dict[str, int]
    """By name, every layer's number as `*`."""

    @property
    def share(self) -> float:
        return self.trained / self.total

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "share": self.share}

    def __str__(self) -> str:
        bits = "" if self.quantization == "none" else f", base in {self.quantization}"
        held = f"weights hold {self.weight_bytes / 2**20:,.1f} MiB{bits}"
        return f"{self.trained:,} of {self.total:,} parameters are trained ({self.share:.2%}); {held}"


def parameters(model: nn.Module) -> Parameters:
    """Count the parameters of a loaded model."""
    total, by_part = 0, Counter[str]()
    for name, value in model.named_parameters():
        size = _size(value)
        total += size
        if value.requires_grad:
            by_part[NUMBER.sub(".*", name)] += size
    return Parameters(total, by_part.total(), weight_bytes(model), quantization_of(model), dict(by_part))


def _size(value: nn.Parameter) -> int:
    """Numbers in a parameter. A 4-bit parameter has the shape of its bytes, and a sharded parameter holds nothing."""
    state = getattr(value, "quant_state", None)
    return getattr(value, "ds_numel", value.numel()) if state is None else state.shape.numel()


EACH = 256
"""Values of each parameter that enter the hash, evenly spaced: an update changes nearly all of them."""


def weights_hash(model: nn.Module) -> str:
    """A hash of a part of every parameter, an adapter's included; 32 hexadecimal digits."""
    return content_hash({name: _part(value) for name, value in sorted(model.named_parameters())})


def _part(value: torch.Tensor) -> bytes:
    flat = value.detach().flatten()
    chosen = flat[:: max(1, flat.numel() // EACH)].cpu().contiguous()
    return chosen.view(torch.uint8).numpy().tobytes()
