"""+stage=view and +stage=index as commands: they start without a child process and write nothing into the runs."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from report_pages import Page
from viewed import runs

from rlvr_exp.config.compose import compose
from rlvr_exp.config.needs import missing_artifacts
from rlvr_exp.core.errors import InputError
from rlvr_exp.main import main


def state(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(tmp_path: Path, number: int) -> None:
    root = runs(tmp_path / "outputs")
    before = state(root)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-m", "rlvr_exp", "+stage=view"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)\?token=[\w-]{32}\n", process.stdout.readline())
    assert address is not None
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    assert b"view.js" in opener.open(address[0].strip()).read()
    deadline = time.monotonic() + 60
    while b'"progress":null' not in (found := opener.open(address[1] + "runs").read()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert b'"samples":536' in found
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    assert "libtorch" not in maps and children == ""
    process.send_signal(number)
    assert process.wait(30) == 0
    assert state(root) == before and [path.name for path in tmp_path.iterdir()] == ["outputs"]


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["+stage=view", f"view.path={tmp_path}", f"view.port={port}"]) == 2
    told = capsys.readouterr().err
    assert "view.port: cannot be used: Address already in use" in told and f"got: {port}" in told


def test_what_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*words: str) -> list[str]:
        return [str(need.problem) for need in missing_artifacts(compose(list(words)).config)]

    assert told("+stage=view", f"view.path={tmp_path}") == told("+stage=index", f"index.path={tmp_path}") == []
    assert "view.path: not there" in told("+stage=view", "view.path=nowhere")[0]
    monkeypatch.setattr("rlvr_exp.config.needs.find_spec", lambda name: None)
    first, _ = told("+stage=view", f"view.path={tmp_path}")
    assert "the package starlette is not installed" in first and "pip install 'rlvr_exp[serve]'" in first


def test_the_overview_lists_all_runs_and_links_their_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = runs(tmp_path / "outputs")
    (root / "first" / "report.html").write_text("the report")
    before = state(root)
    monkeypatch.chdir(tmp_path)
    assert main(["+stage=index"]) == 0
    assert capsys.readouterr().out.endswith("2 runs: outputs/index.html\n")
    page = Page((root / "index.html").read_text())
    (root / "index.html").unlink()
    assert state(root) == before and [path.name for path in tmp_path.iterdir()] == ["outputs"]
    assert [named["href"] for tag, named in page.tags if tag == "a"] == ["first/report.html"]
    for text in ("below/begun", "not finished", "41.7%", "58.3%", "Arc", "3 min 20 s"):
        assert text in page.text, text


@pytest.mark.parametrize("stage", ["view", "index"])
def test_they_run_once_and_are_no_links(stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"+stage={stage}", f"{stage}.path={tmp_path}", "seed=0,1", "--multirun"]) == 2
    assert "drop --multirun" in capsys.readouterr().err
    (tmp_path / "chain").mkdir()
    link = f"_target_: rlvr_exp.runs.chain.run_links\nlinks: {{a: [+stage={stage}, {stage}.path={tmp_path}]}}\n"
    (tmp_path / "chain" / "mine.yaml").write_text(link)
    assert main(["+stage=chain", "chain=mine", f"hydra.searchpath=[{tmp_path}]", f"run.dir={tmp_path / 'run'}"]) == 2
    assert "chain.links.a: has no run directory" in capsys.readouterr().err
    assert main([f"+stage={stage}", f"{stage}.path={tmp_path}", "run.dry=true"]) == 0
    assert "outputs/DATE" not in capsys.readouterr().out and not (tmp_path / "index.html").exists()


@pytest.mark.parametrize("stage", ["view", "index", "doctor"])
def test_a_stage_without_a_run_directory_refuses_one(stage: str) -> None:
    with pytest.raises(InputError, match="run.dir: this stage has no run directory"):
        compose([f"+stage={stage}", "run.dir=x"])
