"""The check of ARC data: its counts, and what is at fault."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from arc_samples import many, write_folder
from makers import made

from rlvr_exp.core.errors import GuardStop, InputError
from rlvr_exp.domains.arc import tasks


def test_what_is_there_is_counted(tmp_path: Path) -> None:
    given = list(many(30).items())
    write_folder(tmp_path / "data" / "training", dict(given[:20]))
    write_folder(tmp_path / "data" / "evaluation", dict(given[20:]))
    text, counts = made(tmp_path, "arc_check", f"prepare.path={tmp_path}/data")
    lines = text.splitlines()
    assert "tasks: 30 in 2 families" in lines and "pairs: 30 train, 30 test" in lines
    assert "splits: train=18 dev=2 test=10" in lines and counts == {"tasks/train": 18, "tasks/dev": 2, "tasks/test": 10}
    assert "largest grid: 2 rows, 5 columns" in lines
    assert lines[-1] == "prompts that do not read back: 0"


def test_faults_are_bad_input(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"train": [], "test": 3}))
    with pytest.raises(InputError) as found:
        made(tmp_path, "arc_check", f"prepare.path={tmp_path}")
    assert "a.json, train: no pairs" in str(found.value) and "a.json, test: no pairs" in str(found.value)


@pytest.mark.parametrize(
    "damage", [lambda text: text.replace("0", "9", 40), lambda text: text[:20], lambda text: "P\n"]
)
def test_a_prompt_that_loses_its_puzzle_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[str], str]
) -> None:
    write_folder(tmp_path / "data", many(3))
    write = tasks.wording.write
    monkeypatch.setattr(tasks.wording, "write", lambda puzzle, options: damage(write(puzzle, options)))
    with pytest.raises(GuardStop, match="do not read back: 3\n"):
        made(tmp_path, "arc_check", f"prepare.path={tmp_path}/data")
