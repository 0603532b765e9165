"""The tool: a warm server gives the same results as a fresh process, keeps its limits, starts again after a bad start, and leaves
nothing behind."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dafny_judge import Judge, of_dafny

from rlvr_exp.core.errors import BAD_INPUT, InputError
from rlvr_exp.domains.dafny import tool
from rlvr_exp.domains.dafny.tool import MANUAL_TRIGGERS, REFRESH, Process, Resolver, RunLimits, Runner, Server, Tool
from rlvr_exp.sandbox.tools import Lost

ROOMY = RunLimits(60, 300, 2048)
PROVED = "method M(x: int) returns (y: int) requires x > 0 ensures y > 1 { y := x + 1; }"
WRONG = PROVED.replace("x + 1", "x")
LEMMA = "function F(n: nat): nat { if n == 0 then 0 else 1 + F(n - 1) } lemma L(n: nat) ensures F(n) == n { }"
CLASS = "module A { class C { var x: int constructor (y: int) ensures x == y { x := 0; } } const c: nat := -1 }"
PROGRAMS = [PROVED, WRONG, "method M( {", "method M() { x := 1; }", LEMMA, "", "datatype D = A | B", CLASS, WRONG]
SLOW = """lemma L(x: int, y: int, z: int) requires x > 2 && y > 2 && z > 2 ensures x*x*x + y*y*y != z*z*z { }
method M() { var s := 1; while s < 10 decreases 10 - s { s := s + 1; } }"""


def always() -> bool:
    return True


def server(dafny: Tool, *options: str, rlimit: int = 0, **own: float) -> Server:
    return Server(dafny, [*dafny.words("server", rlimit), *options], **own)


@pytest.fixture(scope="module")
def warm(dafny: Tool) -> Iterator[Server]:
    runner = server(dafny)
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


@pytest.mark.parametrize("program", PROGRAMS)
def test_warm_and_cold_agree(warm: Server, dafny: Tool, program: str) -> None:
    cold = Process(dafny, dafny.words("verify", 0)).run(program, ROOMY, always)
    run = warm.run(program, ROOMY, always)
    assert (run.end, run.proved, run.failed) == (cold.end, cold.proved, cold.failed)
    assert run.errors == cold.errors or run.end == "parse"
    assert run.verified == (program in (PROVED, LEMMA, "", "datatype D = A | B"))


def test_a_process_resolves_without_proofs(dafny: Tool) -> None:
    process = Process(dafny, dafny.words("verify", 0))
    ends = [process.run(program, ROOMY, lambda: False).end for program in (SLOW, PROGRAMS[2], PROGRAMS[3])]
    assert ends == ["stopped", "parse", "resolve"]


def test_a_result_names_declarations_and_places(warm: Server) -> None:
    run = warm.run(f"\n{WRONG}\n{CLASS}", ROOMY, always)
    assert (run.proved, set(run.failed)) == ({}, {"M", "constructor", "c"})
    assert [one.line for one in run.errors] == [2, 3, 3] and run.errors[0].column == WRONG.index("{") + 1
    assert str(run.errors[0]).splitlines() == [
        "line 2: a postcondition could not be proved on this return path",
        "  line 2: this is the postcondition that could not be proved",
    ]


def test_a_runner_keeps_a_server_for_each_set_of_options(dafny: Tool) -> None:
    ghost = "datatype O<T> = N | S(v: T) function F(n: int): O<nat> { if n < 0 then S(n) else S(-1) }"
    loop = "method M(a: array<int>) requires forall i :: 0 <= i < a.Length ==> a[i] > 0 { if a.Length > 0 { assert a[0] > 0; } }"
    with Runner(dafny, 0) as runner:
        runs = [
            runner.run(text, options, ROOMY) for text in (ghost, loop) for options in ((), REFRESH, MANUAL_TRIGGERS)
        ]
        assert len(runner._judges) == 3
    assert [run.end for run in runs] == ["done"] * 6
    assert [run.verified for run in runs[3:]] == [True] * 3


def test_proofs_wait_for_the_word_to_go_on(warm: Server) -> None:
    assert warm.run(SLOW, ROOMY, lambda: False).end == "stopped"
    assert warm.run("method M( {", ROOMY, pytest.fail).end == "parse"
    assert warm.run("method M() { x := 1; }", ROOMY, pytest.fail).end == "resolve"
    run = warm.run(PROVED, ROOMY, always)
    assert run.verified and run.cpu_s < 20, "nothing of the program before goes on"


def test_the_resource_limit_ends_a_proof(dafny: Tool) -> None:
    runner = server(dafny, rlimit=100_000)
    try:
        run = runner.run(SLOW, ROOMY, always)
        assert run.end == "done" and run.exhausted and set(run.failed) == {"L"} and run.proved["M"]
        assert runner.run(PROVED, ROOMY, always).verified
    finally:
        runner.close()


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "end"), [(RunLimits(1, 300, 2048), "cpu"), (RunLimits(300, 2, 2048), "wall")])
def test_limit_ends_all_of_it_and_the_next_is_judged(warm: Server, limits: RunLimits, end: str) -> None:
    warm.run(PROVED, ROOMY, always)
    pids = below(warm._program.pid)
    assert pids and warm.run(SLOW, limits, always).end == end
    assert gone(pids)
    assert warm.run(PROVED, ROOMY, always).verified


@pytest.mark.slow
def test_memory_limit_counts_the_prover(warm: Server) -> None:
    assert warm.run(SLOW, RunLimits(60, 300, 5), always).end == "memory"


def test_killed_process_is_a_crash_and_replaced(warm: Server) -> None:
    warm.run(PROVED, ROOMY, always)
    for pid in below(warm._program.pid):
        with contextlib.suppress(ProcessLookupError):  # it ended with the one before
            os.kill(pid, signal.SIGKILL)
    assert warm.run(PROVED, ROOMY, always).end == "crash"
    assert warm.run(PROVED, ROOMY, always).verified


def test_a_prover_that_does_not_start_is_a_crash_and_no_failed_proof(dafny: Tool, tmp_path: Path) -> None:
    broken = tmp_path / "z3"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = -version ] || [ "$1" = --version ] && echo \'Z3 version 4.12.1 - 64 bit\' && exit\nexit 1\n'
    )
    broken.chmod(0o755)
    run = Runner(dataclasses.replace(dafny, solver=str(broken)), 0, warm=False).run(WRONG, (), ROOMY)
    assert not run.verified and run.end == "crash", run


def test_private_folder_goes_with_the_process(warm: Server) -> None:
    warm.run(PROVED, ROOMY, always)
    folder = warm._program.folder
    assert folder.stat().st_mode & 0o077 == 0
    warm.close()
    assert not folder.exists()


def test_nothing_outlives_a_killed_parent(dafny: Tool) -> None:
    code = (
        "import time; from rlvr_exp.domains.dafny.tool import Server, find\n"
        "tool = find(); warm = Server(tool, tool.words('server', 0)); warm.isolated()\n"
        "print(warm._program.folder, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    folder = Path(parent.stdout.readline().strip())
    pids = below(parent.pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert len(pids) >= 2 and gone(pids)
    assert not folder.exists()


def test_tool_has_no_network_where_the_kernel_allows_it(warm: Server) -> None:
    if os.geteuid() != 0:
        pytest.skip("whether an ordinary user may have namespaces depends on the machine")
    assert "network" in warm.isolated()
    inner = below(warm._program.pid)[0]
    assert Path(f"/proc/{inner}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


Fake = Callable[[str], Tool]


@pytest.fixture
def fake(dafny: Tool, tmp_path: Path) -> Fake:
    """Makes a Dafny that runs these lines of a shell; `real` in them continues as Dafny. A start adds a line to `started`."""

    def made(lines: str) -> Tool:
        path = tmp_path / "dafny"
        head = " ".join(dafny.command)
        path.write_text(f'#!/bin/sh\necho >> {tmp_path}/started\nreal() {{ exec {head} "$@"; }}\n{lines}\n')
        path.chmod(0o755)
        return dataclasses.replace(dafny, command=(str(path),))

    return made


def starts(folder: Path) -> int:
    return len((folder / "started").read_text().splitlines())


def lost(dafny: Tool, **own: float) -> str:
    warm = server(dafny, **own)
    with pytest.raises(Lost) as fault:
        warm.run(PROVED, ROOMY, always)
    assert warm._program is None, "nothing is left behind"
    return str(fault.value)


def test_a_start_that_broke_down_is_tried_again(fake: Fake, tmp_path: Path) -> None:
    warm = server(fake(f'[ $(wc -l < {tmp_path}/started) = 1 ] && exit 1; real "$@"'))
    try:
        assert warm.run(PROVED, ROOMY, always).verified
        assert starts(tmp_path) == 2
    finally:
        warm.close()


def test_a_slow_start_has_twice_the_time_once(fake: Fake, tmp_path: Path) -> None:
    said = lost(fake("sleep 600"), start_s=1)  # Enough to leave its mark on a busy machine.
    assert "not ready after 1 s; then it was not ready after 2 s" in said
    assert starts(tmp_path) == 2


@pytest.mark.parametrize("words", ["Cannot open it", "\\377 9", ""])
def test_last_words_of_a_process_that_does_not_start_are_told(fake: Fake, words: str) -> None:
    said = lost(fake(f"printf '{words}\\n'; exit 1"))
    assert "broke down before it was ready" in said and (not words or "and said" in said)


def test_no_start_is_told_before_any_work(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    found = fake("exit 1")
    monkeypatch.setattr(tool, "find", lambda path, image: found)
    with of_dafny() as verifier, pytest.raises(InputError, match="does not start") as fault:
        verifier.isolation()
    told = fault.value.problems[0]
    assert "broke down" in told.got and "verifier.warm=false" in told.remedy


def test_the_command_line_ends_with_one_error(fake: Fake, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps({"id": "a", "program": PROVED, "candidate": PROVED}))
    own = fake('[ "$1" = --version ] && real "$@"; exit 1').command[0]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    asked = [
        "+stage=verify",
        "verifier=dafny",
        f"verifier.path={own}",
        f"verify.input={source}",
        f"verify.output={out}",
    ]
    command = [sys.executable, "-m", "rlvr_exp", *asked, "run.dir=run"]
    ended = subprocess.run(command, check=False, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == BAD_INPUT, ended.stderr
    assert "Dafny does not start" in ended.stderr and "remedy:" in ended.stderr and "Traceback" not in ended.stderr
    assert not out.exists()


@pytest.mark.slow
def test_process_lost_while_judging_gives_no_verdict_and_the_next_start_judges(fake: Fake, monkeypatch) -> None:
    found = fake('real "$@"')
    monkeypatch.setattr(tool, "find", lambda path, image: found)
    with of_dafny() as verifier:
        judge, asked = Judge(verifier), [PROVED + "\n" * number for number in range(3)]
        assert judge(PROVED, asked[0]).outcome == "passed"
        fake("exit 1")
        for one in verifier._all[0]._judges.values():
            os.killpg(one._program.pid, signal.SIGKILL)
        silent = judge(PROVED, asked[1])
        assert silent.outcome == "no_verdict" and "did not start" in silent.log
        fake('real "$@"')
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


def test_the_front_end_alone_tells_what_resolves(dafny: Tool) -> None:
    with Resolver() as resolver:
        assert resolver.fault(UNPROVED) == ""
        assert "unresolved identifier: k" in resolver.fault(UNPROVED.replace("m + 1", "k + 1"))
