"""Install the pretended CUDA devices at the start of every Python process whose PYTHONPATH holds this folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import pretend_cuda

pretend_cuda.install()
