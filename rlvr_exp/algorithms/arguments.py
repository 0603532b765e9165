"""Arguments common to TRL's configurations, from our nodes: optimizer, schedule, devices. The mapping of names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rlvr_exp.algorithms.parallel_arguments import parallel_arguments
from rlvr_exp.config.load import build


def shared_arguments(config, scratch: Path, dtype: torch.dtype) -> Mapping[str, Any]:
    """Fields common to GRPOConfig and SFTConfig.

    Args:
        scratch: the folder that TRL may write to; we write nothing there.
    """
    optimizer = config.optimizer
    return {
        "output_dir": str(scratch),
        "seed": config.seed,
        "data_seed": config.seed,
        "learning_rate": optimizer.lr,
        "max_grad_norm": optimizer.max_grad_norm,
        **build(config.scheduler).arguments(optimizer.lr, config.algorithm.max_steps),
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "bf16": dtype is torch.bfloat16,
        "gradient_checkpointing": config.model.gradient_checkpointing,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "dataloader_pin_memory": torch.cuda.is_available(),
        "use_cpu": not torch.cuda.is_available(),
        **parallel_arguments(config.parallel),
    }
