"""Dafny in a container of the installed podman or docker: the same verdicts, limits that hold inside, nothing left."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dafny_attacks import ATTACKS, OVERLOADS
from dafny_controls import CONTROLS
from dafny_judge import Judge
from dafny_programs import SORT

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.dafny.tool import RunLimits, Server, Tool, find
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.sandbox.tools import Container, ContainerLimits, Image, tree
from rlvr_exp.tasks.formats.fields import Limits

pytestmark = pytest.mark.slow
NAME = os.environ.get("RLVR_DAFNY_IMAGE", "dafny")
ROOMY = ContainerLimits(512)
SLOW = "lemma L(x: int, y: int, z: int) requires x > 2 && y > 2 && z > 2 ensures x*x*x + y*y*y != z*z*z { }"


@pytest.fixture(scope="module")
def tool() -> Tool:
    try:
        return find(image=NAME)
    except InputError as fault:
        pytest.skip(f"NO IMAGE {NAME}: Dafny is not tried in a container; {fault}")


@pytest.fixture(scope="module")
def image(tool: Tool) -> Image:
    assert tool.image is not None
    return tool.image


@pytest.fixture(scope="module")
def contained(tool: Tool) -> Iterator[Judge]:
    sandbox = Sandbox(require="namespaces")
    with DafnyVerifier(sandbox, image=NAME, rlimit=3_000_000, cpu_s=40, wall_s=300, memory_mb=2048) as verifier:
        assert {"files_hidden", "files_read_only", "network", "processes"} <= set(verifier.isolation()["isolated"])
        yield Judge(verifier)


def left(image: Image) -> list[str]:
    words = [image.engine, "ps", "--all", "--filter=name=rlvr-", f"--filter=ancestor={image.id}", "--format={{.Names}}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def said(image: Image, script: str, limits: ContainerLimits = ROOMY) -> str:
    container = Container(image, ["sh", "-c", script], {}, {"own.txt": b"own"}, limits)
    try:
        return container.output.read().decode()
    finally:
        container.end()


def test_no_attack_passes_and_every_control_does(contained: Judge) -> None:
    contained.prefetch([row[-2:] for row in (*ATTACKS, *CONTROLS)])
    outcomes = {name: contained(given, candidate).outcome for _, name, given, candidate in ATTACKS}
    assert {name: one for name, one in outcomes.items() if one not in ("rejected", "failed")} == {}
    assert {name: contained(*pair).outcome for name, *pair in CONTROLS} == {name: "passed" for name, *_ in CONTROLS}


@pytest.mark.parametrize("name", sorted(OVERLOADS))
def test_overload_is_contained(contained: Judge, name: str) -> None:
    assert contained(SORT, OVERLOADS[name], Limits(cpu_s=3)).outcome in ("rejected", "failed")


def test_a_cold_container_each_gives_the_verdicts_of_the_command_line(tool: Tool) -> None:
    rows, before = [row[-2:] for row in (*ATTACKS[::20], *CONTROLS[::8])], set(left(tool.image))
    with DafnyVerifier(Sandbox(), image=NAME, warm=False) as cold, DafnyVerifier(Sandbox(), warm=False) as here:
        for given, candidate in rows:
            there, own = Judge(cold)(given, candidate), Judge(here)(given, candidate)
            assert (there.outcome, there.bucket, there.rule) == (own.outcome, own.bucket, own.rule)
    assert set(left(tool.image)) <= before


@pytest.mark.parametrize(
    ("limits", "end"),
    [(RunLimits(1, 300, 2048), "cpu"), (RunLimits(300, 2, 2048), "wall"), (RunLimits(60, 300, 5), "memory")],
)
def test_a_limit_ends_the_container_and_the_next_program_is_judged(tool: Tool, limits: RunLimits, end: str) -> None:
    before, warm = set(left(tool.image)), Server(tool, tool.words("server", 0))
    try:
        assert warm.run(SLOW, limits, lambda: True).end == end
        assert set(left(tool.image)) <= before
        assert warm.run("lemma L() ensures true { }", RunLimits(60, 300, 2048), lambda: True).verified
    finally:
        warm.close()
    assert set(left(tool.image)) <= before


def test_inside_there_is_no_network_no_file_of_the_machine_and_no_right(image: Image, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    found = said(image, f"cat own.txt; ls /sys/class/net; cat {tmp_path}/mine || echo none; id -u; touch /x || echo ro")
    own, *nets, none, uid, ro = found.split()
    assert (own, none, ro) == ("own" + "lo", "none", "ro") and nets == [] and int(uid) >= 20_000
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = f"{server.getsockname()[1]:04X}"
        assert f":{port} " in Path("/proc/net/tcp").read_text()
        assert f":{port} " not in (seen := said(image, "cat /proc/net/tcp /proc/net/route")) and "sl " in seen
    assert said(image, "grep -E '^Cap(Eff|Bnd)|NoNewPrivs' /proc/self/status").split()[1::2] == ["0" * 16] * 2 + ["1"]


def test_memory_processes_files_and_time_have_limits_inside(image: Image) -> None:
    held = int(said(image, "head -c 300m /dev/zero | tail -c 300m | wc -c", ContainerLimits(64)))
    assert held < 300 << 20, "the kernel ends what holds more"
    assert "16" not in said(image, "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; echo 16", ContainerLimits(64, pids=4))
    assert int(said(image, "head -c 9m /dev/zero > big; wc -c < big", ContainerLimits(64, files_mb=4))) <= 4 << 20
    ended = said(image, "timeout 120 sh -c 'while :; do :; done'; echo $?", ContainerLimits(64, cpu_s=1))
    assert int(ended) - 128 in (signal.SIGKILL, signal.SIGXCPU)


def test_the_end_of_a_container_ends_its_processes(image: Image) -> None:
    container = Container(image, ["sh", "-c", "sleep 600 & sleep 600"], {}, {}, ROOMY)
    deadline = time.monotonic() + 60
    while len(inside := tree(container._inside)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(inside) == 3
    container.end()
    assert [pid for pid in inside if Path(f"/proc/{pid}").exists()] == [] and container.name not in left(image)


def test_nothing_outlives_a_killed_parent(image: Image) -> None:
    code = (
        "import time; from rlvr_exp.sandbox.tools import *\n"
        f"one = Container({image!r}, ['sleep', '600'], {{}}, {{}}, ContainerLimits(64))\n"
        "print(one.name, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    name = parent.stdout.readline().strip()
    assert name in left(image)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while name in left(image) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert name not in left(image)
