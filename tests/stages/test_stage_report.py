"""+stage=report: an old run's page is rebuilt by the same code, and no other file of the run is changed."""

import json
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, PROGRAM

from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.report import write_report


def started(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "+stage=report", *words],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run that was killed in its third step: no summary, an incomplete row."""
    run = tmp_path / "killed"
    run.mkdir()
    (run / "config.yaml").write_text("stage: grpo\nseed: 0\nalgorithm: {max_steps: 9}\noptimizer: {lr: 0.0006}\n")
    rows = [{"step": step, "loss": 0.1, "grad_norm": 0.2, "learning_rate": 0.0} for step in (1, 2)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step": 3, "lo')
    return run


def test_the_page_of_a_killed_run(killed: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in killed.iterdir()}
    done = started(tmp_path, f"report.run={killed}", "run.dir=own")
    assert done.returncode == 0, done.stderr
    page = (killed / "report.html").read_bytes()
    assert {path.name: path.read_bytes() for path in killed.iterdir() if path.name != "report.html"} == before
    assert "Zero learning rate in 2 of 2" in done.stdout and f"report: {killed / 'report.html'}" in done.stdout
    summary = json.loads((tmp_path / "own" / "summary.json").read_text())
    assert summary["metrics"]["causes"] == 1 and summary["metrics"]["outcome"] == "unknown"
    assert not (tmp_path / "own" / "report.html").exists(), "a report is of another run"
    write_report(killed)
    assert (killed / "report.html").read_bytes() == page, "the same code as at the end of a run"


def test_it_writes_into_the_run_that_it_is_of_and_nowhere_else(killed: Path, tmp_path: Path) -> None:
    before = {path.name for path in killed.iterdir()}
    done = started(tmp_path, f"report.run={killed}")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in killed.iterdir()} == before | {"report.html"}
    assert [path.name for path in tmp_path.iterdir()] == ["killed"], "no folder of its own"
    assert "run directory" not in done.stdout and done.stdout.endswith(f"completed: {killed / 'report.html'}\n")
    (killed / "manifest.json").write_text("{[")
    refused = started(tmp_path, f"report.run={killed}")
    assert refused.returncode == 2 and "manifest.json: cannot be read" in refused.stderr
    assert {path.name for path in killed.iterdir()} == before | {"report.html", "manifest.json"}


def test_what_is_missing_is_told() -> None:
    def told(*words: str) -> list[str]:
        return [need.problem.where for need in missing_artifacts(compose(["+stage=report", *words]).config)]

    assert told() == ["report.run"]
    assert told("report.run=nowhere", "report.beside=[nowhere]") == ["report.run", "report.beside"]
