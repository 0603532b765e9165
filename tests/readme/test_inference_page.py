"""The page on inference is true: its rows are read, its examples run."""

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
