"""Arguments common to TRL's configurations, from our nodes: optimizer, schedule, devices. The mapping of names."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from rlvr_exp.config.load import build
from rlvr_exp.config.parallel import SHARDING, Parallel


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


AUTO = (
    "train_micro_batch_size_per_gpu",
    "train_batch_size",
    "gradient_accumulation_steps",
    "gradient_clipping",
)
"""Settings that the trainer fills in from its own."""
HOST = {"device": "cpu", "pin_memory": True}


def parallel_arguments(parallel: Parallel) -> dict[str, Any]:
    """Fields common to GRPOConfig and SFTConfig; none for a single process."""
    if not parallel.distributed:
        return {}
    arguments: dict[str, Any] = {"ddp_timeout": parallel.timeout_s}
    if parallel.strategy in SHARDING:
        arguments["deepspeed"] = deepspeed_settings(parallel)
    return arguments


def deepspeed_settings(parallel: Parallel) -> dict[str, Any]:
    """DeepSpeed's configuration: the node's settings, and those that follow from them."""
    settings: dict[str, Any] = copy.deepcopy(dict(parallel.deepspeed))
    zero = settings.setdefault("zero_optimization", {})
    zero["stage"] = SHARDING[parallel.strategy]
    if parallel.offload:
        host: Mapping[str, Any] = {**HOST, "pin_memory": torch.cuda.is_available()}
        zero |= {"offload_optimizer": dict(host), "offload_param": dict(host)}
    # Optimizers are built by the optimizer group and not by DeepSpeed, which would not know ours by name.
    settings |= {"zero_allow_untested_optimizer": True, "bf16": {"enabled": "auto"}}
    return {**settings, **dict.fromkeys(AUTO, "auto")}
