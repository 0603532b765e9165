"""Running the tool: a warm process gives the same output as a fresh process, keeps its limits, and leaves nothing
behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlvr_exp.domains.dafny import logs
from rlvr_exp.domains.dafny import tool as options
from rlvr_exp.domains.dafny.tool import Cold, RunLimits, Tool, Warm

ROOMY = RunLimits(60, 300, 2048)
PROVED = "method M(x: int) returns (y: int) requires x > 0 ensures y > 1 { y := x + 1; }"
WRONG = PROVED.replace("x + 1", "x")
LEMMA = "function F(n: nat): nat { if n == 0 then 0 else 1 + F(n - 1) } lemma L(n: nat) ensures F(n) == n { }"
PROGRAMS = [PROVED, WRONG, "method M( {", "method M() { x := 1; }", LEMMA, "", "class C { var x: int }", WRONG]
SLOW = "lemma L(x: int, y: int, z: int) requires x > 2 && y > 2 && z > 2 ensures x*x*x + y*y*y != z*z*z { }"


def always() -> bool:
    return True


@pytest.fixture
def warm(warm_dafny: Tool) -> Iterator[Warm]:
    runner = Warm(warm_dafny, options.command_words(warm_dafny, 0))
    yield runner
    runner.close()


def below(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [int(child) for child in found] + [deep for child in found for deep in below(int(child))]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not any(alive(pid) for pid in pids)


@pytest.mark.slow
def test_warm_and_cold_agree_and_the_prover_reads_the_same_bytes(warm: Warm, warm_dafny: Tool, tmp_path: Path) -> None:
    for number, program in enumerate(PROGRAMS):
        here = tmp_path / f"cold{number}.smt2"
        cold = Cold(warm_dafny, [*options.command_words(warm_dafny, 0), f"/proverLog:{here}"]).run(
            program, [], ROOMY, always
        )
        there = f"warm{number}.smt2"
        run = warm.run(program, [f"/proverLog:{there}"], ROOMY, always)
        assert (run.end, run.code) == ("done", cold.code), program
        assert logs.read_23(run.output, run.code).procedures == logs.read_23(cold.output, cold.code).procedures
        written = warm._program.folder / there
        assert (written.read_bytes() if written.exists() else b"") == (here.read_bytes() if here.exists() else b"")


def test_proofs_wait_for_the_word_to_go_on(warm: Warm) -> None:
    assert warm.run(PROVED, [], ROOMY, lambda: False).end == "stopped"
    assert warm.run("method M( {", [], ROOMY, pytest.fail).code == 2
    assert warm.run(PROVED, [], ROOMY, always).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "end"), [(RunLimits(1, 300, 2048), "cpu"), (RunLimits(300, 2, 2048), "wall")])
def test_limit_ends_all_of_it_and_the_next_is_judged(warm: Warm, limits: RunLimits, end: str) -> None:
    warm.run(PROVED, [], ROOMY, always)
    pids = below(warm._program.pid)
    assert pids and warm.run(SLOW, [], limits, always).end == end
    assert gone(pids)
    assert warm.run(PROVED, [], ROOMY, always).code == 0


@pytest.mark.slow
def test_memory_limit_counts_the_prover(warm: Warm) -> None:
    assert warm.run(PROVED, [], RunLimits(60, 300, 1), always).end in ("memory", "done")
    assert warm.run(SLOW, [], RunLimits(60, 300, 5), always).end == "memory"


def test_killed_process_is_a_crash_and_replaced(warm: Warm) -> None:
    warm.run(PROVED, [], ROOMY, always)
    for pid in below(warm._program.pid):
        os.kill(pid, signal.SIGKILL)
    assert warm.run(PROVED, [], ROOMY, always).end == "crash"
    assert warm.run(PROVED, [], ROOMY, always).code == 0


def test_private_folder_goes_with_the_process(warm: Warm) -> None:
    warm.run(PROVED, [], ROOMY, always)
    folder = warm._program.folder
    assert folder.stat().st_mode & 0o077 == 0
    warm.close()
    assert not folder.exists()


def test_nothing_outlives_a_killed_parent(warm_dafny: Tool) -> None:
    code = (
        "import sys, time; from rlvr_exp.domains.dafny import tool as options; from rlvr_exp.domains.dafny.tool import *\n"
        "from rlvr_exp.domains.dafny.tool import find\n"
        "tool = find(); warm = Warm(tool, options.command_words(tool, 0)); warm.isolated()\n"
        "print(warm._program.folder, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    folder = Path(parent.stdout.readline().strip())
    pids = below(parent.pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert len(pids) >= 2 and gone(pids)
    assert gone([]) and not folder.exists()


def test_tool_has_no_network_where_the_kernel_allows_it(warm: Warm) -> None:
    if os.geteuid() != 0:
        pytest.skip("whether an ordinary user may have namespaces depends on the machine")
    assert "network" in warm.isolated()
    inner = below(warm._program.pid)[0]
    assert Path(f"/proc/{inner}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
