"""Options of the `executor` group: where the runs of a study run, and how many at a time."""

from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.options import configures, option


@dataclass
class Executor:
    """Where runs run."""

    jobs: int = option(1, low=1)
    """Runs at a time."""


@configures("rlvr_exp.studies.executors.Local")
@dataclass
class Local(Executor):
    """On this machine: each run has its share of the cores to itself, where there are as many cores as runs."""


@configures("rlvr_exp.studies.slurm.Slurm")
@dataclass
class Slurm(Executor):
    """Jobs of Slurm, submitted by submitit (an extra: pip install 'rlvr_exp[submitit]'); the study waits for them."""

    parameters: dict[str, Any] = field(default_factory=dict)
    """Parameters of submitit's executor, such as gpus_per_node, timeout_min or slurm_partition."""
    cluster: str = option("slurm", choices=("slurm", "local"))
    """local: submitit runs the jobs on this machine, to try a study's jobs without Slurm."""
