"""The Python of the page on solutions does what it says."""

import re
import subprocess
import sys
from pathlib import Path

from program import ENVIRONMENT

PAGE = Path(__file__).parents[2] / "rlvr_exp" / "docs" / "solutions.md"


def test_the_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    added, keys, correct = done.stdout.splitlines()
    assert added == "Added(new=1, duplicates=1, evicted=0)" and len(keys) == 36 and correct == "0"
