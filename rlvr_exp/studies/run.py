"""Runs a study: those of its runs that are not there yet, then its answer.

A run that fails is told and does not stop the others; the study then ends with the worst exit code of its runs.
"""

import json
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.stages import trains
from rlvr_exp.core.errors import (
    BAD_INPUT,
    DONE,
    FAULT,
    GUARD,
    INTERRUPTED,
    GuardStop,
    InputError,
    InputProblem,
    Interrupted,
    RlvrError,
)
from rlvr_exp.core.files import write_text
from rlvr_exp.launch.sweep import worst
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.summary import STATUS, read_summary
from rlvr_exp.studies.executors import Command, Feed
from rlvr_exp.studies.places import Place, check, places
from rlvr_exp.studies.record import write_record
from rlvr_exp.studies.study import Findings, Job, Rounds, Run, Study

PAGE = "| page |\n| --- |\n| [study.html](study.html) |\n"
MEASURED, PRINTED = "measured", "printed"
"""Folders of the measurements that runs share, and of what they print."""


def run_study(config: Config, context: RunContext) -> StageResult:
    study, root = build(config.study), context.directory
    feed = _Runs(study, study.rounds(root, config.seed), context, config.executor.jobs)
    build(config.executor).run(feed, context)
    runs = feed.runs()
    context.metrics = _counts(runs)
    findings, fault = _findings(study, runs)
    command = json.loads((root / manifest.NAME).read_text(encoding="utf-8"))["command"]
    answer = write_record(root, "study", command, runs, findings)
    write_text(root / "study.md", f"{answer}\n\n{PAGE}")
    context.progress(kind="note", text=f"{answer}\nthe study: {root / 'study.html'}")
    _raise_worst(runs)
    if fault is not None:
        raise fault
    return StageResult(metrics=context.metrics)


def _counts(runs: Sequence[Run]) -> dict[str, int]:
    failed, pruned = sum(not (run.completed or run.pruned) for run in runs), sum(run.pruned for run in runs)
    counts = {"runs": len(runs), "reused": sum(run.reused for run in runs), "failed": failed}
    return counts | ({"pruned": pruned} if pruned else {})


class _Runs(Feed):
    """The runs of a study as its executor's commands: looks which are there already, and keeps how each ended."""

    def __init__(self, study: Study, rounds: Rounds, context: RunContext, at_once: int):
        self._rounds, self._reuse, self._metric, self._context = rounds, study.reuse, study.rate, context
        self._waiting, self._running = list[Place](), dict[str, Place]()
        self._runs: dict[str, Run | None] = {}
        """By name, in the order in which they came; None: not ended yet."""
        self._pruned = set[str]()
        self._before = dict[str, Mapping[str, Any] | None]()
        """The summaries that runs began with, of which those that are refused leave theirs as it is."""
        self._progress = _Progress(context, at_once)

    def next(self) -> tuple[str, Command] | None:
        while not self._waiting:
            if not (batch := self._rounds.batch()):
                return None
            self._take(*self._checked(batch))
        place = self._waiting.pop(0)
        self._running[place.job.name] = place
        self._before[place.job.name] = read_summary(place.directory)
        self._progress.began(place, self._left())
        return place.job.name, _command(place, self._context.directory)

    def unwanted(self) -> Collection[str]:
        directories = {name: place.directory for name, place in self._running.items()}
        for name in self._rounds.unwanted(directories):
            if name not in self._pruned:
                self._context.progress(kind="note", text=f"{name}: is stopped, it promises too little")
                self._pruned.add(name)
        return self._pruned

    def ended(self, name: str, code: int) -> None:
        place = self._running.pop(name)
        run = _run(place, code if code in STATUS else FAULT, name in self._pruned, self._before[name])
        self._runs[name] = run
        self._rounds.ended(run)
        self._progress.ended(run, self._left())

    def runs(self) -> list[Run]:
        return [run for run in self._runs.values() if run is not None]

    def _checked(self, batch: Sequence[Job | Run]) -> tuple[Sequence[Job | Run], Sequence[Checked]]:
        """The batch, or what comes in its place, with the configurations of its jobs."""
        try:
            return batch, check(_jobs(batch), self._metric)
        except InputError as fault:
            instead = self._rounds.refused(fault)
            return instead, check(_jobs(instead), self._metric)

    def _take(self, batch: Sequence[Job | Run], checked: Sequence[Checked]) -> None:
        jobs = _jobs(batch)
        found = iter(places(jobs, checked, self._context.directory, self._reuse))
        for one in batch:
            if isinstance(one, Run):
                self._runs[one.job.name] = one
                continue
            place = next(found)
            self._runs[one.name] = _run(place, DONE) if place.reused else None
            if not place.reused:
                self._waiting.append(place)
        there = [run for one in jobs if (run := self._runs[one.name]) is not None]
        counted = f"{len(jobs)} run{'' if len(jobs) == 1 else 's'}"
        if len(jobs) > 1 or there:
            self._context.progress(kind="note", text=f"{counted}, {len(there)} of them there already")
        for run in there:
            self._rounds.ended(run)

    def _left(self) -> int:
        return len(self._waiting) + len(self._running) + self._rounds.left()


