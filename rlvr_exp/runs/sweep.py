"""Sweeps: one run for every combination of the values in a command.

A sweep is a study without a question, with the same executors and the same files. Jobs that differ only by the seed are one arm,
pooled by task.
"""

import re
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import resumable
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.study import BUDGETS
from rlvr_exp.config.words import nothing_given, unreadable
from rlvr_exp.core.errors import FAULT, INTERRUPTED, InputError, InputProblem, Interrupted
from rlvr_exp.core.measures import SUCCESS
from rlvr_exp.launch.children import SIGNALS
from rlvr_exp.launch.console import unread
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.directory import fresh, problem_with
from rlvr_exp.runs.comparison import AGAINST_FIRST, compared, measured
from rlvr_exp.runs.executors import Command, Executor
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.schedule import Runs, worst
from rlvr_exp.runs.study import Findings, Job, JobRun, Listed, PlacedJob

SEED = "seed"
OWN = (SEED, "run.dir")
"""Options in which the jobs of an arm may differ."""
EXECUTOR = re.compile(r"[+~]*executor\b")
COLUMNS = (
    *("job", "status", "exit", "steps", "seconds"),
    *("pass_at_1 before", "after", "greedy before", "after", "directory"),
)


@dataclass(frozen=True)
class SweepJob:
    """One job of a sweep."""

    words: tuple[str, ...]
    """Its full command line."""
    swept: tuple[str, ...]
    """The words that differ between jobs."""
    checked: Checked


def expand(words: Sequence[str]) -> list[SweepJob]:
    """All jobs of a sweep, checked.

    Raises:
        InputError: with the problems of all jobs.
    """
    parsed, problems = _parse(words)
    choices = {
        override.get_key_element(): _choices(override) for override in parsed
    }  # The last word about a key counts.
    lines = [*product(*choices.values())]
    differing = [len(set(column)) > 1 for column in zip(*lines, strict=True)]
    jobs = []
    for line in lines:
        swept = tuple(word for word, differs in zip(line, differing, strict=True) if differs)
        jobs.append(SweepJob(tuple(line), swept, compose_lenient(line)))
        problems += jobs[-1].checked.problems
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return jobs


def _parse(words: Sequence[str]) -> tuple[list[Override], list[InputProblem]]:
    """The parsed words, and a problem for each word that cannot be parsed."""
    parser, parsed, problems = OverridesParser.create(), [], []
    for place, word in enumerate(words):
        try:
            override = parser.parse_override(word)
            if override.is_sweep_override() and override.is_hydra_override():
                problems.append(InputProblem(word, "cannot be swept over"))
                continue
            if problem := nothing_given(word):
                problems.append(problem)
                continue
            _choices(override)
        except (HydraException, ValueError) as fault:
            problems.append(unreadable(word, fault, words[place - 1] if place else ""))
            continue
        parsed.append(override)
    return parsed, problems


def _choices(override: Override) -> list[str]:
    """The words that an override stands for: one for each of its values.

    Raises:
        HydraException: it has no list of values, such as an interval.
    """
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise HydraException("an interval has no list of values: name them, or use study=search")
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def executor_apart(words: Sequence[str]) -> tuple[list[str], Executor[Any]]:
    """The words of the jobs, and the executor of the sweep. A sweep over studies leaves the executor to each study.

    Raises:
        InputError: options of the executor are wrong.
    """
    own = [] if any(re.match(r"\+stage=.*\bstudy\b", word) for word in words) else [*filter(EXECUTOR.match, words)]
    config = compose(["+stage=study", "study=ablation", *own]).config
    return [word for word in words if word not in own], build(config.executor)


def sweep_directories(jobs: Sequence[SweepJob], now: datetime) -> tuple[Path, list[Path]]:
    """The folder of the sweep's record, and the directory of each job: its run.dir if they all differ, else a folder in their
    shared run.dir or in a new `multirun/DATE/TIME`.

    Raises:
        InputError: a directory contains a run that is not resumed, or only some jobs share a run.dir.
    """
    chosen = [job.checked.config.run.dir for job in jobs]
    apart = len(set(chosen)) == len(chosen) > 1
    if len(set(chosen)) > 1 and not apart:
        remedy = "give all jobs one run.dir, or each its own"
        raise InputError(
            InputProblem("run.dir", "some jobs share it and some do not", ", ".join(chosen), "", "", remedy)
        )
    named = "" if apart else chosen[0]
    root = Path(named) if named else fresh(Path("multirun") / f"{now:%Y-%m-%d}", f"{now:%H-%M-%S}")
    named_by_index = [job_directory(root, index, job.swept) for index, job in enumerate(jobs)]
    directories = [Path(name) for name in chosen] if apart else named_by_index
    if not any(job.checked.config.run.resume for job in jobs):
        resumes = all(resumable(job.checked.config.stage) for job in jobs)
        if taken := [problem for directory in directories if (problem := problem_with(directory, resumes))]:
            raise InputError(*taken)
    return root, directories


