"""Real servers for tests: llama.cpp, vLLM and Transformers.

llama.cpp comes from the package `xllamacpp`, vLLM from `vllm`. The variables LLAMA_PYTHON and VLLM_PYTHON name a Python that
imports the package; default: the Python of the tests. Tests are skipped if the package is missing.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

LLAMA = """
import sys, xllamacpp
given = xllamacpp.CommonParams()
given.model.path, given.port = sys.argv[1], int(sys.argv[2])
given.n_ctx, given.n_parallel, given.cpuparams.n_threads = 2048, 4, 1
if sys.argv[3] == "exact":
    given.cache_type_k = given.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    given.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
server = xllamacpp.Server(given)
sys.stdin.read()
"""
VLLM = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}

RECEIVES = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
UNPACKED = """
from vllm import _custom_ops
_custom_ops._supports_onednn = False
class Unpacked:
    pass
"""
"""An extension of vLLM's worker. On a CPU vLLM packs matrices, and a reload does not reach the packed copy of tied embeddings."""


@cache
def python_with(module: str, variable: str) -> str:
    """A Python that imports the module. Skips the test if there is none."""
    python = os.environ.get(variable, sys.executable)
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    if subprocess.run([python, "-c", code]).returncode:
        pytest.skip(f"{python} has no module {module}; {variable} names a Python that has it")
    return python


@contextmanager
def llama_cpp(model: Path, log: Path, exact: bool = False) -> Iterator[str]:
    """Serve a GGUF file.

    Args:
        exact: attention in float32. By default llama.cpp keeps keys and values in float16, and so does its flash attention on a
            CPU: a log-probability of SmolLM2 then differs by up to 6e-3.
    """
    port = free_port()
    command = [python_with("xllamacpp", "LLAMA_PYTHON"), "-c", LLAMA, str(model), str(port), "exact" if exact else ""]
    with _served(command, port, log) as url:
        yield url


@contextmanager
def transformers(model: Path, log: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model), "--port", str(port)]
    with _served([*command, "--host", "127.0.0.1", "--device", "cpu", "--dtype", "float32"], port, log) as url:
        yield url


@contextmanager
def vllm(model: Path, log: Path, *words: str) -> Iterator[str]:
    port = free_port()
    with _served(vllm_command(model, port, *words), port, log, VLLM) as url:
        yield url


def vllm_command(model: Path, port: int, *words: str) -> list[str]:
    command = [python_with("vllm", "VLLM_PYTHON"), "-m", "vllm.entrypoints.cli.main", "serve", str(model)]
    command += ["--port", str(port), "--host", "127.0.0.1", "--dtype", "float32", "--enforce-eager"]
    return [*command, "--max-model-len", "512", "--kv-cache-memory-bytes", "64M", *words]


class TrainedVLLM:
    """A vLLM server that receives weights, and that a test may kill and start again.

    Args:
        weights: as `engine.weights`.
    """

    def __init__(self, model: Path, folder: Path, weights: str):
        words = ["--max-model-len", "1152", "--logprobs-mode", "processed_logprobs"]
        words += ["--no-enable-chunked-prefill", "--no-enable-prefix-caching"]
        words += ["--enable-lora", "--max-lora-rank", "16"] if weights == "lora" else []
        words += ["--worker-extension-cls", "unpacked.Unpacked"] if weights == "full" else []
        (folder / "unpacked.py").write_text(UNPACKED)
        port = free_port()
        self._command, self._port, self.log = vllm_command(model, port, *words), port, folder / "server.log"
        self._more = {**VLLM, **RECEIVES, "PYTHONPATH": str(folder)}
        self.url = f"http://127.0.0.1:{port}/v1"
        self.start()

    def start(self, wait: bool = True) -> None:
        self._process = _started(self._command, self.log, self._more)
        if wait:
            _wait(self._process, self._port, self.log)

    def running(self) -> bool:
        """Whether it is sampling."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return any(line.startswith("vllm:num_requests_running") and float(line.split()[-1]) > 0 for line in lines)

    def kill(self) -> None:
        os.killpg(self._process.pid, 9)
        self._process.wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _served(command: Sequence[str], port: int, log: Path, more: Mapping[str, str] = {}) -> Iterator[str]:
    """The address of a server, up to /v1, once it is healthy."""
    process = _started(command, log, more)
    try:
        _wait(process, port, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def _started(command: Sequence[str], log: Path, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with log.open("w") as out:
        # A session of its own, since vLLM starts further processes.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True, env={**os.environ, **more}
        )


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(3000):
        assert process.poll() is None, log.read_text()[-4000:]
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return
        except OSError:
            time.sleep(0.2)
