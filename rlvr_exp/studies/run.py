"""Runs a study: those of its runs that are not there yet, then its answer.

A run that fails is told and does not stop the others; the study then ends with the worst exit code of its runs.
"""

import json
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.config import Config, build
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
from rlvr_exp.studies.executors import Command
from rlvr_exp.studies.places import Place, check, places
from rlvr_exp.studies.record import write_record
from rlvr_exp.studies.study import Findings, Run, Study

PAGE = "| page |\n| --- |\n| [study.html](study.html) |\n"
MEASURED, PRINTED = "measured", "printed"
"""Folders of the measurements that runs share, and of what they print."""


def run_study(config: Config, context: RunContext) -> StageResult:
    study, root = build(config.study), context.directory
    jobs = study.jobs()
    found = places(jobs, check(jobs), root, study.reuse)
    reused = sum(place.reused for place in found)
    context.progress(kind="note", text=f"{len(found)} runs, {reused} of them there already")
    progress = _Progress(context, found, config.executor.jobs)
    executor = build(config.executor)
    commands = {place.job.name: _command(place, root) for place in found if not place.reused}
    executor.run(commands, context, progress.began, progress.ended)
    runs = [_run(place, progress.codes.get(place.job.name, DONE)) for place in found]
    context.metrics = {"runs": len(runs), "reused": reused, "failed": sum(not run.completed for run in runs)}
    findings = _findings(study, runs)
    command = json.loads((root / manifest.NAME).read_text(encoding="utf-8"))["command"]
    answer = write_record(root, "study", command, runs, findings)
    write_text(root / "study.md", f"{answer}\n\n{PAGE}")
    context.progress(kind="note", text=f"{answer}\nthe study: {root / 'study.html'}")
    _raise_worst(runs)
    return StageResult(metrics=context.metrics)


def _command(place: Place, root: Path) -> Command:
    own = (f"evaluation.remember={root / MEASURED}", f"run.dir={place.directory}", "run.resume=auto")
    return Command((*place.job.words, *own), root / PRINTED / f"{place.job.name}.txt")


def _run(place: Place, code: int) -> Run:
    summary = read_summary(place.directory) or {"status": STATUS.get(code, STATUS[FAULT])}
    return Run(place.job, place.directory, code, summary, place.reused)


def _findings(study: Study, runs: Sequence[Run]) -> Findings:
    if any(run.completed for run in runs):
        return study.summarise(runs)
    return Findings(["Cannot tell: no run completed."])


class _Progress:
    """Says what began and ended, how many are left, and about how long they take."""

    def __init__(self, context: RunContext, found: Sequence[Place], at_once: int):
        self._context, self._at_once = context, at_once
        self._left = {place.job.name: place for place in found if not place.reused}
        self._total, self._begun, self._seconds = len(self._left), dict[str, float](), list[float]()
        self.codes: dict[str, int] = {}
        context.progress(kind="phase", name="runs", done=0, total=self._total)

    def began(self, name: str) -> None:
        self._begun[name] = time.monotonic()
        words = shlex.join(["python", "-m", "rlvr_exp", *self._left[name].job.words])
        self._context.progress(kind="note", text=f"{name}: {words}")

    def ended(self, name: str, code: int) -> None:
        place, self.codes[name] = self._left.pop(name), code if code in STATUS else FAULT
        self._seconds.append(time.monotonic() - self._begun[name])
        summary: dict[str, Any] = read_summary(place.directory) or {}
        how = summary.get("status") or f"exit code {code}"
        why = f": {summary['reason']}" if summary.get("reason") else ""
        shown = f"; {place.directory}" if code == DONE else f"; see {PRINTED}/{name}.txt"
        text = f"{name}: {how} in {self._seconds[-1]:.0f} s{why}{shown}{self._time_left()}"
        self._context.progress(kind="note", text=text)
        if not self._context.interrupted:  # Else the executor first lets those that are running stop by themselves.
            self._context.progress(kind="phase", name="runs", done=self._total - len(self._left), total=self._total)

    def _time_left(self) -> str:
        """By the mean of those that ended."""
        if not self._left:
            return ""
        rounds = len(self._left) / min(self._at_once, len(self._left))
        minutes, seconds = divmod(round(rounds * sum(self._seconds) / len(self._seconds)), 60)
        return f"; {len(self._left)} left, about {minutes}:{seconds:02d}"


def _raise_worst(runs: Sequence[Run]) -> None:
    """Raises what the worst exit code of the runs stands for; nothing where all completed."""
    failed = {run.job.name: run.code for run in runs if run.code != DONE}
    if not failed:
        return
    text = f"{len(failed)} of {len(runs)} runs did not complete: {', '.join(failed)}. The same command with run.resume=auto goes on"
    code = worst([*failed.values()])
    if code == BAD_INPUT:
        raise InputError(InputProblem("study", text))
    if code == INTERRUPTED:
        raise Interrupted(text)
    raise GuardStop(text) if code == GUARD else RlvrError(text)
