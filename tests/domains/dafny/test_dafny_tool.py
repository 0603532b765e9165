"""The tool: a warm process gives the same output as a fresh process, keeps its limits, starts again after a bad start, and
leaves nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dafny_judge import Judge, of_dafny

from rlvr_exp.core.errors import BAD_INPUT, InputError
from rlvr_exp.domains.dafny import logs, tool
from rlvr_exp.domains.dafny.tool import Cold, Resolver, RunLimits, Tool, Warm
from rlvr_exp.sandbox.tools import Lost

ROOMY = RunLimits(60, 300, 2048)
PROVED = "method M(x: int) returns (y: int) requires x > 0 ensures y > 1 { y := x + 1; }"
WRONG = PROVED.replace("x + 1", "x")
LEMMA = "function F(n: nat): nat { if n == 0 then 0 else 1 + F(n - 1) } lemma L(n: nat) ensures F(n) == n { }"
PROGRAMS = [PROVED, WRONG, "method M( {", "method M() { x := 1; }", LEMMA, "", "class C { var x: int }", WRONG]
SLOW = "lemma L(x: int, y: int, z: int) requires x > 2 && y > 2 && z > 2 ensures x*x*x + y*y*y != z*z*z { }"
Mono = Callable[[str], Path]


def always() -> bool:
    return True


@pytest.fixture(scope="module")
def warm(warm_dafny: Tool) -> Iterator[Warm]:
    runner = Warm(warm_dafny, tool.command_words(warm_dafny, 0))
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
        cold = Cold(warm_dafny, [*tool.command_words(warm_dafny, 0), f"/proverLog:{here}"]).run(
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
        "import time; from rlvr_exp.domains.dafny.tool import Warm, command_words, find\n"
        "tool = find(); warm = Warm(tool, command_words(tool, 0)); warm.isolated()\n"
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


@pytest.fixture
def mono(warm_dafny: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mono:
    """Puts a `mono` with these lines before the machine's; `real` in them continues as that one. Returns its folder,
    with a file `started` of a line a start."""
    folder = tmp_path / "path"
    folder.mkdir()
    real = shutil.which("mono")

    def made(lines: str) -> Path:
        path = folder / "mono"
        path.write_text(f'#!/bin/sh\necho >> {folder}/started\nreal() {{ exec {real} "$@"; }}\n{lines}\n')
        path.chmod(0o755)
        monkeypatch.setitem(tool.ENVIRONMENT, "PATH", f"{folder}:{os.environ['PATH']}")
        return folder

    return made


def starts(folder: Path) -> int:
    return len((folder / "started").read_text().splitlines())


def lost(dafny: Tool, **own: float) -> str:
    warm = Warm(dafny, tool.command_words(dafny, 0), **own)
    with pytest.raises(Lost) as fault:
        warm.run(PROVED, [], ROOMY, always)
    assert warm._program is None, "nothing is left behind"
    return str(fault.value)


def test_a_start_that_broke_down_is_tried_again(warm_dafny: Tool, mono: Mono) -> None:
    folder = mono('[ $(wc -l < $(dirname $0)/started) = 1 ] && exit 1; real "$@"')
    warm = Warm(warm_dafny, tool.command_words(warm_dafny, 0))
    try:
        assert warm.run(PROVED, [], ROOMY, always).code == 0
        assert starts(folder) == 2
    finally:
        warm.close()


def test_a_slow_start_has_twice_the_time_once(warm_dafny: Tool, mono: Mono) -> None:
    folder = mono("sleep 600")
    said = lost(warm_dafny, start_s=1)  # Enough to leave its mark on a busy machine.
    assert "not ready after 1 s; then it was not ready after 2 s" in said
    assert starts(folder) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [("Cannot open it", "and said 'Cannot open it'"), ("\\377 9", "and said"), ("", "before it was ready; then")],
)
def test_last_words_of_a_process_that_does_not_start_are_told(
    warm_dafny: Tool, mono: Mono, words: str, told: str
) -> None:
    mono(f"printf '{words}\\n'; exit 1")
    said = lost(warm_dafny)
    assert "broke down before it was ready" in said and told in said


def test_no_start_is_told_before_any_work(mono: Mono) -> None:
    mono("exit 1")
    with of_dafny() as verifier, pytest.raises(InputError, match="does not start") as fault:
        verifier.isolation()
    told = fault.value.problems[0]
    assert "broke down" in told.got and "verifier.warm=false" in told.remedy


def test_the_command_line_ends_with_one_error(mono: Mono, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"id": "a", "program": PROVED, "candidate": PROVED}))
    mono("exit 1")
    env = {**os.environ, "PATH": tool.ENVIRONMENT["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])}
    asked = ["+stage=verify", "verifier=dafny", f"verify.input={source}", f"verify.output={out}", "run.dir=run"]
    command = [sys.executable, "-m", "rlvr_exp", *asked]
    ended = subprocess.run(command, check=False, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == BAD_INPUT, ended.stderr
    assert "Dafny does not start" in ended.stderr and "remedy:" in ended.stderr and "Traceback" not in ended.stderr
    assert not out.exists()


@pytest.mark.slow
def test_process_lost_while_judging_gives_no_verdict_and_the_next_start_judges(mono: Mono) -> None:
    mono('real "$@"')
    with of_dafny() as verifier:
        judge, asked = Judge(verifier), [PROVED + "\n" * number for number in range(3)]
        assert judge(PROVED, asked[0]).outcome == "passed"
        mono("exit 1")
        os.killpg(verifier._all[0]._program.pid, signal.SIGKILL)
        silent = judge(PROVED, asked[1])
        assert silent.outcome == "no_verdict" and "did not start" in silent.log
        mono('real "$@"')
        assert judge(PROVED, asked[2]).outcome == "passed"
        assert judge(PROVED, asked[1]).outcome == "passed", "not remembered"


UNPROVED = """method Up(n: nat) returns (m: nat)
  ensures m == n
{
  m := 0;
  while m < n
  { m := m + 1; }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("warm", [True, False])
def test_the_front_end_alone_tells_what_resolves(dafny: Tool, warm: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not warm:
        monkeypatch.setattr("rlvr_exp.domains.dafny.tool._library", lambda program: "")
    with Resolver() as resolver:
        assert resolver.fault(UNPROVED) == ""
        assert "unresolved identifier: k" in resolver.fault(UNPROVED.replace("m + 1", "k + 1"))
