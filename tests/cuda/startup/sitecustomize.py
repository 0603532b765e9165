"""Install the pretended CUDA devices at the start of every Python process whose PYTHONPATH holds this folder."""

import sys
from pathlib import Path

folder = str(Path(__file__).parents[1])
sys.path.append(folder)
import pretend_cuda  # noqa: E402

sys.path.remove(folder)
pretend_cuda.install()
