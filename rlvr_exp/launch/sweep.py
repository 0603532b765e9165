"""Runs the jobs of a sweep sequentially, each as a run of its own, and prints them as a table."""

import re
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, GUARD, INTERRUPTED, InputError, InputProblem, RlvrError
from rlvr_exp.launch.execute import Outcome
from rlvr_exp.records.context import STATUS
from rlvr_exp.records.directory import fresh, problem_with

WORST_FIRST = (INTERRUPTED, FAULT, GUARD, BAD_INPUT, DONE)
"""A sweep ends with the worst exit code of its jobs; an interrupted sweep ends with that code."""
COLUMNS = (
    "job",
    "status",
    "exit",
    "steps",
    "seconds",
    "pass_at_1 before",
    "after",
    "greedy before",
    "after",
    "directory",
)


def job_directory(root: Path, index: int, swept: Sequence[str]) -> Path:
    """`ROOT/N_overrides`, short, and without characters that are special to a shell or to the grammar of overrides."""
    name = re.sub(r"[^\w.+-]+", "-", "_".join(word.lstrip("+~") for word in swept), flags=re.ASCII)[:100]
    return root / (f"{index}_{name}" if name else str(index))


def job_directories(
    chosen: Sequence[str],
    swept: Sequence[Sequence[str]],
    now: datetime,
    resuming: bool = False,
    resumes: bool = True,
) -> list[Path]:
    """A directory for each job: its own run.dir where they all differ, else a folder inside their shared run.dir, or
    inside a new `multirun/DATE/TIME`, which is created. Where jobs are `resuming`, each directory may hold its run
    already; `resumes`: their stages can be resumed.

    Raises:
        InputError: a directory holds a run already, or only some jobs share a run.dir.
    """
    if len(set(chosen)) == len(chosen) > 1:
        directories = [Path(name) for name in chosen]
    elif len(set(chosen)) > 1:
        remedy = "give all jobs one run.dir, or each its own"
        raise InputError(
            InputProblem("run.dir", "some jobs share it and some do not", ", ".join(chosen), "", "", remedy)
        )
    else:
        root = Path(chosen[0]) if chosen[0] else fresh(Path("multirun") / f"{now:%Y-%m-%d}", f"{now:%H-%M-%S}")
        directories = [job_directory(root, index, words) for index, words in enumerate(swept)]
    taken = [] if resuming else [problem for directory in directories if (problem := problem_with(directory, resumes))]
    if taken:
        raise InputError(*taken)
    return directories


def sweep_root(chosen: Sequence[str], directories: Sequence[Path], now: datetime) -> Path:
    """Where the table of a sweep goes: beside its jobs, or into a new `multirun/DATE/TIME` where each has its own run.dir."""
    return (
        directories[0].parent
        if len(set(chosen)) == 1
        else fresh(Path("multirun") / f"{now:%Y-%m-%d}", f"{now:%H-%M-%S}")
    )


def run_all(
    names: Sequence[str],
    directories: Sequence[Path],
    start: Callable[[int], Outcome],
    keep: Callable[[Sequence[Outcome]], str] = lambda _: "",
) -> int:
    """Start each job by its index, whatever the outcome of earlier jobs, print the table of all and keep it.

    Args:
        keep: writes the outcomes of all jobs that were started, and returns what to print.

    Returns:
        The worst of the jobs' exit codes. An interrupted job ends the sweep.
    """
    outcomes: list[Outcome] = []
    for index, name in enumerate(names):
        print(f"\njob {index + 1} of {len(names)}: {name}", flush=True)
        outcomes.append(_one(start, index, directories[index]))
        if outcomes[-1].code == INTERRUPTED:
            print(f"interrupted: {len(names) - index - 1} jobs were not started", flush=True)
            break
    print("\n" + table(names, outcomes), flush=True)
    codes = [outcome.code for outcome in outcomes]
    try:
        print("\n" + keep(outcomes), flush=True)
    except Exception:  # The runs are complete all the same.
        traceback.print_exc()
        codes.append(FAULT)
    return worst(codes)


def _one(start: Callable[[int], Outcome], index: int, directory: Path) -> Outcome:
    try:
        return start(index)
    except RlvrError as fault:
        print(fault, flush=True)
        return Outcome(directory, fault.exit_code, {"status": STATUS[fault.exit_code]})
    except Exception:  # a fault of ours in one job; the others are not its fault
        traceback.print_exc()
        return Outcome(directory, FAULT, {"status": "failed"})


def worst(codes: Sequence[int]) -> int:
    return min(codes, key=WORST_FIRST.index, default=DONE)


def table(names: Sequence[str], outcomes: Sequence[Outcome]) -> str:
    """One row per job, columns aligned."""
    rows = [COLUMNS, *(_row(name, outcome) for name, outcome in zip(names, outcomes, strict=False))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(name: str, outcome: Outcome) -> tuple[str, ...]:
    summary = outcome.summary
    rates = [
        _rate(summary, side, metric) for metric in ("pass_at_1", "pass_at_1_greedy") for side in ("before", "after")
    ]
    figures = (
        str(summary.get("status", "")),
        str(outcome.code),
        str(summary.get("steps", "")),
        str(summary.get("seconds", "")),
    )
    return (name, *figures, *rates, str(outcome.directory))


def _rate(summary: dict[str, Any], side: str, metric: str) -> str:
    rate = summary.get(side, {}).get(metric)
    return f"{rate['value']:.1%}" if rate else "-"
