"""The page on problems is true: its example runs, and its table names the keys of an answer."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from problem_row import row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "rlvr_exp" / "docs" / "problems.md").read_text()


def test_the_table_names_what_a_row_of_a_problem_has_besides() -> None:
    own = ("stages", "critiques", "tests", "written", "validity", "sample", "pass_rate", "samples", "drawn")
    assert set(own) <= set(row()) and all(f"`{key}`" in PAGE for key in (*own, *row()["tests"][0]) if key != "text")


@pytest.mark.slow
def test_the_python_example_runs(tmp_path) -> None:
    (tmp_path / "example.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(passed|failed) 2 \(\)\nreasoning\n\['size', 'again'\]\n", done.stdout), done.stdout
