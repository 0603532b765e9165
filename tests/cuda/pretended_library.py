"""The compiled library of the pretended devices (`pretend_cuda.cpp`). Imports no torch."""

import ctypes
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("pretend_cuda.cpp")
library: ctypes.CDLL
"""Set by `load`."""


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
    found = cache / f"{hashlib.sha256(text).hexdigest()[:16]}.so"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Ranks start at once; one compiles.
        if not found.exists():
            part, include = found.with_suffix(".part"), torch / "include"
            command = ["g++", "-O1", "-std=c++20", "-fPIC", "-shared", "-w", f"-I{include}"]
            command += [f"-I{include}/torch/csrc/api/include", str(SOURCE), "-o", str(part), f"-L{torch}/lib"]
            subprocess.run([*command, "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch}/lib"], check=True)
            part.replace(found)
    return found


def load() -> None:
    """Load it before torch._C: PyTorch asks for the hooks of CUDA once, and keeps the answer."""
    global library
    ctypes.CDLL(str(_torch_folder() / "lib" / "libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(build()), mode=ctypes.RTLD_GLOBAL)
    for name in ("allocated", "peak", "allocations", "launches"):
        getattr(library, f"pretend_{name}").restype = ctypes.c_int64
    library.pretend_limit.argtypes = (ctypes.c_int, ctypes.c_int64)
    library.pretend_set_count(count())
    for index in range(count()):
        library.pretend_limit(index, memory())


def count() -> int:
    """Devices that this process sees."""
    there = int(os.environ.get("PRETEND_CUDA_DEVICES", "1"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return there
    return sum(word.strip().isdigit() and int(word) < there for word in visible.split(","))


def memory() -> int:
    """Bytes of each device."""
    return int(float(os.environ.get("PRETEND_CUDA_MEMORY_GIB", "32")) * 2**30)
