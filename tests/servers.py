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
server = xllamacpp.Server(given)
sys.stdin.read()
"""
VLLM = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


@cache
def python_with(module: str, variable: str) -> str:
    """A Python that imports the module. Skips the test if there is none."""
    python = os.environ.get(variable, sys.executable)
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    if subprocess.run([python, "-c", code]).returncode:
        pytest.skip(f"{python} has no module {module}; {variable} names a Python that has it")
    return python


@contextmanager
def llama_cpp(model: Path, log: Path) -> Iterator[str]:
    """Serve a GGUF file."""
    port = free_port()
    command = [python_with("xllamacpp", "LLAMA_PYTHON"), "-c", LLAMA, str(model), str(port)]
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
    python, port = python_with("vllm", "VLLM_PYTHON"), free_port()
    command = [python, "-m", "vllm.entrypoints.cli.main", "serve", str(model), "--port", str(port)]
    command += [
        "--host",
        "127.0.0.1",
        "--dtype",
        "float32",
        "--enforce-eager",
        "--max-model-len",
        "512",
        "--kv-cache-memory-bytes",
        "64M",
        *words,
    ]
    with _served(command, port, log, VLLM) as url:
        yield url


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _served(command: Sequence[str], port: int, log: Path, more: Mapping[str, str] = {}) -> Iterator[str]:
    """The address of a server, up to /v1, once it is healthy."""
    with log.open("w") as out:
        # A session of its own, since vLLM starts further processes.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True, env={**more, **os.environ}
        )
    try:
        for _ in range(3000):
            assert process.poll() is None, log.read_text()[-4000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, 9)
        process.wait()
