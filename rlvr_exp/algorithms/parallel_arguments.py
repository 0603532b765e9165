"""Arguments of TRL's configurations for several ranks: DeepSpeed's settings, from the `parallel` node."""

import copy
from collections.abc import Mapping
from typing import Any

import torch

from rlvr_exp.config.parallel import SHARDING, Parallel

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
