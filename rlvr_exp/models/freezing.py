"""Which weights are trained: freezing by patterns of parameter names."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from rlvr_exp.config.checkpoint_files import frozen_nothing, nothing_left
from rlvr_exp.core.errors import InputError


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
