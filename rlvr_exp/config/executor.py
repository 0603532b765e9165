"""Options of the `executor` group: where the runs of a study run, and how many at a time."""

from dataclasses import dataclass

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
