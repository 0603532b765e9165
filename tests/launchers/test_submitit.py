"""The submitit launcher: jobs of a sweep as runs of their own, checked before any is submitted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).parents[2] / "launchers" / "submitit_jobs.py"


def submitted(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(LAUNCHER), "--cluster", "local", "--wait", *words]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
def test_every_job_is_a_run_in_its_own_directory(tmp_path: Path) -> None:
    words = ["+stage=verify", "verifier=ast_grep", "verify.input=samples", "verify.max_row_mb=1,2", "run.dir=sweep"]
    done = submitted(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    directories = [Path(line.split(maxsplit=1)[1]) for line in done.stdout.splitlines()]
    assert len(set(directories)) == 2
    for directory in directories:
        assert json.loads((tmp_path / directory / "summary.json").read_text())["status"] == "completed"


def test_nothing_is_submitted_where_a_job_cannot_run(tmp_path: Path) -> None:
    done = submitted(tmp_path, "+stage=grpo", "optimizer.lr=1e-3,-1")
    assert done.returncode == 2 and "optimizer.lr" in done.stderr and not done.stdout
    assert not list(tmp_path.iterdir())
