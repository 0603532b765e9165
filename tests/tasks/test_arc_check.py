import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from arc_samples import many, write_folder

from rlvr_exp.tasks.arc import check

COMMAND = [sys.executable, "-m", "rlvr_exp.tasks.arc.check"]


def test_the_command_counts_what_is_there(tmp_path: Path) -> None:
    tasks = list(many(30).items())
    write_folder(tmp_path / "training", dict(tasks[:20]))
    write_folder(tmp_path / "evaluation", dict(tasks[20:]))
    done = subprocess.run([*COMMAND, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "tasks: 30 in 2 families" in lines and "pairs: 30 train, 30 test" in lines
    assert "splits: train=18 dev=2 test=10" in lines
    assert "largest grid: 2 rows, 5 columns" in lines
    assert lines[-2:] == ["prompts that do not read back: 0", "faults: 0"]


def test_faults_are_printed_and_end_with_2(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"train": [], "test": 3}))
    assert check.main([str(tmp_path)]) == 2
    out = capsys.readouterr().out
    assert "a.json, train: no pairs" in out and "a.json, test: no pairs" in out and out.endswith("faults: 2\n")


@pytest.mark.parametrize(
    "damage", [lambda text: text.replace("0", "9", 40), lambda text: text[:20], lambda text: "P\n"]
)
def test_a_prompt_that_loses_its_puzzle_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, damage: Callable[[str], str]
) -> None:
    write_folder(tmp_path, many(3))
    write = check.wording.write
    monkeypatch.setattr(check.wording, "write", lambda puzzle, options: damage(write(puzzle, options)))
    assert check.main([str(tmp_path)]) == 1
    assert "do not read back: 3\n" in capsys.readouterr().out
