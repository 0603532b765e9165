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
import importlib.abc
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pretended_device
import pretended_library
import pretended_report

HERE = Path(__file__).resolve().parent


# ---- imports --------------------------------------------------------------------------------------------------------


def _after_torch() -> None:
    pretended_device.complete_torch()
    pretended_report.record()


def _after_distributed() -> None:
    import pretended_nccl

    pretended_nccl.install()


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
    capability = ".".join(map(str, pretended_device.CAPABILITY))
    module.QUERY = ("printf", f"{pretended_library.memory() / 2**20:.0f}, {capability}\\n")
    module._torch_has_cuda = lambda: True


BEFORE = {
    "torch": pretended_library.load,
    "torch.cuda": pretended_device.complete_core,
    "bitsandbytes": _before_bitsandbytes,
}
AFTER = {
    "torch": _after_torch,
    "torch.nn.attention.flex_attention": pretended_device.uncompile_flex,
    "torch.distributed": _after_distributed,
    "bitsandbytes": _after_bitsandbytes,
    "rlvr_exp.config.parallel": _after_parallel,
    "torch.optim.optimizer": pretended_report.watch_optimizers,
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
        pretended_report.summary(given.summary)
        return 0
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("no command: pass it after --")
    return subprocess.run(command, env=environment(given.devices, given.memory_gib, given.report)).returncode


if __name__ == "__main__":
    sys.exit(main())
