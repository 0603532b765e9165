"""What holds for every test: no network, a cache of its own, and one thread a process, since several share few cores.

Set before any test imports torch, and in the environment so that child processes have it too.
"""

import atexit
import os
import shutil
import tempfile

CACHE = tempfile.mkdtemp(prefix="cache-of-tests-")
"""Verdicts of tests stay out of the user's cache."""
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
os.environ.update(
    XDG_CACHE_HOME=CACHE,
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    WANDB_MODE="offline",
    PIP_NO_INDEX="1",
)
