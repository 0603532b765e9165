"""The examples of the README and of the page on verification are true."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr_exp.records.resumable_jsonl import KEYS
from rlvr_exp.tasks.formats.rows import CandidateRow, read_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "rlvr_exp" / "docs" / "verifiers.md").read_text()
SHOWN = [line for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
FORMAT = {"tests": "pytest", "program": "dafny", "action": "ast_grep"}


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_the_readme_judges_a_file(tmp_path):
    readme = (ROOT / "README.md").read_text()
    text = re.search(r"<!-- run: verify -->(.*?)<!-- end -->", readme, re.DOTALL)[1]
    given, told = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "in.jsonl").write_text(given)
    words = re.search(r"`python -m (.*?)`", text)[1].split()
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    for row, shown in zip(rows, map(json.loads, told.splitlines()), strict=True):
        assert row | shown == row and set(KEYS) - set(shown) == {"seconds", "cached", "log"}
    assert f"`{rows[1]['log']}`" in text


@pytest.mark.parametrize("line", SHOWN)
def test_every_row_that_is_shown_can_be_read(line):
    kind = next((kind for key, kind in FORMAT.items() if key in json.loads(line)), "python_io")
    assert isinstance(read_row(line.encode(), kind), CandidateRow)


def test_the_python_example_runs(tmp_path):
    (tmp_path / "example.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['passed', 'failed']", "0 passed True", "1 failed True"]