def _jobs(batch: Sequence[Job | Run]) -> list[Job]:
    return [one for one in batch if isinstance(one, Job)]


def _command(place: Place, root: Path) -> Command:
    shared = [f"evaluation.remember={root / MEASURED}"] if trains(place.checked.config.stage) else []
    own = (*shared, f"run.dir={place.directory}", "run.resume=auto")
    return Command((*place.job.words, *own), root / PRINTED / f"{place.job.name}.txt")


def _run(place: Place, code: int, pruned: bool = False, before: Mapping[str, Any] | None = None) -> Run:
    summary = read_summary(place.directory)
    if summary is None or (code != DONE and summary == before):
        summary = {"status": STATUS[code]}
    run = Run(place.job, place.directory, code, summary, place.reused, pruned)
    # Its summary is the last that a run writes: it has reached its end, whatever became of its process or was asked of it.
    return replace(run, code=DONE, pruned=False) if run.completed else run


def _findings(study: Study, runs: Sequence[Run]) -> tuple[Findings, InputError | None]:
    """And why there is no answer, where options of the study do not fit what its runs left."""
    if not any(run.completed for run in runs):
        return Findings(["Cannot tell: no run completed."]), None
    try:
        return study.summarise(runs), None
    except InputError as fault:
        why = "; ".join(f"{one.where}: {one.what}" for one in fault.problems)
        return Findings([f"Cannot tell: {why}."]), fault


class _Progress:
    """Says what began and ended, how many are left, and about how long they take."""

    def __init__(self, context: RunContext, at_once: int):
        self._context, self._at_once = context, at_once
        self._begun, self._seconds = dict[str, float](), list[float]()

    def began(self, place: Place, left: int) -> None:
        if not self._begun:
            self._phase(left)
        self._begun[place.job.name] = time.monotonic()
        words = shlex.join(["python", "-m", "rlvr_exp", *place.job.words])
        self._context.progress(kind="note", text=f"{place.job.name}: {words}")

    def ended(self, run: Run, left: int) -> None:
        name = run.job.name
        self._seconds.append(time.monotonic() - self._begun[name])
        how = "pruned" if run.pruned else run.summary.get("status") or f"exit code {run.code}"
        why = f": {run.summary['reason']}" if run.summary.get("reason") and not run.pruned else ""
        shown = f"; {run.directory}" if run.code == DONE or run.pruned else f"; see {PRINTED}/{name}.txt"
        text = f"{name}: {how} in {self._seconds[-1]:.0f} s{why}{shown}{self._time_left(left)}"
        self._context.progress(kind="note", text=text)
        if not self._context.interrupted:  # Else the executor first lets those that are running stop by themselves.
            self._phase(left)

    def _phase(self, left: int) -> None:
        done = len(self._seconds)
        self._context.progress(kind="phase", name="runs", done=done, total=done + left)

    def _time_left(self, left: int) -> str:
        """By the mean of those that ended."""
        if not left:
            return ""
        rounds = left / min(self._at_once, left)
        minutes, seconds = divmod(round(rounds * sum(self._seconds) / len(self._seconds)), 60)
        return f"; {left} left, about {minutes}:{seconds:02d}"


def _raise_worst(runs: Sequence[Run]) -> None:
    """Raises what the worst exit code of the runs stands for; nothing where all completed."""
    failed = {run.job.name: run.code for run in runs if run.code != DONE and not run.pruned}
    if not failed:
        return
    text = f"{len(failed)} of {len(runs)} runs did not complete: {', '.join(failed)}. The same command with run.resume=auto goes on"
    code = worst([*failed.values()])
    if code == BAD_INPUT:
        raise InputError(InputProblem("study", text))
    if code == INTERRUPTED:
        raise Interrupted(text)
    raise GuardStop(text) if code == GUARD else RlvrError(text)
