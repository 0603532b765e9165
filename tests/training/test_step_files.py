"""A reader who steps through one GRPO step with a debugger enters few files."""

import json
import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
MOST_FILES = 64
"""Files of the package that one step of the quick run may enter. Goal: 45."""
PROGRAM = """
import json, runpy, sys, threading
from pathlib import Path
import rlvr_exp
from rlvr_exp.training.loop import Loop

PACKAGE = str(Path(rlvr_exp.__file__).parent)
entered, update = set(), Loop._update

active = False

def seen(frame, event, arg):
    if active and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
        entered.add((frame.f_code.co_filename[len(PACKAGE) + 1:], frame.f_code.co_qualname))

def profiled(self, step):
    if step != 1:
        return update(self, step)
    global active
    active = True
    sys.setprofile(seen)
    try:
        return update(self, step)
    finally:
        active = False
        sys.setprofile(None)
        Path("entered.json").write_text(json.dumps(sorted(entered)))

Loop._update = profiled
threading.setprofile(seen)  # Of threads that start from now on.
sys.argv = ["rlvr_exp", "+stage=grpo", "+experiment=quick", "run.inline=true", "run.dir=run", "algorithm.max_steps=2",
            "evaluation.tasks=1", "evaluation.samples=1", "run.select.times=0", "cache.enabled=false"]
runpy.run_module("rlvr_exp", run_name="__main__")
"""


def test_one_step_enters_few_files(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=ENVIRONMENT, check=False, capture_output=True, timeout=300
    )
    entered = json.loads((tmp_path / "entered.json").read_text())
    files = {file for file, _ in entered}
    assert {"training/loop.py", "rollouts/sampler.py", "verifiers/python_io.py"} <= files
    assert len(files) <= MOST_FILES, sorted(files)
