"""A real Ray cluster of several raylets on this machine, whose nodes can be killed one by one."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlvr_exp.launch.children import free_port
from rlvr_exp.sandbox.tools import tree

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs the package ray: pip install 'rlvr_exp[ray]'")
START_S = 60
os.environ["RAY_AUTH_MODE"] = (
    "disabled"  # A token of this user's would be asked of some processes and not be sent by others.
)


@dataclass
class Cluster:
    """Nodes. The first is the head, on which the driver runs."""

    address: str
    folder: str
    nodes: list["subprocess.Popen[bytes]"]
    before: Sequence[str] = ()
    """Of the nodes that a test adds."""

    def kill(self, place: int) -> None:
        """Kill all processes of a node at once, as a power cut does."""
        for pid in tree(self.nodes[place].pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.nodes[place].wait()

    def add(self, *words: str, before: Sequence[str] = (), cpus: int = 1) -> None:
        """Start a node and wait until the cluster has it. `before`: a program that starts it."""
        options = [f"--num-cpus={cpus}", "--object-store-memory=80000000", "--block"]
        command = [*before, sys.executable, "-m", "ray.scripts.scripts", "start", *words, *options]
        paths = os.pathsep.join(filter(None, sys.path))
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": paths}
        with open(Path(self.folder) / f"node{len(self.nodes)}.txt", "wb") as log:
            one = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.nodes.append(one)
        deadline = time.monotonic() + START_S
        text = ""
        while "runtime started" not in text:
            assert one.poll() is None and time.monotonic() < deadline, text
            time.sleep(0.1)
            text = Path(log.name).read_text(errors="replace")


@contextmanager
def cluster(nodes: int = 3, head_cpus: int = 1) -> Iterator[Cluster]:
    """A cluster, and this process without a connection to one before and after."""
    import ray

    folder = tempfile.mkdtemp(prefix="rc")  # Ray's sockets allow only short paths.
    port = free_port()
    made = Cluster(f"{socket.gethostbyname('localhost')}:{port}", folder, [])
    try:
        made.add("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}/t", cpus=head_cpus)
        for _ in range(nodes - 1):
            made.add(f"--address={made.address}")
        yield made
    finally:
        ray.shutdown()
        for place in range(len(made.nodes)):
            made.kill(place)
        shutil.rmtree(folder, ignore_errors=True)
