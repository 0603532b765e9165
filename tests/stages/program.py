"""How the tests of this folder start the program: this checkout's, from any folder."""

import os
import sys
from pathlib import Path

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
PROGRAM = [sys.executable, "-m", "rlvr_exp"]
