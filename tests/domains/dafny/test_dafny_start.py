"""A warm Dafny that starts badly: one retry, then a clear error; a run under way continues without a verdict."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import BAD_INPUT, InputError
from rlvr_exp.domains.dafny import tool
from rlvr_exp.domains.dafny import tool as options
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.dafny.tool import RunLimits, Tool, Warm
from rlvr_exp.domains.dafny.verifier import DafnyVerifier
from rlvr_exp.sandbox.tools import Lost
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

PROVED = "method M(x: int) returns (y: int) requires x > 0 ensures y > 1 { y := x + 1; }"
ROOMY = RunLimits(60, 300, 2048)
Mono = Callable[[str], Path]


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
    warm = Warm(dafny, options.command_words(dafny, 0), **own)
    with pytest.raises(Lost) as fault:
        warm.run(PROVED, [], ROOMY, lambda: True)
    assert warm._program is None, "nothing is left behind"
    return str(fault.value)


def test_a_start_that_broke_down_is_tried_again(warm_dafny: Tool, mono: Mono) -> None:
    folder = mono('[ $(wc -l < $(dirname $0)/started) = 1 ] && exit 1; real "$@"')
    warm = Warm(warm_dafny, options.command_words(warm_dafny, 0))
    try:
        assert warm.run(PROVED, [], ROOMY, lambda: True).code == 0
        assert starts(folder) == 2
    finally:
        warm.close()


def test_a_slow_start_has_twice_the_time_once(warm_dafny: Tool, mono: Mono) -> None:
    folder = mono("sleep 600")
    said = lost(warm_dafny, start_s=1.5)  # Enough to leave its mark on a busy machine.
    assert "not ready after 1.5 s; then it was not ready after 3 s" in said
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
    with DafnyVerifier(Sandbox(workers=1)) as verifier, pytest.raises(InputError, match="does not start") as fault:
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
    with DafnyVerifier(Sandbox(workers=1), cpu_s=60, wall_s=300, memory_mb=2048) as verifier:
        asked = [Request(DafnyProblem(PROVED), Candidate(PROVED + "\n" * number)) for number in range(3)]
        assert verifier.verify(asked[:1])[0].outcome == "passed"
        mono("exit 1")
        os.killpg(verifier._all[0]._program.pid, signal.SIGKILL)
        silent = verifier.verify(asked[1:2])[0]
        assert silent.outcome == "no_verdict" and "did not start" in silent.log
        mono('real "$@"')
        assert verifier.verify(asked[1:])[1].outcome == "passed"
        assert verifier.verify(asked[1:2])[0].outcome == "passed", "not remembered"
