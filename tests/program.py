"""How tests start the program: this checkout's, from any folder.

`PROGRAM` is a client of a nursery (`nursery`), whose runs are forks of a process that has imported everything: some
eight seconds less a run than `INTERPRETED`, which is for tests of starting, of imports and of real deaths.
"""

import os
import sys
import tempfile
from pathlib import Path

import nursery

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
INTERPRETED = [sys.executable, "-m", "rlvr_exp"]
SOCKET = Path(tempfile.mkdtemp(prefix="nursery-", dir=os.environ["XDG_CACHE_HOME"])) / "socket"
PROGRAM = [sys.executable, "-I", "-S", str(Path(__file__).with_name("nursery_client.py")), str(SOCKET)]
NURSERY = nursery.start(SOCKET, ENVIRONMENT)
"""Ends with this process, whose pipe it reads."""
