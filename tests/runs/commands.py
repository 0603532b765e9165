"""Studies of real runs by their commands."""

import os
import subprocess
from pathlib import Path

from program import ENVIRONMENT, INTERPRETED


def study(place: Path, *words: str) -> str:
    """Run a study in a folder; returns what it said."""
    command = [*INTERPRETED, "+stage=study", *words, f"run.dir={place}"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def processor_seconds() -> float:
    """Of all processes that this one has started and waited for, and theirs."""
    times = os.times()
    return times.children_user + times.children_system