def job_directory(root: Path, index: int, swept: Sequence[str]) -> Path:
    """`ROOT/N_overrides`, short, without characters that are special in a shell or in overrides."""
    name = re.sub(r"[^\w.+-]+", "-", "_".join(word.lstrip("+~") for word in swept), flags=re.ASCII)[:100]
    return root / (f"{index}_{name}" if name else str(index))


def run_sweep(
    jobs: Sequence[SweepJob], directories: Sequence[Path], root: Path, executor: Executor[Any], command: Sequence[str]
) -> int:
    """Run all jobs, print their table and write the record into `root`.

    Args:
        command: the command line of the sweep.

    Returns:
        The worst exit code. An interrupted job ends the sweep.

    Raises:
        InputError: the executor cannot run any job.
    """
    context = RunContext(root, _show)
    feed = _SweepRuns(jobs, directories, context, executor.jobs)
    with _stopping(context):
        try:
            executor.run(feed, context)
        except Interrupted:
            feed.interrupted()
    runs = feed.runs()
    codes = [run.code for run in runs]
    if INTERRUPTED in codes or context.interrupted:
        print(f"interrupted: {len(jobs) - len(runs)} jobs were not started", flush=True)
        codes.append(INTERRUPTED)
    print("\n" + table(runs), flush=True)
    try:
        answer = write_record(root, "sweep", command, runs, _findings(runs))
        lines = filter(None, [answer.rstrip("\n"), f"table of the sweep: {root / 'study.html'}"])
        print("", *lines, sep="\n", flush=True)
    except Exception:  # The runs are complete.
        traceback.print_exc()
        codes.append(FAULT)
    return worst(codes)


def _show(event: Mapping[str, Any]) -> None:
    if event["kind"] == "note":
        with unread(sys.stdout):
            print(event["text"], flush=True)


class _SweepRuns(Runs):
    """The jobs of a sweep in their directories."""

    exact = True

    def __init__(self, jobs: Sequence[SweepJob], directories: Sequence[Path], context: RunContext, at_once: int):
        listed = [_listed(index, job) for index, job in enumerate(jobs)]
        super().__init__(Listed(listed), context, at_once, follow=at_once == 1)
        triples = zip(listed, directories, jobs, strict=True)
        self._places = {job: PlacedJob(job, directory, False, one.checked) for job, directory, one in triples}

    def placed(self, batch: Sequence[Job | JobRun]) -> tuple[Sequence[Job | JobRun], list[PlacedJob]]:
        return batch, [self._places[job] for job in batch if isinstance(job, Job)]

    def next(self) -> tuple[str, Command] | None:
        return None if any(run.code == INTERRUPTED for run in self.runs()) else super().next()


def _listed(index: int, job: SweepJob) -> Job:
    options = dict(word.lstrip("+~").partition("=")[::2] for word in job.swept)
    arm = ", ".join(word for word in job.swept if word.lstrip("+~").partition("=")[0] not in OWN)
    words = tuple(word for word in job.words if not word.lstrip("+").startswith("run.dir="))
    return Job(arm or "all", options.get(SEED), words, job.swept, label=job_directory(Path(), index, job.swept).name)


@contextmanager
def _stopping(context: RunContext) -> Iterator[None]:
    """The first signal requests a stop. The second one kills the jobs."""

    def stop(*_: object) -> None:
        if context.interrupted:
            raise KeyboardInterrupt
        context.interrupted = True
        print("stopping after the jobs have saved; press again to kill them", file=sys.stderr, flush=True)

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # As nohup sets it.
    previous = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _findings(runs: Sequence[JobRun]) -> Findings | None:
    """None if fewer than two arms were measured."""
    metric = SUCCESS[0]
    if len({run.job.arm for run in runs if measured(run, metric)}) < 2:
        return None
    return compared(runs, runs[0].job.arm, metric, BUDGETS[0], AGAINST_FIRST)


def table(runs: Sequence[JobRun]) -> str:
    """One row per job, columns aligned."""
    rows: list[Sequence[str]] = [COLUMNS]
    for run in runs:
        figures = (str(run.summary.get(name, "")) for name in ("steps", "seconds"))
        sides = [run.summary.get(side, {}) for side in ("before", "after")]
        rates = [side.get(metric) for metric in ("pass_at_1", "pass_at_1_greedy") for side in sides]
        shown = (f"{rate['value']:.1%}" if rate else "-" for rate in rates)
        rows.append(
            (run.job.text, str(run.summary.get("status", "")), str(run.code), *figures, *shown, str(run.directory))
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
