"""What holds for every test: no network, and one thread a process, since several processes share few cores.

Set before any test imports torch, and in the environment so that child processes have it too.
"""

import os

os.environ.update(
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    WANDB_MODE="offline",
    PIP_NO_INDEX="1",
)
