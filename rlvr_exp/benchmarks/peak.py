"""The peak of tensor memory while code runs, on any device, also of tensors that have a shape and no data.

Counts every storage from its first tensor to its end, as torch's operations create them. Under torch's `FakeTensorMode`
nothing is computed, so that a model of any size can be measured on any machine. Not counted: allocations of a kernel or
a library inside an operation.
"""

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Peak(TorchDispatchMode):
    """`now` and `highest` in bytes; `known` are existing tensors, counted from the start."""

    def __init__(self, known: Any = ()):
        super().__init__()
        self.now = self.highest = 0
        self._seen: set[int] = set()
        for tensor in tree_leaves(known):
            self._count(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            self._count(value)
        return result

    def restart(self) -> None:
        """Start a new phase: the current bytes are the highest so far."""
        self.highest = self.now

    def _count(self, value: Any) -> None:
        # Weights packed for a CPU's kernels have no storage to inspect; a device does not have them.
        if not isinstance(value, torch.Tensor) or value.device.type == "meta" or value.layout is not torch.strided:
            return
        storage = value.untyped_storage()
        key = storage._cdata
        if key in self._seen:
            return
        self._seen.add(key)
        size = storage.nbytes()
        self.now += size
        self.highest = max(self.highest, self.now)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.now -= size
