"""One run on two hosts: network namespaces of this machine, joined by a cable, with one file system."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trajectories
from program import ENVIRONMENT, INTERPRETED

from rlvr_exp.sandbox.tools import tree

ADDRESSES = ("10.213.7.1", "10.213.7.2")
SMALL = [
    *trajectories.STAGES["grpo"],
    "parallel.threads=1",
    "parallel.processes=1",
    "sandbox.workers=1",
    f"parallel.address={ADDRESSES[0]}",
    "parallel.port=29400",
    "parallel.nodes=2",
]
LONG = ["algorithm.max_steps=500", "run.checkpoint.every_steps=1"]
WAIT_S = 180


def shell(line: str) -> bool:
    return subprocess.run(line, shell=True, capture_output=True, check=False).returncode == 0


def alone() -> str:
    """Why there can be no second host here; empty if there can."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return "needs root and the command ip (Debian: iproute2)"
    name = f"rlvr-probe-{os.getpid()}"
    made = shell(f"ip netns add {name}")
    shell(f"ip netns delete {name}")
    return "" if made else "this system makes no network namespaces"


REASON = alone()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=REASON)]


class Host:
    """A host of its own network."""

    def __init__(self, node: int):
        self.node, self.name, self.device = node, f"rlvr{node}-{os.getpid()}", f"rx{node}-{os.getpid()}"

    def start(self, place: Path, *words: str) -> "subprocess.Popen[bytes]":
        """One machine's part of a run; what it prints is in NAME.txt."""
        command = ["ip", "netns", "exec", self.name, *INTERPRETED, *words, f"parallel.node={self.node}"]
        with open(place / f"{self.node}.txt", "wb") as said:
            return subprocess.Popen(
                command, cwd=place, env={**ENVIRONMENT, "OMP_NUM_THREADS": "1"}, stdout=said, stderr=said
            )


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[Host]]:
    pair = [Host(0), Host(1)]
    try:
        for host in pair:
            assert shell(f"ip netns add {host.name} && ip -n {host.name} link set lo up")
        ends = [f"{host.device} netns {host.name}" for host in pair]
        assert shell(f"ip link add {ends[0]} type veth peer name {ends[1]}")
        for host, address in zip(pair, ADDRESSES, strict=True):
            assert shell(f"ip -n {host.name} addr add {address}/24 dev {host.device}")
            assert shell(f"ip -n {host.name} link set {host.device} up")
        yield pair
    finally:
        for host in pair:
            shell(f"ip netns delete {host.name}")


def run(hosts: list[Host], place: Path, *words: str) -> list[int]:
    """Both exit codes."""
    parents = [host.start(place, *words, f"run.dir={place / 'run'}") for host in hosts]
    return [parent.wait(WAIT_S) for parent in parents]


def said(place: Path, node: int = 0) -> str:
    return (place / f"{node}.txt").read_text()


def with_checkpoint(hosts: list[Host], place: Path, *words: str) -> list["subprocess.Popen[bytes]"]:
    """A long run that has written a checkpoint."""
    parents = [host.start(place, *SMALL, *words, *LONG, f"run.dir={place / 'run'}") for host in hosts]
    deadline = time.monotonic() + WAIT_S
    while not (place / "run" / "checkpoints" / "latest").exists():
        assert time.monotonic() < deadline and all(one.poll() is None for one in parents), said(place)
        time.sleep(0.1)
    return parents


