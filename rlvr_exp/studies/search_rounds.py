"""A search as it goes: ask for a trial, run it seed by seed, tell how it ended; then the best against the unchanged command.

A trial's first seed is the one that the pruner goes by: it is compared with the same seed of the others, and the trial's
other seeds start once it has come through. Starts nothing itself.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlvr_exp.config import search as options
from rlvr_exp.config.load import resolved
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.search import Dimension, dimensions
from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, GUARD, INTERRUPTED, InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.records.fingerprint import flat
from rlvr_exp.records.summary import STATUS, read_summary
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.studies.contrast import arm_values, level
from rlvr_exp.studies.places import check, fingerprint
from rlvr_exp.studies.study import Job, Rounds, Run, Study
from rlvr_exp.studies.trials import Ended, Trial, Trials

BEST = "best"
UNCHANGED = "default"
"""The arms that are compared once the trials are over."""
TRIAL, PRUNED = "trial_", "PRUNED"
CODES = {STATUS[code]: code for code in (DONE, GUARD, INTERRUPTED, FAULT)}


class SearchJobs(options.Search, Study):
    """The jobs of a search; what they answer is told elsewhere."""

    @property
    def dimensions(self) -> list[Dimension]:
        return dimensions(self.space)

    def trial_jobs(self, number: int, words: Sequence[str], unchanged: bool = False) -> list[Job]:
        """`unchanged`: its words say what the command has without them."""
        name = arm_of(number, unchanged)
        return [replace(job, own=(*words, job.own[-1])) for job in self.arm(name, (*self.trial_words, *words))]

    def confirm_jobs(self, words: Sequence[str]) -> list[Job]:
        return [*self.arm(UNCHANGED, (), self.confirm), *self.arm(BEST, words, self.confirm)]

    def jobs(self) -> list[Job]:
        """For a plan: as many as there are at most, at the cost of the unchanged command."""
        every = [job for number in range(self.trials) for job in self.trial_jobs(number, ())]
        return [replace(job, open=job.arm != UNCHANGED) for job in (*every, *self.confirm_jobs(()))]

    def extremes(self) -> list[Job]:
        """Both ends, or each choice, of every key."""
        words = self.trial_jobs(0, ())[0].words
        return [
            Job(f"space.{one.key}", 0, (*words, one.word(value)), ()) for one in self.dimensions for value in one.values
        ]


def arm_of(number: int, unchanged: bool = False) -> str:
    return f"{TRIAL}{number:03d}{f'_{UNCHANGED}' if unchanged else ''}"


def number_of(arm: str) -> int:
    return int(arm.split("_")[1])


@dataclass
class _Open:
    """A trial that is being run."""

    trial: Trial
    jobs: Sequence[Job]
    given: int = 0
    """How many of them were handed out."""
    runs: list[Run] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(not run.completed for run in self.runs)

    def next(self, scout: bool) -> list[Job]:
        """Its next job, where it may start. `scout`: the first has to come through before."""
        if self.given == len(self.jobs) or self.failed or (scout and self.given == 1 and not self.runs):
            return []
        self.given += 1
        return [self.jobs[self.given - 1]]

    @property
    def over(self) -> bool:
        through = self.given == len(self.jobs) or self.failed or self.trial.pruned
        return through and self.given == len(self.runs)


class SearchRounds(Rounds):
    """
    Raises:
        InputError: a value of the space, or the command, cannot work.
    """

    def __init__(self, study: SearchJobs, root: Path, seed: int):
        self._study, self._root, self._pruning = study, root, study.pruner != "none"
        base = check([*study.trial_jobs(0, ()), *study.extremes()], study.rate)[0]
        self._trials = Trials(study, root, _name(study, base, seed), seed)
        if (values := _default(study, base)) is not None:
            self._trials.begin_with(values)
        self._open = [self._opened(trial) for trial in self._trials.running()]
        self._before: list[Job | Run] = [part for ended in self._trials.ended() for part in self._known(ended)]
        self._confirmed = False
        self.pruned = {arm_of(one.number, one.unchanged) for one in self._trials.ended() if one.state == PRUNED}
        """Arms of trials that were not to go on, though a run of theirs may have completed."""
        self._sizes: dict[Path, int] = {}

    def batch(self) -> Sequence[Job | Run]:
        if self._before:
            before, self._before = self._before, []
            return before
        for one in self._open:
            if jobs := one.next(self._pruning):
                return jobs
        if self._trials.begun < self._study.trials:
            return self._ask()
        if self._open or self._confirmed or not self._study.confirm:
            return ()
        self._confirmed = True
        best = self._trials.best()
        return () if best is None else self._study.confirm_jobs(best)

    def left(self) -> int:
        seeds, trials = len(self._study.seeds), max(0, self._study.trials - self._trials.begun)
        of_open = sum(len(one.jobs) - one.given for one in self._open)
        return trials * seeds + of_open + (0 if self._confirmed else 2 * len(self._study.confirm))

    def refused(self, fault: InputError) -> Sequence[Job | Run]:
        """A trial whose values the configuration refuses together has failed, with the reason."""
        one = self._open[-1] if self._open else None
        if one is None or one.runs or one.given != 1:
            raise fault
        self._open.remove(one)
        one.trial.keep({}, str(fault))
        self._trials.tell(one.trial)
        return [self._refused(one.jobs[0], str(fault))]

    def unwanted(self, running: Mapping[str, Path]) -> Collection[str]:
        for one in self._open if self._pruning else ():
            if (directory := running.get(one.jobs[0].name)) is not None and self._grown(directory):
                self._report(one, directory)
        return [one.jobs[0].name for one in self._open if one.trial.pruned]

    def ended(self, run: Run) -> None:
        one = next((one for one in self._open if run.job in one.jobs), None)
        if one is None:
            return
        one.runs.append(run)
        if self._pruning and run.job == one.jobs[0]:
            self._report(one, run.directory, run.completed)
        if one.over:
            self._close(one)

    def _ask(self) -> Sequence[Job]:
        """The first job of a new trial."""
        self._open.append(self._opened(self._trials.ask()))
        return self._open[-1].next(self._pruning)

    def _opened(self, trial: Trial) -> _Open:
        return _Open(trial, self._study.trial_jobs(trial.number, trial.words, trial.unchanged))

    def _report(self, one: _Open, directory: Path, completed: bool = False) -> None:
        rows, curve = read_metrics(directory), self._study.curve
        values = [(int(row["step"]), float(row[curve])) for row in rows if row.get(curve) is not None]
        if completed and not values:
            raise InputError(_no_curve(curve, rows))
        one.trial.report(values, self._study.pruner_window)

    def _grown(self, directory: Path) -> bool:
        """Whether its metrics have changed since they were looked at."""
        file = directory / "metrics.jsonl"
        size, before = file.stat().st_size if file.exists() else 0, self._sizes.get(directory, 0)
        self._sizes[directory] = size
        return size != before

    def _close(self, one: _Open) -> None:
        self._open.remove(one)
        if one.trial.pruned:
            self.pruned.add(one.jobs[0].arm)
        value = None
        if not (one.trial.pruned or one.failed):
            value = level(arm_values(one.runs, self._study.metric)[one.jobs[0].arm])
        one.trial.keep({str(run.job.seed): os.path.relpath(run.directory, self._root) for run in one.runs})
        self._trials.tell(one.trial, value)

    def _known(self, ended: Ended) -> list[Job | Run]:
        """What a trial of before has run: a completed one's jobs, which are there and else run again."""
        jobs = self._study.trial_jobs(ended.number, ended.words, ended.unchanged)
        if ended.state == "COMPLETE":
            return [*jobs]
        if ended.reason:
            return [self._refused(jobs[0], ended.reason)]
        pruned = ended.state == PRUNED
        return [_there(job, self._root / name, pruned) for job in jobs if (name := ended.runs.get(str(job.seed)))]

    def _refused(self, job: Job, reason: str) -> Run:
        return Run(job, self._root / job.name, BAD_INPUT, {"status": STATUS[BAD_INPUT], "reason": reason})


def _there(job: Job, directory: Path, pruned: bool) -> Run:
    summary = read_summary(directory) or {"status": STATUS[FAULT]}
    code = CODES[str(summary["status"])]
    return Run(job, directory, code, summary, reused=True, pruned=pruned and code != DONE)


def _default(study: SearchJobs, base: Checked) -> dict[str, object] | None:
    """The values that the unchanged command has; None where the space does not hold them all."""
    known = flat(resolved(base))
    values = {one.key: known.get(one.key) for one in study.dimensions}
    return values if all(one.holds(values[one.key]) for one in study.dimensions) else None


def _name(study: SearchJobs, base: Checked, seed: int) -> str:
    """Of all that the value of a trial depends on: a search with other options is another one."""
    space = [[one.key, one.kind, *map(str, one.values)] for one in study.dimensions]
    own = [space, list(study.seeds), study.metric, study.direction, seed]
    return f"search_{content_hash([fingerprint(base), *own])[:12]}"


def _no_curve(curve: str, rows: Sequence[Row]) -> InputProblem:
    known = sorted({name for row in rows for name in row if "success" in name or "reward" in name})
    return InputProblem("study.curve", "no row of the run has it", curve, ", ".join(known), "", "study.pruner=none")
