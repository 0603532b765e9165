"""The process group of the ranks that train together: torch's, and DeepSpeed's if it shards. Imports both late: a run
that trains alone needs neither."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from rlvr_exp.config.parallel import SHARDING, Parallel
from rlvr_exp.core.errors import InputError, InputProblem


@contextmanager
def joined(parallel: Parallel) -> Iterator[None]:
    """Join the process group for as long as the block runs; nothing for a process that trains alone.

    Raises:
        InputError: there is no device for it.
    """
    if not parallel.distributed:
        yield
        return
    import torch.distributed as dist

    dist.init_process_group(_backend(parallel.share_device), timeout=timedelta(seconds=parallel.timeout_s))
    if parallel.strategy in SHARDING:
        _with_deepspeed()
    yield
    # Not after a failure: the others would see this rank leave while it still logs the reason, and end before it.
    dist.destroy_process_group()


def _backend(share: bool) -> str:
    """Select this rank's device. Objects are sent by gloo also if tensors are sent by NCCL, since NCCL takes one
    process per device."""
    import torch

    if not torch.cuda.is_available():
        return "gloo"
    local, there = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= there and not share:
        what, remedy = "more processes than devices", "fewer, or parallel.share_device=true to try it slowly"
        got = os.environ["LOCAL_WORLD_SIZE"]
        raise InputError(InputProblem("parallel.processes", what, got, f"1 to {there}", "", remedy))
    torch.cuda.set_device(local % there)
    if share:  # Accelerate, torch and DeepSpeed take the device of this number, too.
        os.environ["LOCAL_RANK"] = str(local % there)
    return "gloo" if share else "cpu:gloo,cuda:nccl"


def _with_deepspeed() -> None:
    """Initialise DeepSpeed's distributed state: a model loaded in shards needs it before any training."""
    import deepspeed

    # It would look for a compiler, and compile collectives of its own for CPUs at first use; gloo's do.
    deepspeed.ops.__compatible_ops__ = {}
    deepspeed.init_distributed()
    # DeepSpeed calls functions that torch has renamed, thousands of times a step, with a line in the log each.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.distributed\.c10d_logger")
