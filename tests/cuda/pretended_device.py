"""Functions of torch._C and torch.cuda that a CPU build lacks, for pretended devices."""

import os
import time
from types import SimpleNamespace

import pretended_library as pretended

NAME = "NVIDIA Pretended RTX 5090"
CAPABILITY = (12, 0)


# ---- torch._C -------------------------------------------------------------------------------------------------------


class Properties:
    def __init__(self, index=0):
        self.name, (self.major, self.minor) = NAME, CAPABILITY
        self.total_memory = pretended.memory()
        self.multi_processor_count, self.warp_size, self.max_threads_per_multi_processor = 170, 32, 1536
        self.regs_per_multiprocessor, self.shared_memory_per_block_optin = 65536, 101376
        self.L2_cache_size, self.is_integrated, self.is_multi_gpu_board, self.gcnArchName = 96 << 20, 0, 0, ""
        self.uuid, self.pci_bus_id, self.pci_device_id, self.pci_domain_id = f"pretended-{index}", index, 0, 0


class StreamBase:
    cuda_stream = stream_id = device_index = 0
    device_type = 1
    priority = 0

    def __new__(cls, *given, **named):
        return object.__new__(cls)

    def __init__(self, *given, **named):
        pass

    @property
    def device(self):
        import torch

        return torch.device("cuda", pretended.library.pretend_current())

    def query(self):
        return True

    def synchronize(self):
        pretended.library.pretend_settle(b"stream.synchronize")


class EventBase:
    cuda_event = 0

    def __new__(cls, *given, **named):
        return object.__new__(cls)

    def __init__(self, *given, **named):
        self.at = 0.0

    def record(self, stream=None):
        self.at = time.perf_counter()

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1e3 * (other.at - self.at)

    def synchronize(self):
        pretended.library.pretend_settle(b"event.synchronize")


def _init():
    import torch

    torch.cuda.default_generators = tuple(torch.ops.pretend.generator(index) for index in range(_device_count()))
    torch.cuda._get_device_properties = Properties


def _device_count():
    return pretended.library.pretend_count()


def _set_device(index):
    if index >= _device_count():
        raise RuntimeError(f"CUDA error: invalid device ordinal ({index} of {_device_count()})")
    pretended.library.pretend_set_device(int(index))


def _exchange_device(index):
    before = pretended.library.pretend_current()
    if index >= 0:
        _set_device(index)
    return before


def _memory_stats(index):
    lib = pretended.library
    now, peak, made = lib.pretend_allocated(index), lib.pretend_peak(index), lib.pretend_allocations(index)
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


DEVICES = dict(
    _cuda_getDeviceCount=_device_count,
    _cuda_init=_init,
    _cuda_setDevice=_set_device,
    _cuda_getDevice=lambda: pretended.library.pretend_current(),
    _cuda_exchangeDevice=_exchange_device,
    _cuda_maybeExchangeDevice=_exchange_device,
    _cuda_isInBadFork=lambda: False,
    _cuda_getCompiledVersion=lambda: 13000,
    _cuda_getArchFlags=lambda: "sm_90 sm_120",
    _cuda_canDeviceAccessPeer=lambda *_: True,
    _cuda_clearCublasWorkspaces=lambda: None,
    _CudaDeviceProperties=Properties,
)
MEMORY = dict(
    _cuda_memoryStats=_memory_stats,
    _cuda_resetPeakMemoryStats=lambda index: pretended.library.pretend_reset_peak(index),
    _cuda_resetAccumulatedMemoryStats=lambda index: None,
    _cuda_emptyCache=lambda *_: None,
    _cuda_ipc_collect=lambda: None,
    _cuda_hostMemoryStats=dict,
    _cuda_setMemoryFraction=lambda *_: None,
    _cuda_getAllocatorBackend=lambda: "native",
)
STREAMS = dict(
    _cuda_synchronize=lambda: pretended.library.pretend_settle(b"torch.cuda.synchronize"),
    _cuda_getCurrentStream=lambda index: (0, index, 1),
    _cuda_getDefaultStream=lambda index: (0, index, 1),
    _cuda_setStream=lambda **_: None,
    _cuda_getCurrentRawStream=lambda index: 0,
    _cuda_isCurrentStreamCapturing=lambda: False,
    _cuda_get_sync_debug_mode=lambda: 0,
    _cuda_set_sync_debug_mode=lambda mode: None,
    _CudaStreamBase=StreamBase,
    _CudaEventBase=EventBase,
    _CUDAGraph=type("_CUDAGraph", (), {}),
    _graph_pool_handle=lambda: (0, 0),
)


def complete_core() -> None:
    """Give torch._C the functions of a CUDA build; torch.cuda is imported after this."""
    from torch import _C

    for name, value in (DEVICES | MEMORY | STREAMS).items():
        if not hasattr(_C, name) or name == "_cuda_isCurrentStreamCapturing":
            setattr(_C, name, value)


# ---- torch.cuda -----------------------------------------------------------------------------------------------------


class Cudart:
    cudaError = SimpleNamespace(success=0)

    def __getattr__(self, name):
        return lambda *_: 0

    def cudaMemGetInfo(self, index):
        return pretended.memory() - pretended.library.pretend_allocated(index), pretended.memory()


def complete_torch() -> None:
    """Give an imported torch what a CUDA build has above torch._C."""
    import torch

    cudart, index_of = Cudart(), torch.cuda._utils._get_device_index
    torch.version.cuda = "13.0"
    torch.cuda._cudart = cudart
    torch.cuda.is_bf16_supported = lambda including_emulation=True: True
    torch.cuda.mem_get_info = lambda device=None: cudart.cudaMemGetInfo(index_of(device, True))
    torch.cuda.memory.mem_get_info = torch.cuda.mem_get_info
    torch.cuda.nccl.version = lambda: (2, 27, 7)
    torch.cuda.nccl.is_available = lambda tensors: True
    torch.backends.cuda.is_built = lambda: True
    torch._utils._to = torch.storage._to = _moving(torch._utils._to)
    torch.Tensor.record_stream = lambda self, stream: None  # A CPU build knows no streams of CUDA.
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: 0)
    if not os.environ.get("PRETEND_CUDA_COMPILE"):
        torch.compile = _not_compiled


def _moving(move):
    """A CPU build makes no storage of CUDA by itself."""
    import torch

    def to(storage, device, non_blocking=False):
        device = torch.device(device)
        if device.type != "cuda" or storage.device.type == "cuda":
            return move(storage, device, non_blocking)
        made = torch.empty(storage.nbytes(), dtype=torch.uint8, device=device)
        made.copy_(torch.empty(0, dtype=torch.uint8).set_(storage))
        return made.untyped_storage()

    return to


def _not_compiled(model=None, **options):
    return model if model is not None else (lambda given: given)


def uncompile_flex() -> None:
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
