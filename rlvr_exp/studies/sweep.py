"""The record of a sweep, beside its jobs. Jobs that differ in nothing but the seed are one arm, pooled by task."""

from collections.abc import Sequence
from pathlib import Path

from rlvr_exp.config.scales import SUCCESS
from rlvr_exp.config.study import BUDGETS
from rlvr_exp.launch.execute import Outcome
from rlvr_exp.studies.compared import AGAINST_FIRST, compared
from rlvr_exp.studies.contrast import measured
from rlvr_exp.studies.record import write_record
from rlvr_exp.studies.study import Findings, Job, Run

SEED = "seed"
OWN = (SEED, "run.dir")
"""Options in which the jobs of an arm may differ."""


def write_study(root: Path, command: Sequence[str], swept: Sequence[Sequence[str]], outcomes: Sequence[Outcome]) -> str:
    """Write the files into `root`; returns what they answer as text.

    Args:
        swept: the words that differ between jobs, for each job; of an interrupted sweep the first have outcomes.
    """
    runs = [_run(words, outcome) for words, outcome in zip(swept, outcomes, strict=False)]
    return write_record(root, "sweep", command, runs, _findings(runs))


def _run(words: Sequence[str], outcome: Outcome) -> Run:
    options = dict(word.lstrip("+~").partition("=")[::2] for word in words)
    arm = ", ".join(word for word in words if word.lstrip("+~").partition("=")[0] not in OWN)
    return Run(Job(arm or "all", options.get(SEED), (), tuple(words)), outcome.directory, outcome.code, outcome.summary)


def _findings(runs: Sequence[Run]) -> Findings | None:
    """None where fewer than two arms were measured: there is nothing to compare."""
    metric = SUCCESS[0]
    if len({run.job.arm for run in runs if measured(run, metric)}) < 2:
        return None
    return compared(runs, runs[0].job.arm, metric, BUDGETS[0], AGAINST_FIRST)
