"""The page on inference is true: its rows are read, its example runs, its messages exist."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.inference.solution import KEYS
from rlvr_exp.launch.inference_inputs import from_row, row_keys

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "rlvr_exp" / "docs" / "inference.md").read_text()
SOURCE = "".join(path.read_text() for path in (ROOT / "rlvr_exp").rglob("*.py"))
CELLS = [line.split(" | ")[0] for line in PAGE.partition("## When it does not work")[2].splitlines()[4:]]
TROUBLES = [cell for cell in CELLS if "`" in cell]
"""The others point to another page."""
PLACES = re.compile(r"\.\.\.|\b(?:FILE|KEY|NAME)\b|\b[NM]\b")


def fragments(cell: str) -> list[str]:
    """The fixed parts of the messages in a cell, keys and places left out."""
    parts = [part for message in re.findall(r"`([^`]+)`", cell) for part in PLACES.split(message)]
    return [part.rpartition(": ")[2].strip() for part in parts if len(part.rpartition(": ")[2].strip()) > 4]


@pytest.mark.parametrize("cell", TROUBLES)
def test_every_message_exists(cell):
    found = fragments(cell)
    assert found and [part for part in found if part not in SOURCE] == []


@pytest.mark.parametrize("line", re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1].splitlines())
def test_every_row_that_is_shown_can_be_asked(line):
    assert from_row(json.loads(line), Arc()).task.problem


def test_the_tables_name_every_key():
    assert all(f"`{key}`" in PAGE for key in KEYS)
    assert all(f"`{key}`" in PAGE for keys in row_keys().values() for key in keys)


@pytest.mark.slow
def test_the_python_example_runs(tmp_path):
    (tmp_path / "example.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(passed|failed) mirror\nmirror True\nagain True\n", done.stdout)
