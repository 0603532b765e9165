"""Run the jobs of a study, a sweep or a chain by an executor, and plan those of a study.

A run that fails is reported and does not stop the others. A study ends with the worst exit code of its runs.
"""

import json
import re
import shlex
import time
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.config.algorithm import ReinforcementLearning
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import Config, trains
from rlvr_exp.config.suited import advice
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
from rlvr_exp.launch.resume import directory_of
from rlvr_exp.records import manifest
from rlvr_exp.records.context import STATUS, RunContext, StageResult, read_summary
from rlvr_exp.runs.executors import Command, Feed
from rlvr_exp.runs.record import write_record
from rlvr_exp.runs.study import Findings, Job, JobRun, PlacedJob, Rounds, Study, check, places

PAGE = "| page |\n| --- |\n| [study.html](study.html) |\n"
MEASURED, PRINTED = "measured", "printed"
"""Folders of the measurements that runs share, and of the lines that they print."""
WORST_FIRST = (INTERRUPTED, FAULT, GUARD, BAD_INPUT, DONE)
"""Many runs end with the worst exit code of theirs; if interrupted, with that code."""


class Runs(Feed):
    """Jobs as commands of an executor, with their directories and their ends.

    Args:
        at_once: how many run at a time.
        follow: report the lines that they print.
    """

    exact = False
    """The exit code of a process counts even if the summary of its run says that it has completed."""

    def __init__(self, rounds: Rounds, context: RunContext, at_once: int = 1, follow: bool = False):
        self._rounds, self._context, self._follow = rounds, context, follow
        self._waiting, self._running = list[PlacedJob](), dict[str, PlacedJob]()
        self._runs: dict[str, JobRun | None] = {}
        """By name, in order; None while the run is in progress."""
        self._pruned = set[str]()
        self._before = dict[str, Mapping[str, Any] | None]()
        """The summaries at the start of each run. A refused run leaves it unchanged."""
        self._read = dict[str, int]()
        """Bytes of the printed lines of each running job that were reported."""
        self._at_once, self._begun, self._seconds = at_once, dict[str, float](), list[float]()

    @abstractmethod
    def placed(self, batch: Sequence[Job | JobRun]) -> tuple[Sequence[Job | JobRun], list[PlacedJob]]:
        """The batch, or its replacement, with the directories of its jobs."""

    def own_words(self, place: PlacedJob) -> tuple[str, ...]:
        """Further words of a job's command."""
        return ()

    def next(self) -> tuple[str, Command] | None:
        while not self._waiting:
            if not (batch := self._rounds.batch()):
                return None
            self._take(batch)
        place = self._waiting.pop(0)
        name = place.job.name
        self._running[name], self._before[name] = place, read_summary(place.directory)
        self._read[name] = self._printed(name).stat().st_size if self._printed(name).exists() else 0
        if not self._begun:
            self._phase()
        self._begun[name] = time.monotonic()
        self._note(f"{name}: {shlex.join(['python', '-m', 'rlvr_exp', *place.job.words])}")
        named = str(place.directory)
        directory = named if re.fullmatch(r"[\w./+ -]+", named) else json.dumps(named, ensure_ascii=False)
        words = (*place.job.words, *self.own_words(place), f"run.dir={directory}")
        return name, Command(words, self._printed(name))

    def unwanted(self) -> Collection[str]:
        self._report_printed()
        directories = {name: place.directory for name, place in self._running.items()}
        for name in self._rounds.unwanted(directories):
            if name not in self._pruned:
                self._note(f"pruned {name} (unpromising)")
                self._pruned.add(name)
        return self._pruned

    def ended(self, name: str, code: int) -> None:
        self._report_printed()
        place = self._running.pop(name)
        run = self._ended(place, code if code in STATUS else FAULT)
        self._runs[name] = run
        self._rounds.ended(run)
        self._seconds.append(time.monotonic() - self._begun[name])
        how = "pruned" if run.pruned else run.summary.get("status") or f"exit code {run.code}"
        why = f": {run.summary['reason']}" if run.summary.get("reason") and not run.pruned else ""
        shown = f"; {run.directory}" if run.code == DONE or run.pruned else f"; see {PRINTED}/{name}.txt"
        time_left = ""
        if left := self._left():
            rounds = left / min(self._at_once, left)
            minutes, seconds = divmod(round(rounds * fmean(self._seconds)), 60)
            time_left = f"; {left} left, about {minutes}:{seconds:02d}"
        self._note(f"{name}: {how} in {self._seconds[-1]:.0f} s{why}{shown}{time_left}")
        if not self._context.interrupted:  # Else the executor first stops the running jobs.
            self._phase()

    def interrupted(self) -> None:
        """All running jobs have stopped."""
        self._report_printed()
        for name, place in self._running.items():
            self._runs[name] = self._ended(place, INTERRUPTED)

    def runs(self) -> list[JobRun]:
        return [run for run in self._runs.values() if run is not None]

    def _take(self, batch: Sequence[Job | JobRun]) -> None:
        batch, found = self.placed(batch)
        of_jobs = {place.job: place for place in found}
        for one in batch:
            if isinstance(one, JobRun):
                self._runs[one.job.name] = one
                continue
            place = of_jobs[one]
            self._runs[one.name] = _run(place, DONE) if place.reused else None
            if not place.reused:
                self._waiting.append(place)
        there = [run for place in found if (run := self._runs[place.job.name]) is not None]
        if len(found) > 1:
            self._note(f"{len(found)} runs, {len(there)} of them there already")
        elif there:
            self._note(f"{there[0].job.name}: completed already, {there[0].directory}")
        for run in there:
            self._rounds.ended(run)

    def _ended(self, place: PlacedJob, code: int) -> JobRun:
        name = place.job.name
        run = _run(place, code, name in self._pruned, self._before[name])
        return replace(run, code=code) if self.exact and code != INTERRUPTED else run

    def _left(self) -> int:
        return len(self._waiting) + len(self._running) + self._rounds.left()

    def _printed(self, name: str) -> Path:
        return self._context.directory / PRINTED / f"{name}.txt"

    def _report_printed(self) -> None:
        """Report the complete lines that running jobs have printed since the last call."""
        for name in self._running if self._follow else ():
            if not self._printed(name).exists():
                continue
            with open(self._printed(name), "rb") as file:
                file.seek(self._read[name])
                lines = file.read()
            lines = lines[: lines.rfind(b"\n") + 1]
            self._read[name] += len(lines)
            for line in lines.decode("utf-8", "replace").splitlines():
                if line.strip():
                    self._note(f"{name}: {line}")

    def _phase(self) -> None:
        done = len(self._seconds)
        self._context.progress(kind="phase", name="runs", done=done, total=done + self._left())

    def _note(self, text: str) -> None:
        self._context.progress(kind="note", text=text)