def killed(parent: "subprocess.Popen[bytes]") -> None:
    """All processes of a host at once."""
    for pid in tree(parent.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    parent.wait()


@pytest.mark.parametrize("plan", ["ddp", "zero2"])
def test_two_hosts_compute_what_two_processes_of_one_machine_do(plan: str, hosts: list[Host], tmp_path: Path) -> None:
    few = f"data.path={trajectories.data('grpo')}"
    assert run(hosts, tmp_path, *SMALL, few, f"parallel={plan}") == [0, 0], said(tmp_path) + said(tmp_path, 1)
    (tmp_path / "local").mkdir()
    two = [f"parallel={plan}", "parallel.processes=2", "parallel.threads=1", "sandbox.workers=1"]
    local = trajectories.whole(trajectories.program, [*trajectories.STAGES["grpo"], *two], tmp_path / "local")
    differing = trajectories.differences(local, tmp_path / "run")
    assert all(name.endswith("/checkpoint.json") for name in differing), "these name the plan of the processes"
    assert any(name.endswith("/model.safetensors") for name in trajectories.trace(local))


def test_a_host_that_dies_ends_the_run_and_the_checkpoint_is_named(hosts: list[Host], tmp_path: Path) -> None:
    first, second = with_checkpoint(hosts, tmp_path, "parallel=ddp")
    killed(second)
    began = time.monotonic()
    assert first.wait(WAIT_S) == 1 and time.monotonic() - began < 30
    newest = trajectories.link_of(tmp_path / "run", "latest")
    assert (
        f"machine 1 is gone: its connection ended; the newest checkpoint: {tmp_path}/run/checkpoints/{newest}"
        in said(tmp_path)
    )
    assert f"continue with: python -m rlvr_exp run.resume={tmp_path}/run parallel.node=0" in said(tmp_path)
    assert "Traceback" not in said(tmp_path)
    steps = int(str(newest).removeprefix("step_")) + 2
    codes = run(hosts, tmp_path, f"run.resume={tmp_path}/run", f"algorithm.max_steps={steps}")
    assert codes == [0, 0], said(tmp_path) + said(tmp_path, 1)
    assert f"resuming after step {steps - 2}" in said(tmp_path)


def test_the_first_host_dies(hosts: list[Host], tmp_path: Path) -> None:
    first, second = with_checkpoint(hosts, tmp_path, "parallel=ddp")
    killed(first)
    assert second.wait(WAIT_S) == 1
    assert "machine 0 is gone" in said(tmp_path, 1) and "the newest checkpoint" in said(tmp_path, 1)


def test_a_rank_that_dies_is_told_to_the_other_host(hosts: list[Host], tmp_path: Path) -> None:
    first, second = with_checkpoint(hosts, tmp_path, "parallel=ddp")
    [rank] = [pid for pid in tree(second.pid) if b"rlvr_exp.child" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(rank, signal.SIGKILL)
    assert [first.wait(WAIT_S), second.wait(WAIT_S)] == [1, 1]
    assert "machine 1 ended with 1" in said(tmp_path) and "killed by SIGKILL" in said(tmp_path, 1)


def test_a_stop_on_one_host_stops_both_with_a_checkpoint(hosts: list[Host], tmp_path: Path) -> None:
    first, second = with_checkpoint(hosts, tmp_path, "parallel=ddp")
    parent = next(pid for pid in tree(second.pid) if b"rlvr_exp\0" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(parent, signal.SIGTERM)
    assert [first.wait(WAIT_S), second.wait(WAIT_S)] == [130, 130]
    assert "continue with:" in said(tmp_path) and "parallel.node=1" in said(tmp_path, 1)


def test_a_cable_that_is_cut_ends_both(hosts: list[Host], tmp_path: Path) -> None:
    parents = with_checkpoint(hosts, tmp_path, "parallel=ddp")
    try:
        assert shell(f"ip -n {hosts[1].name} link set {hosts[1].device} down")
        assert [one.wait(WAIT_S) for one in parents] == [1, 1]
    finally:
        assert shell(f"ip -n {hosts[1].name} link set {hosts[1].device} up")
    assert "machine 1 is gone: nothing was heard of it for 60 s" in said(tmp_path)
    assert "machine 0 is gone" in said(tmp_path, 1)


def test_hosts_with_other_options_are_refused(hosts: list[Host], tmp_path: Path) -> None:
    words = [*SMALL, "parallel=ddp", f"run.dir={tmp_path / 'run'}"]
    parents = [host.start(tmp_path, *words, f"seed={host.node}") for host in hosts]
    assert [one.wait(WAIT_S) for one in parents] == [2, 2]
    assert all("seed: differs between machine 0 and machine 1" in said(tmp_path, node) for node in (0, 1))
    assert not (tmp_path / "run").exists()
