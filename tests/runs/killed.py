"""A command that dies while it runs, with all that it started."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from program import ENVIRONMENT


def kill_once(command: Sequence[str], place: Path, ready: Callable[[], object]) -> None:
    """Start a command that writes into a folder, kill it (SIGKILL) once `ready`, and wait until nothing of it is left."""
    first = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    assert _within(600, ready), "it never came so far"
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert _within(10, lambda: not alive(place)), alive(place)


def alive(place: Path) -> list[str]:
    """Command lines of the processes that name a folder."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text().replace("\0", " "))
        except OSError:  # It has ended meanwhile.
            continue
    return [line for line in lines if str(place) in line]


def _within(seconds: float, ready: Callable[[], object]) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if ready():
            return True
        time.sleep(0.05)
    return False