class _StudyRuns(Runs):
    """The runs of a study. Finished runs are found by fingerprint; measurements before training are shared."""

    def __init__(self, study: Study, rounds: Rounds, context: RunContext, at_once: int):
        super().__init__(rounds, context, at_once)
        self._study = study

    def own_words(self, place: PlacedJob) -> tuple[str, ...]:
        shared = [f"evaluation.remember={self._context.directory / MEASURED}"]
        return (*(shared if trains(place.checked.config.stage) else ()), "run.resume=auto")

    def placed(self, batch: Sequence[Job | JobRun]) -> tuple[Sequence[Job | JobRun], list[PlacedJob]]:
        jobs = [one for one in batch if isinstance(one, Job)]
        try:
            checked = check(jobs, self._study.rate)
        except InputError as fault:
            batch = self._rounds.refused(fault)
            jobs = [one for one in batch if isinstance(one, Job)]
            checked = check(jobs, self._study.rate)
        return batch, places(jobs, checked, self._context.directory, self._study.reuse)


def run_study(config: Config, context: RunContext) -> StageResult:
    study, root = build(config.study), context.directory
    feed = _StudyRuns(study, study.rounds(root, config.seed), context, config.executor.jobs)
    build(config.executor).run(feed, context)
    runs = feed.runs()
    unfinished = sum(not (run.completed or run.pruned) for run in runs)
    context.metrics = {"runs": len(runs), "reused": sum(run.reused for run in runs), "failed": unfinished}
    if pruned := sum(run.pruned for run in runs):
        context.metrics |= {"pruned": pruned}
    findings, fault = Findings(["Cannot tell: no run completed."]), None
    if any(run.completed for run in runs):
        try:
            findings = study.summarise(runs)
        except InputError as error:  # Options of the study do not fit the files of its runs.
            why = "; ".join(f"{one.where}: {one.what}" for one in error.problems)
            findings, fault = Findings([f"Cannot tell: {why}."]), error
    command = json.loads((root / manifest.NAME).read_text(encoding="utf-8"))["command"]
    answer = write_record(root, "study", command, runs, findings)
    write_text(root / "study.md", f"{answer}\n\n{PAGE}")
    context.progress(kind="note", text=f"{answer}\nthe study: {root / 'study.html'}")
    failed = {run.job.name: run.code for run in runs if run.code != DONE and not run.pruned}
    if failed:
        text = f"{len(failed)} of {len(runs)} runs did not complete: {', '.join(failed)}. The same command with run.resume=auto goes on"
        raise stop_of(worst([*failed.values()]), "study", text)
    if fault is not None:
        raise fault
    return StageResult(metrics=context.metrics)


