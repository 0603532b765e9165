"""How tests start the program: this checkout's, from any folder.

`PROGRAM` is a client of a nursery (`nursery`), whose runs are forks of a process that has imported everything: some
eight seconds less a run than `INTERPRETED`, which is for tests of starting, of imports and of real deaths.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nursery

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
INTERPRETED = [sys.executable, "-m", "rlvr_exp"]
SOCKET = Path(tempfile.mkdtemp(prefix="nursery-", dir=os.environ["XDG_CACHE_HOME"])) / "socket"
PROGRAM = [sys.executable, "-I", "-S", str(Path(__file__).with_name("nursery_client.py")), str(SOCKET)]
NURSERY = nursery.start(SOCKET, ENVIRONMENT)
"""Ends with this process, whose pipe it reads."""


def run_program(folder: Path, *words: str, timeout: float = 600, **more: Any) -> subprocess.CompletedProcess[str]:
    """The program in a folder, to its end."""
    command = [*PROGRAM, *words]
    given = {"env": ENVIRONMENT} | more
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False, **given)


def json_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def metrics_of(run: Path) -> list[dict[str, Any]]:
    """The rows of metrics of a run."""
    return json_rows(run / "metrics.jsonl")
