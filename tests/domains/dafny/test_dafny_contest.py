"""The baseline of Dafny gives right verdicts: beating a wrong baseline would mean nothing."""

import os
import shutil
import subprocess
import time

import pytest

from rlvr_exp.benchmarks.verifiers import in_parallel
from rlvr_exp.domains.dafny import contest
from rlvr_exp.sandbox.isolation.process_tree import Processes


@pytest.mark.skipif(shutil.which("dafny") is None, reason="Dafny is not installed")
@pytest.mark.slow
def test_dafny_programs():
    judge = contest.DafnyProcess(rlimit=20_000_000, wall_s=60)
    programs = [*contest.candidates(0, 2), *contest.unreadable(0, 2)]
    assert in_parallel(judge, programs, 2) == ["passed", "verify", "parse", "resolve"]


def test_a_baseline_that_runs_out_of_time_leaves_nothing_that_goes_on(tmp_path):
    table = Processes()
    command = ["sh", "-c", "sleep 60 & echo $! > pid; wait"]
    with pytest.raises(subprocess.TimeoutExpired):
        contest._output(command, str(tmp_path), 1.0, table)
    started = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 5
    while os.path.exists(f"/proc/{started}") and time.monotonic() < until:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{started}")
