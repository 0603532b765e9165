#!/usr/bin/env python3
"""CUDA devices that compute on the CPU, to rehearse GPU code on machines without a GPU.

    python tests/cuda/pretend_cuda.py [--devices 2] [--memory-gib 32] [--report DIR] -- COMMAND ...
    python tests/cuda/pretend_cuda.py --summary DIR

runs COMMAND; torch sees NVIDIA devices in every Python process that it starts. This needs a CPU build of torch and g++. The
library is compiled once for each version of torch (about 40 s) and kept in ~/.cache/rlvr_exp/pretend_cuda.

`pretend_cuda.cpp` registers kernels for PyTorch's own dispatch key of CUDA, with a device guard, an allocator, generators and
hooks. Everything above the kernels is therefore PyTorch's own: dispatch, autograd's threads, autocast, pinned memory, device
checks, generators, serialisation. A kernel checks the devices of its inputs, then computes on the same memory with the CPU's
kernel of the same name.

As on a GPU:
    - Tensors of different devices in one operation raise, except 0-dim tensors of the host. Indices of the host are copied and
      counted as a synchronisation.
    - `.numpy()`, the array protocol and memory views of device tensors raise.
    - A generator of the host with a device tensor raises. Each device has a default generator.
    - A copy to the host with non_blocking=True holds garbage until something waits for the device.
    - Fresh device memory holds NaN, not zeros.
    - Memory is counted, has a peak and a limit. Beyond the limit, torch.OutOfMemoryError is raised.
    - NCCL takes device tensors only. The collectives of the ranks are compared: if they differ, all ranks raise instead of
      waiting for each other. Two ranks on one device are refused.
    - bitsandbytes, DeepSpeed (ZeRO 1 to 3) and FlexAttention (uncompiled) run.
Unlike a GPU:
    - rounding, speed, Triton, torch.compile (off), CUDA graphs, overlapping streams, fragmentation of memory, fused attention
      kernels and their limits.
    - FlexAttention computes every pair of tokens: pass small algorithm.max_tokens_per_device.

The report has one file per process, DIR/PID.json: synchronisations of host and device by line of the project, kernels,
collectives, peak memory, and the synchronisations counted so far at each optimizer step.
"""

import argparse
import atexit
import collections
import ctypes
import fcntl
import hashlib
import importlib.abc
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "pretend_cuda.cpp"
WATCHED = HERE.parents[1] / "rlvr_exp"
"""Its lines are named in reports."""
NAME = "NVIDIA Pretended RTX 5090"
CAPABILITY = (12, 0)
FIELDS = ("kind", "what", "place", "leaf", "count", "bytes")
"""Of an event in a report."""
_library = None
_events: dict = {}
_updates: list = []


# ---- the library ----------------------------------------------------------------------------------------------------


def _torch_folder() -> Path:
    return Path(importlib.util.find_spec("torch").origin).parent


def missing() -> str:
    """The reason why this machine cannot pretend devices; empty if it can."""
    if not shutil.which("g++"):
        return "g++ is not installed, which compiles the pretended CUDA devices"
    if "cuda = None" not in re.sub(r": [^=]*=", " =", (_torch_folder() / "version.py").read_text()):
        return "CUDA devices can be pretended only in a CPU build of torch"
    return ""


def build() -> Path:
    """Return the compiled library for this version of torch."""
    torch = _torch_folder()
    text = (torch / "version.py").read_bytes() + SOURCE.read_bytes()
    cache = Path.home() / ".cache" / "rlvr_exp" / "pretend_cuda"
    library = cache / f"{hashlib.sha256(text).hexdigest()[:16]}.so"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Ranks start at once; one compiles.
        if not library.exists():
            part, include = library.with_suffix(".part"), torch / "include"
            command = ["g++", "-O1", "-std=c++20", "-fPIC", "-shared", "-w", f"-I{include}"]
            command += [f"-I{include}/torch/csrc/api/include", str(SOURCE), "-o", str(part), f"-L{torch}/lib"]
            subprocess.run([*command, "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch}/lib"], check=True)
            part.replace(library)
    return library


