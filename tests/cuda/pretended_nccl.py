"""Process groups of pretended devices: gloo computes, under NCCL's rules. Imported after torch.distributed."""

import atexit
import hashlib
import os
from functools import partial

import pretended_library as pretended
import torch
import torch.distributed as dist
from pretended_report import note
from torch._C._distributed_c10d import AllgatherOptions, AllreduceOptions, BroadcastOptions, _create_work_from_future
from torch.distributed import distributed_c10d as core
from torch.futures import Future


def _done(result):
    future = Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _flat(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [one for part in x for one in _flat(part)] if isinstance(x, (list, tuple)) else []


def _host(x):
    if isinstance(x, torch.Tensor):
        return x.cpu() if x.is_cuda else x
    return [_host(one) for one in x] if isinstance(x, (list, tuple)) else x


def _back(mine, theirs):
    if isinstance(mine, torch.Tensor):
        if mine.is_cuda:
            mine.copy_(theirs)
    elif isinstance(mine, (list, tuple)):
        for one, other in zip(mine, theirs, strict=False):
            _back(one, other)


def _same_operation(opts):
    """Options with the same operation, and nothing else."""
    plain = AllreduceOptions()
    if opts is not None:
        plain.reduceOp = opts.reduceOp
    return plain


class Named(dist.ProcessGroup):
    """What PyTorch asks of a group besides its collectives.

    nccl: devices that NCCL's rules are for: "", "cuda" or "cuda and cpu".
    """

    def __init__(self, rank, size, nccl):
        super().__init__(rank, size)
        self.nccl, self._rank, self._size, self._name = nccl, rank, size, ""

    def size(self):
        return self._size

    def rank(self):
        return self._rank

    def _set_group_name(self, name):
        self._name = name

    def _set_group_desc(self, name):
        pass

    @property
    def group_name(self):
        return self._name

    @property
    def group_desc(self):
        return "pretended"

    @property
    def bound_device_id(self):
        return None

    @bound_device_id.setter
    def bound_device_id(self, value):
        pass

    def getBackendName(self):
        return "nccl" if self.nccl else "pretended"  # With "gloo", DistributedDataParallel asks for gloo's own options.

    def _has_hooks(self):
        return False

    def _set_sequence_number_for_group(self):
        pass

    def shutdown(self):
        pass

    def abort(self):
        pass

    def _start_coalescing(self, device):
        pass

    def _end_coalescing(self, device):
        return _done([])


class Checked(Named):
    """Device tensors by gloo, under NCCL's rules where NCCL was asked for."""

    def __init__(self, store, rank, size, timeout, nccl):
        super().__init__(rank, size, nccl)
        self._number = 0
        self.inner = dist.ProcessGroupGloo(store, rank, size, timeout)
        self.store = store
        # A thread of gloo that drops a tensor while Python ends would abort the process. This joins its threads.
        atexit.register(setattr, self, "inner", None)
        if nccl and size > 1:
            self._refuse_shared_device(store)

    def _refuse_shared_device(self, store):
        mine = os.environ.get("CUDA_VISIBLE_DEVICES", "all") + f"/{pretended.library.pretend_current()}"
        store.set(f"pretend/{self._rank}", f"{os.uname().nodename} {mine}")
        seen = [store.get(f"pretend/{one}").decode() for one in range(self._size)]
        if len(set(seen)) < self._size:
            raise RuntimeError(f"ncclInvalidUsage: Duplicate GPU detected: {seen}")

    def _compare(self, name, tensors):
        """All ranks must call the same, with as much."""
        self._number += 1
        what = f"{name} {[(tuple(one.shape), str(one.dtype)) for one in tensors]}"
        hashed = int.from_bytes(hashlib.sha256(what.encode()).digest()[:6], "big")
        mine = torch.tensor([hashed, self._number])
        all_ = [torch.empty_like(mine) for _ in range(self._size)]
        self.inner.allgather([all_], [mine]).wait()
        if any(one.tolist() != mine.tolist() for one in all_):
            raise RuntimeError(
                f"PRETENDED HANG: rank {self._rank} is at collective {self._number} ({what}), others are at "
                f"{[one.tolist() for one in all_]}; mine {mine.tolist()}"
            )

    def _check_devices(self, tensors):
        on = {one.device.type for one in tensors}
        if self.nccl and "cpu" in on and "cpu" not in self.nccl:
            raise RuntimeError("No backend type associated with device type cpu")
        if len(on) > 1:
            raise RuntimeError(f"Tensors found on multiple devices: {on}")
        if "cuda" in on and self.nccl:
            own = pretended.library.pretend_current()
            if wrong := {one.device.index for one in tensors} - {own}:
                raise RuntimeError(f"NCCL: tensors on cuda:{wrong}, this rank's device is cuda:{own}")
            if not all(one.is_contiguous() for one in tensors):
                raise RuntimeError("NCCL: Tensors must be contiguous")
        return "device" if "cuda" in on else "host"

    def _call(self, name, tensors, *given, uneven=False):
        """Run gloo's collective on the host and copy its results back. `uneven`: ranks pass different tensors."""
        all_ = _flat(list(tensors))
        where = self._check_devices(all_)
        note("collective", f"{name} of {where} tensors", sum(one.nbytes for one in all_))
        if not uneven:
            self._compare(name, all_)
        pretended.library.pretend_quiet(1)  # A GPU's own collectives wait for nothing.
        try:
            theirs = [_host(one) for one in tensors]
            getattr(self.inner, name)(*theirs, *given).wait()
            for mine, other in zip(tensors, theirs, strict=False):
                _back(mine, other)
        finally:
            pretended.library.pretend_quiet(-1)
        return _done(all_)


class Group(Checked):
    """The collectives."""

    def allreduce(self, tensors, opts=None):
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        opts = opts if isinstance(opts, AllreduceOptions) else AllreduceOptions()
        if self.nccl and opts.reduceOp == dist.ReduceOp.AVG:
            opts.reduceOp = dist.ReduceOp.SUM
            work = self._call("allreduce", [tensors], opts)
            for one in tensors:
                one.div_(self._size)
            return work
        return self._call("allreduce", [tensors], opts)

    def allreduce_coalesced(self, tensors, opts=None):
        for one in tensors:
            work = self.allreduce([one], _same_operation(opts))
        return work

    def broadcast(self, tensors, opts=None):
        return self._call("broadcast", [tensors], opts or BroadcastOptions())

    def reduce(self, tensors, opts):
        return self._call("reduce", [tensors], opts)

    def allgather(self, outputs, inputs, opts=None):
        return self._call("allgather", [outputs, inputs], opts or AllgatherOptions())

    def all_gather_single(self, output, input_, opts=None):
        parts = [torch.empty_like(input_) for _ in range(self._size)]
        work = self.allgather([parts], [input_.contiguous()])
        output.copy_(torch.cat([one.reshape(-1) for one in parts]).view_as(output))
        return work

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        for output, input_ in zip(outputs, inputs, strict=False):
            work = self.all_gather_single(output, input_)
        return work

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, outputs, inputs, opts=None):
        for place, one in enumerate(inputs):
            work = self.allgather([[output[place] for output in outputs]], [one])
        return work

    def reduce_scatter_single(self, output, input_, opts=None):
        whole = input_.clone()
        work = self.allreduce([whole], _same_operation(opts))
        output.copy_(whole.reshape(-1).chunk(self._size)[self._rank].view_as(output))
        return work

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        for output, input_ in zip(outputs, inputs, strict=False):
            work = self.reduce_scatter_single(output, input_, opts)
        return work

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outputs, inputs, opts=None):
        for output, parts in zip(outputs, inputs, strict=False):
            work = self.reduce_scatter_single(output, torch.cat([one.reshape(-1) for one in parts]), opts)
        return work

    def gather(self, outputs, inputs, opts):
        self._compare("gather", _flat(inputs))
        return self._call("gather", [outputs, inputs], opts, uneven=True)

    def scatter(self, outputs, inputs, opts):
        self._compare("scatter", _flat(outputs))
        return self._call("scatter", [outputs, inputs], opts, uneven=True)

    def barrier(self, opts=None):
        note("collective", "barrier", 0)
        self._compare("barrier", [])
        pretended.library.pretend_settle(b"barrier")
        return _done([])

    def send(self, tensors, to, tag=0):
        self.inner.send(_host(tensors), to, tag).wait()
        return _done(tensors)

    def recv(self, tensors, source, tag=0):
        theirs = _host(tensors)
        self.inner.recv(theirs, source, tag).wait()
        _back(tensors, theirs)
        return _done(tensors)


