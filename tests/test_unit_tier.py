"""The unit tier refuses processes and torch, and its tables name files that exist."""

import subprocess
import sys
from pathlib import Path

import pytest
import unit_tier

HEAVY = {
    "subprocess": "import subprocess; subprocess.Popen(['true'])",
    "fork": "import os; os.fork()",
    "shell": "import os; os.system('true')",
    "multiprocessing": "import multiprocessing; multiprocessing.get_context('spawn').Process().start()",
    "torch": "import torch",
    "torch by name": "import importlib; importlib.import_module('torch')",
    "swallowed": "import os\ntry: os.fork()\nexcept BaseException: pass\nassert not unit_tier.refused",
}
PROBE = "import sys, unit_tier; unit_tier.refuse_heavy_work(); exec(sys.argv[1])"
LIGHT = "import threading, numpy, importlib.util; assert importlib.util.find_spec('torch')"


def _outcome(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROBE, code]
    folder = Path(__file__).parent
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.heavy
@pytest.mark.parametrize("name", HEAVY)
def test_heavy_work_fails(name: str) -> None:
    found = _outcome(HEAVY[name])
    assert found.returncode and ("the unit tier refuses" in found.stderr or "AssertionError" in found.stderr)


@pytest.mark.heavy
def test_other_work_does_not() -> None:
    assert _outcome(LIGHT).returncode == 0


def test_every_entry_of_the_tables_exists() -> None:
    assert unit_tier.absent() == []


def test_a_file_belongs_to_the_tier_by_its_folder_or_its_name_unless_it_is_left_out() -> None:
    folder = Path(__file__).parent
    inside, outside = ["core/test_new.py", "test_files.py"], ["sandbox/test_new.py", "main/test_real_runs.py"]
    assert [unit_tier.holds(folder / name) for name in (*inside, *outside)] == [True, True, False, False]