def _load() -> None:
    """Before torch._C: PyTorch asks for the hooks of CUDA once, and keeps the answer."""
    global _library
    torch = _torch_folder()
    ctypes.CDLL(str(torch / "lib" / "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
    lib = ctypes.CDLL(str(build()), mode=ctypes.RTLD_GLOBAL)
    for name in ("allocated", "peak", "allocations"):
        getattr(lib, f"pretend_{name}").restype = ctypes.c_int64
    lib.pretend_launches.restype = ctypes.c_int64
    lib.pretend_limit.argtypes = (ctypes.c_int, ctypes.c_int64)
    _library = lib
    lib.pretend_set_count(count())
    limit = float(os.environ.get("PRETEND_CUDA_MEMORY_GIB", "32"))
    for index in range(count()):
        lib.pretend_limit(index, int(limit * 2**30))


def count() -> int:
    """Devices that this process sees."""
    there = int(os.environ.get("PRETEND_CUDA_DEVICES", "1"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return there
    found = [word for word in visible.split(",") if word.strip().isdigit() and int(word) < there]
    return len(found)


# ---- what torch._C lacks --------------------------------------------------------------------------------------------


def _before_cuda() -> None:
    """Functions of a CUDA build's torch._C; torch.cuda is imported after this."""
    import torch

    core, lib = torch._C, _library

    def exchange(index):
        before = lib.pretend_current()
        if index >= 0:
            set_device(index)
        return before

    def set_device(index):
        if index >= lib.pretend_count():
            raise RuntimeError(f"CUDA error: invalid device ordinal ({index} of {lib.pretend_count()})")
        lib.pretend_set_device(int(index))

    def memory(index):
        now, peak = lib.pretend_allocated(index), lib.pretend_peak(index)
        made = lib.pretend_allocations(index)
        bytes_ = {"current": now, "peak": peak, "allocated": peak, "freed": peak - now}
        both = {"all": bytes_, "small_pool": dict.fromkeys(bytes_, 0), "large_pool": bytes_}
        return {
            "allocated_bytes": both,
            "reserved_bytes": both,
            "active_bytes": both,
            "requested_bytes": both,
            "inactive_split_bytes": {"all": dict.fromkeys(bytes_, 0)},
            "allocation": {"all": {"current": 0, "peak": 0, "allocated": made, "freed": made}},
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }

    def init():
        torch.cuda.default_generators = tuple(
            torch.ops.pretend.generator(index) for index in range(lib.pretend_count())
        )
        torch.cuda._get_device_properties = lambda index: Properties(index)

    given = dict(
        _cuda_getDeviceCount=lambda: lib.pretend_count(),
        _cuda_init=init,
        _cuda_setDevice=set_device,
        _cuda_getDevice=lambda: lib.pretend_current(),
        _cuda_exchangeDevice=exchange,
        _cuda_maybeExchangeDevice=exchange,
        _cuda_synchronize=lambda: lib.pretend_settle(b"torch.cuda.synchronize"),
        _cuda_isInBadFork=lambda: False,
        _cuda_getCompiledVersion=lambda: 13000,
        _cuda_getArchFlags=lambda: "sm_90 sm_120",
        _cuda_memoryStats=memory,
        _cuda_resetPeakMemoryStats=lambda index: lib.pretend_reset_peak(index),
        _cuda_resetAccumulatedMemoryStats=lambda index: None,
        _cuda_emptyCache=lambda *_: None,
        _cuda_ipc_collect=lambda: None,
        _cuda_hostMemoryStats=dict,
        _cuda_setMemoryFraction=lambda *_: None,
        _cuda_getAllocatorBackend=lambda: "native",
        _cuda_getCurrentStream=lambda index: (0, index, 1),
        _cuda_getDefaultStream=lambda index: (0, index, 1),
        _cuda_setStream=lambda **_: None,
        _cuda_getCurrentRawStream=lambda index: 0,
        _cuda_isCurrentStreamCapturing=lambda: False,
        _cuda_canDeviceAccessPeer=lambda *_: True,
        _cuda_get_sync_debug_mode=lambda: 0,
        _cuda_set_sync_debug_mode=lambda mode: None,
        _cuda_clearCublasWorkspaces=lambda: None,
        _CudaStreamBase=StreamBase,
        _CudaEventBase=EventBase,
        _CudaDeviceProperties=Properties,
        _CUDAGraph=type("_CUDAGraph", (), {}),
        _graph_pool_handle=lambda: (0, 0),
    )
    for name, value in given.items():
        if not hasattr(core, name) or name == "_cuda_isCurrentStreamCapturing":
            setattr(core, name, value)


class Properties:
    def __init__(self, index=0):
        self.name, (self.major, self.minor) = NAME, CAPABILITY
        self.total_memory = int(float(os.environ.get("PRETEND_CUDA_MEMORY_GIB", "32")) * 2**30)
        self.multi_processor_count, self.warp_size, self.max_threads_per_multi_processor = 170, 32, 1536
        self.regs_per_multiprocessor, self.shared_memory_per_block_optin = 65536, 101376
        self.L2_cache_size, self.is_integrated, self.is_multi_gpu_board, self.gcnArchName = 96 << 20, 0, 0, ""
        self.uuid, self.pci_bus_id, self.pci_device_id, self.pci_domain_id = f"pretended-{index}", index, 0, 0


class StreamBase:
    def __new__(cls, *given, **named):
        return object.__new__(cls)

    def __init__(self, *given, **named):
        pass

    cuda_stream = stream_id = device_index = 0
    device_type = 1
    priority = 0

    @property
    def device(self):
        import torch

        return torch.device("cuda", _library.pretend_current())

    def query(self):
        return True

    def synchronize(self):
        _library.pretend_settle(b"stream.synchronize")


class EventBase:
    def __new__(cls, *given, **named):
        return object.__new__(cls)

    def __init__(self, *given, **named):
        self.at = 0.0

    cuda_event = 0

    def record(self, stream=None):
        self.at = time.perf_counter()

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1e3 * (other.at - self.at)

    def synchronize(self):
        _library.pretend_settle(b"event.synchronize")


def _after_torch() -> None:
    import torch

    class Cudart:
        class cudaError:
            success = 0

        def __getattr__(self, name):
            return lambda *_: 0

        def cudaMemGetInfo(self, index):
            total = Properties().total_memory
            return total - _library.pretend_allocated(index), total

    torch.version.cuda = "13.0"
    torch.cuda._cudart = Cudart()
    torch.cuda.is_bf16_supported = lambda including_emulation=True: True
    torch.cuda.mem_get_info = lambda device=None: Cudart().cudaMemGetInfo(
        torch.cuda._utils._get_device_index(device, True)
    )
    torch.cuda.memory.mem_get_info = torch.cuda.mem_get_info
    torch.cuda.nccl.version = lambda: (2, 27, 7)
    torch.cuda.nccl.is_available = lambda tensors: True
    torch.backends.cuda.is_built = lambda: True
    moved = torch._utils._to

    def to(storage, device, non_blocking=False):
        """A CPU build makes no storage of CUDA by itself."""
        device = torch.device(device)
        if device.type != "cuda" or storage.device.type == "cuda":
            return moved(storage, device, non_blocking)
        made = torch.empty(storage.nbytes(), dtype=torch.uint8, device=device)
        made.copy_(torch.empty(0, dtype=torch.uint8).set_(storage))
        return made.untyped_storage()

    torch._utils._to = torch.storage._to = to
    torch.Tensor.record_stream = lambda self, stream: None  # A CPU build knows no streams of CUDA.
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: 0)
    if not os.environ.get("PRETEND_CUDA_COMPILE"):
        torch.compile = _not_compiled
    _record()


def _not_compiled(model=None, **options):
    return model if model is not None else (lambda given: given)


def _after_flex() -> None:
    """FlexAttention as it is written, not compiled."""
    import torch.nn.attention.flex_attention as flex

    plain = flex.flex_attention

    def attention(query, key, value, *given, **named):
        for other in (key, value):
            if other.device != query.device:
                raise ValueError(
                    f"Expected query, key, and value to have the same device type, got {query.device}, {other.device}"
                )
        mask = named.get("block_mask") or (given[1] if len(given) > 1 else None)
        if mask is not None and mask.kv_indices.device != query.device:
            raise RuntimeError("Expect q/k/v and block_mask to be on the same device")
        return plain(query, key, value, *given, **named)

    flex.flex_attention = attention
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True


# ---- processes ------------------------------------------------------------------------------------------------------


def _after_distributed() -> None:
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import AllgatherOptions, AllreduceOptions, BroadcastOptions
    from torch.distributed import distributed_c10d as core
    from torch.futures import Future

    def done(result):
        future = Future()
        future.set_result(result)
        return torch._C._distributed_c10d._create_work_from_future(future)

    def flat(x):
        if isinstance(x, torch.Tensor):
            return [x]
        return [one for part in x for one in flat(part)] if isinstance(x, (list, tuple)) else []

    def host(x):
        if isinstance(x, torch.Tensor):
            return x.cpu() if x.is_cuda else x
        return [host(one) for one in x] if isinstance(x, (list, tuple)) else x

    def back(mine, theirs):
        if isinstance(mine, torch.Tensor):
            if mine.is_cuda:
                mine.copy_(theirs)
        elif isinstance(mine, (list, tuple)):
            for one, other in zip(mine, theirs, strict=False):
                back(one, other)

    class Group(dist.ProcessGroup):
        """Device tensors by gloo, under NCCL's rules where NCCL was asked for."""

        def __init__(self, store, rank, size, timeout, nccl):
            super().__init__(rank, size)
            self.nccl, self._rank, self._size, self._number = nccl, rank, size, 0
            self.inner = dist.ProcessGroupGloo(store, rank, size, timeout)
            self.store = store
            self._name = ""
            if nccl and size > 1:
                mine = os.environ.get("CUDA_VISIBLE_DEVICES", "all") + f"/{_library.pretend_current()}"
                store.set(f"pretend/{rank}", f"{os.uname().nodename} {mine}")
                seen = [store.get(f"pretend/{one}").decode() for one in range(size)]
                if len(set(seen)) < size:
                    raise RuntimeError(f"ncclInvalidUsage: Duplicate GPU detected: {seen}")

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
            return "nccl" if self.nccl else "gloo"

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
            return done([])

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

        def _call(self, name, tensors, *given, uneven=False):
            all_ = flat(list(tensors))
            on = {one.device.type for one in all_}
            if self.nccl and "cpu" in on and "cpu" not in self.nccl:
                raise RuntimeError("No backend type associated with device type cpu")
            if len(on) > 1:
                raise RuntimeError(f"Tensors found on multiple devices: {on}")
            if "cuda" in on and self.nccl:
                wrong = {one.device.index for one in all_} - {_library.pretend_current()}
                if wrong:
                    raise RuntimeError(
                        f"NCCL: tensors on cuda:{wrong}, this rank's device is cuda:{_library.pretend_current()}"
                    )
                if not all(one.is_contiguous() for one in all_):
                    raise RuntimeError("NCCL: Tensors must be contiguous")
            _note(
                "collective",
                name + (" of device tensors" if "cuda" in on else " of host tensors"),
                sum(one.nbytes for one in all_),
            )
            if not uneven:
                self._compare(name, all_)
            _library.pretend_quiet(1)  # A GPU's own collectives wait for nothing.
            try:
                theirs = [host(one) for one in tensors]
                getattr(self.inner, name)(*theirs, *given).wait()
                for mine, other in zip(tensors, theirs, strict=False):
                    back(mine, other)
            finally:
                _library.pretend_quiet(-1)
            return done(all_)

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
                plain = AllreduceOptions()
                if opts is not None:
                    plain.reduceOp = opts.reduceOp
                work = self.allreduce([one], plain)
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
            plain = AllreduceOptions()
            if opts is not None:
                plain.reduceOp = opts.reduceOp
            work = self.allreduce([whole], plain)
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
            self._compare("gather", flat(inputs))
            return self._call("gather", [outputs, inputs], opts, uneven=True)

        def scatter(self, outputs, inputs, opts):
            self._compare("scatter", flat(outputs))
            return self._call("scatter", [outputs, inputs], opts, uneven=True)

        def barrier(self, opts=None):
            _note("collective", "barrier", 0)
            self._compare("barrier", [])
            _library.pretend_settle(b"barrier")
            return done([])

        def send(self, tensors, to, tag=0):
            theirs = host(tensors)
            self.inner.send(theirs, to, tag).wait()
            return done(tensors)

        def recv(self, tensors, source, tag=0):
            theirs = host(tensors)
            self.inner.recv(theirs, source, tag).wait()
            back(tensors, theirs)
            return done(tensors)

    def maker(nccl):
        return lambda store, rank, size, timeout: Group(store, rank, size, timeout, nccl)

    if not hasattr(core.Backend, "PRETENDGLOO"):
        core.Backend.register_backend("pretendgloo", maker(""), devices=["cpu", "cuda"])
        core.Backend.register_backend("pretendnccl", maker("cuda"), devices=["cpu", "cuda"])
        core.Backend.register_backend("pretendboth", maker("cuda and cpu"), devices=["cpu", "cuda"])

    def named(backend):
        text = str(backend).lower() if backend is not None else ""
        if text == "gloo":
            return "pretendgloo"
        if "nccl" in text:
            return "pretendboth" if "cpu:gloo" in text else "pretendnccl"
        return "pretendboth" if not text or text == "undefined" else backend

    start, new = core.init_process_group, core.new_group

    def init_process_group(backend=None, *given, **others):
        others.pop("device_id", None)
        others.pop("pg_options", None)
        return start(named(backend), *given, **others)

    def new_group(ranks=None, timeout=None, backend=None, *given, **others):
        others.pop("device_id", None)
        if backend is None:
            backend = get_backend()
        return new(ranks, timeout, named(backend), *given, **others)

    asked = core.get_backend

    def get_backend(group=None):
        found = str(asked(group))
        return {"pretendgloo": "gloo", "pretendnccl": "nccl", "pretendboth": "nccl"}.get(found, found)

    core._NCCL_AVAILABLE = True
    for module in (core, dist):
        module.init_process_group, module.new_group, module.get_backend = init_process_group, new_group, get_backend
        module.is_nccl_available = lambda: True


# ---- what is recorded -----------------------------------------------------------------------------------------------


def _place() -> tuple[str, str]:
    """The innermost line of the project, and the innermost of any library."""
    frame, leaf = sys._getframe(2), ""
    while frame is not None:
        name = frame.f_code.co_filename
        if name != __file__:
            leaf = leaf or f"{name}:{frame.f_lineno}"
            if name.startswith(f"{WATCHED}/"):
                return f"{name.removeprefix(f'{WATCHED}/')}:{frame.f_lineno}", leaf
        frame = frame.f_back
    return "-", leaf or "autograd thread"


def _note(kind: str, what: str, size: int) -> None:
    place = _place()
    key = (kind, what, *place)
    one = _events.setdefault(key, [0, 0])
    one[0] += 1
    one[1] += size


def _record() -> None:
    folder = os.environ.get("PRETEND_CUDA_REPORT")
    if not folder:
        return
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64)
    _record.call = kind(lambda kind_, what, size: _note(kind_.decode(), what.decode(), size))
    _library.pretend_on_event(_record.call)
    started, pid = time.time(), os.getpid()

    def write():
        if os.getpid() != pid or not (_events or _library.pretend_launches()):
            return
        rows = [dict(zip(FIELDS, (*key, *counted), strict=True)) for key, counted in _events.items()]
        rows.sort(key=lambda row: -row["count"])
        found = {
            "argv": sys.argv,
            "rank": os.environ.get("RANK"),
            "seconds": round(time.time() - started, 1),
            "launches": _library.pretend_launches(),
            "peak_bytes": [_library.pretend_peak(index) for index in range(count())],
            "updates": _updates,
            "events": rows,
        }
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, f"{pid}.json").write_text(json.dumps(found, indent=1))

    atexit.register(write)


def _after_optimizer() -> None:
    """Note the synchronisations so far at each optimizer step, by line of the project."""

    def note(*_):
        so_far = collections.Counter()
        for (kind, _what, place, _leaf), (times, _bytes) in _events.items():
            if kind == "sync":
                so_far[place] += times
        _updates.append(so_far)

    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(note)


def summary(folder: str) -> None:
    for file in sorted(Path(folder).glob("*.json")):
        found = json.loads(file.read_text())
        print(f"== {file.name} rank {found['rank']} {' '.join(found['argv'])[-150:]}")
        peak = [round(size / 2**20, 1) for size in found["peak_bytes"]]
        print(f"   {found['seconds']} s, {found['launches']} kernels, peak {peak} MiB")
        for row in found["events"]:
            leaf = "/".join(row["leaf"].split("/")[-3:])
            print(
                f"   {row['count']:7d}  {row['kind']:10s} {row['what']:45s} {row['bytes']:10d}  {row['place']}   [{leaf}]"
            )


# ---- imports --------------------------------------------------------------------------------------------------------


def _before_bitsandbytes() -> None:
    """Its kernels for the CPU: the fallback finds them under the key of CUDA."""
    import torch

    _before_bitsandbytes.kept = torch.cuda.is_available
    torch.cuda.is_available = lambda: False


def _after_bitsandbytes() -> None:
    import torch

    torch.cuda.is_available = _before_bitsandbytes.kept


def _after_parallel() -> None:
    """The project asks NVIDIA's driver for devices, without torch."""
    module, devices = sys.modules["rlvr_exp.config.parallel"], os.environ["PRETEND_CUDA_DEVICES"]
    folder = Path(tempfile.gettempdir(), f"pretend_cuda_driver_{devices}")
    for index in range(int(devices)):
        (folder / str(index)).mkdir(parents=True, exist_ok=True)
    module.DRIVER = folder
    memory = float(os.environ["PRETEND_CUDA_MEMORY_GIB"]) * 1024
    module.QUERY = ("printf", f"{memory:.0f}, {'.'.join(map(str, CAPABILITY))}\\n")
    module._torch_has_cuda = lambda: True


BEFORE = {"torch": _load, "torch.cuda": _before_cuda, "bitsandbytes": _before_bitsandbytes}
AFTER = {
    "torch": _after_torch,
    "torch.nn.attention.flex_attention": _after_flex,
    "torch.distributed": _after_distributed,
    "bitsandbytes": _after_bitsandbytes,
    "rlvr_exp.config.parallel": _after_parallel,
    "torch.optim.optimizer": _after_optimizer,
}


class _Loader(importlib.abc.Loader):
    def __init__(self, name, inner):
        self.name, self.inner = name, inner

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.inner
        if self.name in BEFORE:
            BEFORE[self.name]()
        self.inner.exec_module(module)
        if self.name in AFTER:
            AFTER[self.name]()

    def __getattr__(self, name):
        return getattr(self.inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self):
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if (name not in BEFORE and name not in AFTER) or name in self.busy:
            return None
        self.busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(name, spec.loader)
        return spec


def install() -> None:
    """Before torch is imported in this process."""
    if any(isinstance(one, _Finder) for one in sys.meta_path):
        return
    if "torch" in sys.modules:
        raise RuntimeError("pretend_cuda must be installed before torch is imported")
    sys.meta_path.insert(0, _Finder())


def environment(devices: int = 1, memory_gib: float = 32, report: str | os.PathLike[str] = "") -> dict[str, str]:
    """The variables with which a Python process sees pretended devices."""
    found = {
        **os.environ,
        "PRETEND_CUDA_DEVICES": str(devices),
        "PRETEND_CUDA_MEMORY_GIB": str(memory_gib),
        # Else a process that ran a backward pass aborts as it ends: the autograd thread of a device outlives the interpreter.
        "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE / "startup"), os.environ.get("PYTHONPATH")))),
    }
    return found | ({"PRETEND_CUDA_REPORT": str(Path(report).resolve())} if report else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--memory-gib", type=float, default=32)
    parser.add_argument("--report", default="", help="folder for the report of each process")
    parser.add_argument("--summary", help="print the reports in this folder")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.summary:
        summary(given.summary)
        return 0
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("no command: pass it after --")
    return subprocess.run(command, env=environment(given.devices, given.memory_gib, given.report)).returncode


if __name__ == "__main__":
    sys.exit(main())
