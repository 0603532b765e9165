"""A run directory belongs to a single run: a new name, locked while it runs, refused when it holds another."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.records.directory import BEGUN, OWN, claimed, default_directory, fresh, problem_with

NOW = datetime(2026, 1, 2, 3, 4, 5)


def test_default_names_get_a_suffix_when_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = [default_directory("grpo", NOW).as_posix() for _ in range(3)]
    assert made == [f"outputs/2026-01-02/03-04-05_grpo{suffix}" for suffix in ("", "_2", "_3")]


@pytest.mark.parametrize("name", OWN)
def test_what_holds_another_run_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"another run\n.*{name}"), claimed(tmp_path):
        raise AssertionError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "mine"}


def test_a_new_or_empty_folder_is_free(tmp_path: Path) -> None:
    assert problem_with(tmp_path) is None and problem_with(tmp_path / "new" / "deep") is None
    with claimed(tmp_path / "new" / "deep") as directory:
        assert directory.is_dir()
    with claimed(directory):
        pass


def test_resuming_is_a_remedy_where_a_stage_can_be_resumed_alone(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("mine")
    remedies = [problem_with(tmp_path, resumes=resumes).remedy for resumes in (True, False)]
    assert [("run.resume" in remedy, "another run.dir" in remedy) for remedy in remedies] == [
        (True, True),
        (False, True),
    ]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with claimed(tmp_path), pytest.raises(InputError, match="in progress"), claimed(tmp_path):
        raise AssertionError
    with claimed(tmp_path):
        pass


@pytest.mark.heavy
def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    head = "import os; from pathlib import Path; from rlvr_exp.records.directory import claimed"
    code = f"{head}\nwith claimed(Path({str(tmp_path)!r})): os.kill(os.getpid(), 9)"
    ended = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2])
    assert ended.returncode == -9 and (tmp_path / ".lock").exists()
    with claimed(tmp_path):
        pass


def test_a_file_or_an_unwritable_folder_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="not a folder"), claimed(tmp_path / "file"):
        raise AssertionError
    with pytest.raises(InputError, match="cannot be written"), claimed(tmp_path / "file" / "below"):
        raise AssertionError
    with pytest.raises(InputError, match="cannot be written"):
        fresh(tmp_path / "file" / "below", "run")


@pytest.mark.heavy
def test_the_lock_is_not_inherited(tmp_path: Path) -> None:
    with claimed(tmp_path):
        holder = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with claimed(tmp_path):
            assert os.path.exists(tmp_path / ".lock")
    finally:
        holder.communicate(b"\n")


def begun(folder: Path, **summary: object) -> Path:
    """A directory as a run leaves it that failed at its start."""
    folder.mkdir()
    for name in BEGUN:
        (folder / name).write_text("old")
    (folder / "summary.json").write_text(json.dumps({"status": "failed", "steps": 0} | summary))
    return folder


def test_a_run_that_never_started_leaves_its_directory_free(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    assert problem_with(folder) is None
    with claimed(folder):
        assert [path.name for path in folder.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    "kept", ["metrics.jsonl", "evaluation", "mine.txt", "steps", "status", "summary.json", "config.yaml"]
)
def test_what_a_run_did_keeps_its_directory(kept: str, tmp_path: Path) -> None:
    folder = begun(tmp_path / "run", **{"steps": {"steps": 1}, "status": {"status": "interrupted"}}.get(kept, {}))
    if kept in BEGUN:
        (folder / kept).unlink()
    elif "." in kept or kept == "evaluation":
        (folder / kept).write_text("")
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(InputError, match="another run"), claimed(folder):
        raise AssertionError
    assert sorted(path.name for path in folder.iterdir()) == before