# ---- torch.distributed ----------------------------------------------------------------------------------------------

RULES = {"pretendgloo": "", "pretendnccl": "cuda", "pretendboth": "cuda and cpu"}
"""Backends, and the devices that NCCL's rules are for."""
_init, _new, _backend = core.init_process_group, core.new_group, core.get_backend


def _pretended(backend):
    """The backend of this module for one that was asked for."""
    text = str(backend).lower() if backend is not None else ""
    if text == "gloo":
        return "pretendgloo"
    if "nccl" in text:
        return "pretendboth" if "cpu:gloo" in text else "pretendnccl"
    return "pretendboth" if not text or text == "undefined" else backend


def init_process_group(backend=None, *given, **others):
    others.pop("device_id", None)
    others.pop("pg_options", None)
    return _init(_pretended(backend), *given, **others)


def new_group(ranks=None, timeout=None, backend=None, *given, **others):
    others.pop("device_id", None)
    backend = get_backend() if backend is None else backend
    return _new(ranks, timeout, _pretended(backend), *given, **others)


def get_backend(group=None):
    found = str(_backend(group))
    return found if found not in RULES else "nccl" if RULES[found] else "gloo"


def install() -> None:
    """Group processes by this module, whatever backend is asked for."""
    for name, nccl in RULES.items():
        core.Backend.register_backend(name, partial(Group, nccl=nccl), devices=["cpu", "cuda"])
    core._NCCL_AVAILABLE = True
    for module in (core, dist):
        module.init_process_group, module.new_group, module.get_backend = init_process_group, new_group, get_backend
        module.is_nccl_available = lambda: True
