"""The judge works alone: importing and using a verifier needs neither Hydra nor torch."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("hydra", "omegaconf", "torch", "transformers"):
            raise ImportError(f"{name} must not be imported")

sys.meta_path.insert(0, Refuse())
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.tasks.formats.rows import read_row
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.python_io import PythonIO

row = b'{"id": 1, "code": "def f(x):\\\\n    return x + 1", "entry_point": "f", "cases": [{"args": [1], "expected": 2}]}'
found = read_row(row, "python_io")
with PythonIO(Sandbox(workers=1)) as verifier:
    print(verifier.verify([Request(found.problem, found.candidate)])[0].outcome)
print(len([name for name in sys.modules if name.startswith("rlvr_exp")]))
"""
MOST_MODULES = 90


def test_a_row_is_judged_without_hydra_and_torch(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcome, modules = done.stdout.split()
    assert outcome == "passed" and int(modules) <= MOST_MODULES
