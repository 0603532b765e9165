"""A long run opens in two seconds and stays below 300 MB: a million samples with --all, otherwise a tenth."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from thinning import EVERY

SAMPLES = 1_000_000 if EVERY else 100_000


@pytest.mark.slow
def test_a_long_run(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("million.py")), str(tmp_path), str(SAMPLES)]
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tests.parent}:{tests}"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    print(printed)
    found = {line[:34].strip(): float(line[34:]) for line in printed.splitlines()}
    assert found["memory in MB"] < 300
    slow = {
        name: value for name, value in found.items() if "MB" not in name and name != "build the index" and value > 2
    }
    assert slow == {}