def worst(codes: Sequence[int]) -> int:
    return min(codes, key=WORST_FIRST.index, default=DONE)


def stop_of(code: int, where: str, text: str) -> RlvrError:
    """The error that a bad exit code of a run stands for."""
    if code == BAD_INPUT:
        return InputError(InputProblem(where, text))
    kinds: dict[int, type[RlvrError]] = {INTERRUPTED: Interrupted, GUARD: GuardStop}
    return kinds.get(code, RlvrError)(text)


def _run(place: PlacedJob, code: int, pruned: bool = False, before: Mapping[str, Any] | None = None) -> JobRun:
    summary = read_summary(place.directory)
    if summary is None or (code != DONE and summary == before):
        summary = {"status": STATUS[code]}
    run = JobRun(place.job, place.directory, code, summary, place.reused, pruned)
    # A run writes its summary last: the run is complete, whatever its process did afterwards.
    return replace(run, code=DONE, pruned=False) if run.completed else run


def study_plan(config: Config) -> str:
    """The runs of a study, one line each, and the sum of the missing ones.

    Raises:
        InputError: with every problem of any run.
    """
    study, root = build(config.study), directory_of(config)
    jobs = study.jobs()
    ends = check(study.extremes(), study.rate)
    found = places(jobs, check(jobs, study.rate), root or Path("outputs") / "DATE" / "TIME_study", study.reuse)
    left = [place for place in found if not place.reused]
    wide = max(len(place.job.name) for place in found)
    lines = [f"  {place.job.name:<{wide}}  {_line(place)}" for place in found]
    head = f"study (nothing is run): {len(found)} runs, {len(found) - len(left)} there already"
    advised = dict.fromkeys(
        f"advice: {line}" for one in [*ends, *(place.checked for place in found)] for line in advice(one.config)
    )
    at_once = config.executor.jobs
    last = [
        f"to run, {at_once} at a time: {_counted(left)}; measurements before training that are equal are taken once"
    ]
    known = [float((read_summary(place.directory) or {})["seconds"]) for place in found if place.reused]
    if not known:
        last.append("seconds: not known yet; run.trial=true with the words of a run measures its own")
    elif left:
        last.append(f"about {fmean(known) * len(left) / min(at_once, len(left)):,.0f} s, by the runs that are there")
    return "\n".join([head, *lines, *advised, *last])


def _line(place: PlacedJob) -> str:
    if place.reused:
        return f"there already: {place.directory}"
    drawn = ", with values that are known once it starts" if place.job.open else ""
    return f"{_counted([place])}: {shlex.join(['python', '-m', 'rlvr_exp', *place.job.words])}{drawn}"


def _counted(some: Sequence[PlacedJob]) -> str:
    configs = [place.checked.config for place in some]
    training = [config for config in configs if trains(config.stage)]
    steps, trained, measured = sum(config.algorithm.max_steps for config in training), sum(map(_trained, training)), 0
    for config in configs:  # Before and after training, of a split that is large enough.
        times, evaluation = 2 if trains(config.stage) else config.stage == "evaluate", config.evaluation
        measured += times * evaluation.tasks * (evaluation.samples + evaluation.greedy) if times else 0
    return f"{steps:,} steps on {trained:,} completions, {measured:,} measured"


def _trained(config: Config) -> int:
    """Completions, or reference answers, of all steps."""
    algorithm: Any = config.algorithm
    if isinstance(algorithm, ReinforcementLearning):
        updates = getattr(algorithm, "iterations", 1) * getattr(algorithm, "minibatches", 1)
        return -(-algorithm.max_steps // updates) * algorithm.prompts_per_step * algorithm.group_size
    return algorithm.max_steps * algorithm.batch_size
