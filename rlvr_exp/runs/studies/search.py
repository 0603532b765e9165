"""Searches for option values that train best.

The best of many trials is chosen for its figure, which is therefore too good. The answer compares the best trial with the
unchanged command on seeds that no trial had. The pruner compares the first seed of a trial with the same seed of others; the
other seeds start once the first has completed.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.load import resolved
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.study import Dimension, dimensions
from rlvr_exp.core.errors import BAD_INPUT, DONE, FAULT, GUARD, INTERRUPTED, InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.core.measures import Share, scale_of
from rlvr_exp.core.statistics import Estimate
from rlvr_exp.records.context import COMPLETED, STATUS, read_summary
from rlvr_exp.records.manifest import flat
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report.plots import Curve, Drawing, curves, intervals
from rlvr_exp.runs.comparison import Values, Wording, arm_values, budgets, compared, interval, level, measured, unequal
from rlvr_exp.runs.studies.trials import FEWEST, Ended, Importance, Trial, Trials, importances
from rlvr_exp.runs.study import Findings, Job, JobRun, Rounds, Study, check, fingerprint

BEST = "best"
UNCHANGED = "default"
"""The arms that are compared after the trials."""
WINDOW = 10
"""Rows of which the pruner takes the mean: single steps are noisy."""
TRIAL, STATE_PRUNED = "trial_", "PRUNED"
CODES = {STATUS[code]: code for code in (DONE, GUARD, INTERRUPTED, FAULT)}


class SearchJobs(options.Search, Study):
    """The jobs of a search."""

    @property
    def dimensions(self) -> list[Dimension]:
        return dimensions(self.space)

    def trial_jobs(self, number: int, words: Sequence[str], unchanged: bool = False) -> list[Job]:
        """`unchanged`: the words are those of the unchanged command."""
        name = arm_of(number, unchanged)
        return [replace(job, own=(*words, job.own[-1])) for job in self.arm(name, (*self.trial_words, *words))]

    def confirm_jobs(self, words: Sequence[str]) -> list[Job]:
        return [*self.arm(UNCHANGED, (), self.confirm), *self.arm(BEST, words, self.confirm)]

    def jobs(self) -> list[Job]:
        """For a plan: the maximum number of jobs, at the cost of the unchanged command."""
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
    """A trial in progress."""

    trial: Trial
    jobs: Sequence[Job]
    given: int = 0
    """Number of jobs that were handed out."""
    runs: list[JobRun] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(not run.completed for run in self.runs)

    def next(self, scout: bool) -> list[Job]:
        """The next job if it may start. `scout`: the first job must complete before."""
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
        self._before: list[Job | JobRun] = [part for ended in self._trials.ended() for part in self._known(ended)]
        self._confirmed = False
        self.pruned = {arm_of(one.number, one.unchanged) for one in self._trials.ended() if one.state == STATE_PRUNED}
        """Arms of pruned trials. Some of their runs may have completed."""
        self._sizes: dict[Path, int] = {}

    def batch(self) -> Sequence[Job | JobRun]:
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

    def refused(self, fault: InputError) -> Sequence[Job | JobRun]:
        """A trial fails, with the reason, if the configuration refuses its values."""
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

    def ended(self, run: JobRun) -> None:
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
            known = ", ".join(sorted({name for row in rows for name in row if "success" in name or "reward" in name}))
            remedy = "study.pruner=none"
            raise InputError(InputProblem("study.curve", "no row of the run has it", curve, known, "", remedy))
        one.trial.report(values, WINDOW)

    def _grown(self, directory: Path) -> bool:
        """Whether the metrics have grown since the last check."""
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

    def _known(self, ended: Ended) -> list[Job | JobRun]:
        """The runs of an earlier trial. For a completed trial its jobs, which are reused or run again."""
        jobs = self._study.trial_jobs(ended.number, ended.words, ended.unchanged)
        if ended.state == "COMPLETE":
            return [*jobs]
        if ended.reason:
            return [self._refused(jobs[0], ended.reason)]
        pruned = ended.state == STATE_PRUNED
        return [_there(job, self._root / name, pruned) for job in jobs if (name := ended.runs.get(str(job.seed)))]

    def _refused(self, job: Job, reason: str) -> JobRun:
        return JobRun(job, self._root / job.name, BAD_INPUT, {"status": STATUS[BAD_INPUT], "reason": reason})


def _there(job: Job, directory: Path, pruned: bool) -> JobRun:
    summary = read_summary(directory) or {"status": STATUS[FAULT]}
    code = CODES[str(summary["status"])]
    return JobRun(job, directory, code, summary, reused=True, pruned=pruned and code != DONE)


def _default(study: SearchJobs, base: Checked) -> dict[str, object] | None:
    """The values of the unchanged command; None if the space does not contain all of them."""
    known = flat(resolved(base))
    values = {one.key: known.get(one.key) for one in study.dimensions}
    return values if all(one.holds(values[one.key]) for one in study.dimensions) else None


def _name(study: SearchJobs, base: Checked, seed: int) -> str:
    """A name by all options that determine the value of a trial. A search with other options has another name."""
    space = [[one.key, one.kind, *map(str, one.values)] for one in study.dimensions]
    own = [space, list(study.seeds), study.metric, study.direction, seed]
    return f"search_{content_hash([fingerprint(base), *own])[:12]}"


DIFFERENCE = Wording("difference", "the best trial minus the unchanged command", "better", "worse")
PRUNED, FAILED = "pruned", "failed"


@dataclass(frozen=True)
class Tried:
    """A trial and its runs."""

    name: str
    runs: Sequence[JobRun]
    seeds: int
    """Number of runs of a completed trial."""
    pruned: bool

    @property
    def state(self) -> str:
        if any(not (run.completed or run.pruned) for run in self.runs):
            return FAILED
        return COMPLETED if sum(run.completed for run in self.runs) == self.seeds and not self.pruned else PRUNED

    @property
    def params(self) -> Mapping[str, str]:
        """Values by key, as in its words."""
        return dict(word.partition("=")[::2] for word in self.runs[0].job.own[:-1])

    @property
    def shown(self) -> str:
        return ", ".join(f"{key}={_short(text)}" for key, text in self.params.items())


class Search(SearchJobs):
    _rounds: SearchRounds | None = None

    def rounds(self, root: Path, seed: int) -> Rounds:
        self._rounds = SearchRounds(self, root, seed)
        return self._rounds

    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        trials = self._trials(runs)
        done = [trial for trial in trials if trial.state == COMPLETED]
        values = arm_values([run for trial in done for run in trial.runs], self.metric) if done else {}
        levels = {name: level(of) for name, of in values.items()}
        found = importances(self.dimensions, [(self._drawn(one), levels[one.name]) for one in done], self._up)
        fresh = [run for run in runs if run.job.arm in (UNCHANGED, BEST)]
        check = compared(fresh, UNCHANGED, self.metric, self.equal, DIFFERENCE) if self._measured(fresh) else None
        spent = budgets([run for trial in done for run in trial.runs], self.equal) if self.equal != "none" else {}
        counts = {state: sum(trial.state == state for trial in trials) for state in (COMPLETED, PRUNED, FAILED)}
        counted = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        answer = [
            *filter(None, [unequal(spent, self.equal)]),
            *self._answer(done, levels, check),
            f"{len(trials)} {'trial' if len(trials) == 1 else 'trials'}: {counted}.",
            self._important(found, done),
        ]
        rows = [self._row(trial, levels) for trial in trials]
        of_options = [{"option": key, "importance": Share(one.value), "p_holm": one.p} for key, one in found.items()]
        tables: dict[str, Sequence[Mapping[str, Any]]] = {"trials": rows, "importance": of_options}
        plots = self._plots(done, values, levels, found)
        if check is not None:
            tables, plots = {**check.tables, **tables}, {**check.plots, **plots}
        return Findings(answer, {name: table for name, table in tables.items() if table}, plots)

    def _trials(self, runs: Sequence[JobRun]) -> list[Tried]:
        """The trials by number. Reused runs come in another order."""
        pruned = self._rounds.pruned if self._rounds is not None else ()
        of_trials: dict[str, list[JobRun]] = {}
        for run in runs:
            if run.job.arm.startswith(TRIAL):
                of_trials.setdefault(run.job.arm, []).append(run)
        return [
            Tried(name, of_trials[name], len(self.seeds), name in pruned) for name in sorted(of_trials, key=number_of)
        ]

    @property
    def _up(self) -> bool:
        return self.direction == "maximize"

    def _measured(self, fresh: Sequence[JobRun]) -> bool:
        return {run.job.arm for run in fresh if measured(run, self.metric)} == {UNCHANGED, BEST}

    def _drawn(self, trial: Tried) -> dict[str, Any]:
        """The values of a trial."""
        return {one.key: _value(one, trial.params[one.key]) for one in self.dimensions}

    def _best(self, levels: Mapping[str, float]) -> str:
        """The first of equally good trials."""
        return (max if self._up else min)(levels, key=lambda name: levels[name])

    def _answer(self, done: Sequence[Tried], levels: Mapping[str, float], check: Findings | None) -> list[str]:
        if not done:
            return ["Cannot tell: no trial completed."]
        best = next(trial for trial in done if trial.name == self._best(levels))
        figure = f"{scale_of(self.metric).shown(levels[best.name])} {self.metric}"
        others = sum(value == levels[best.name] for value in levels.values()) - 1
        tied = f", which {others} more reached" if others else ""
        chosen = (
            f"The best of {len(done)} completed trials is {best.name} ({best.shown}) with {figure} on the seeds that chose "
            f"it{tied}: too good a figure, since it was chosen for it."
        )
        if check is None:
            return [f"{chosen} {self._unconfirmed(best)}"]
        seeds = ", ".join(map(str, self.confirm))
        first, *more = check.answer
        asked = f"The best trial against the unchanged command, on seeds that no trial had ({seeds})"
        return [f"{asked}: {first}", *more, chosen]

    def _unconfirmed(self, best: Tried) -> str:
        if best.name.endswith(UNCHANGED):
            return "It is the unchanged command: nothing better was found."
        if self.confirm:
            return "Whether it beats the unchanged command is not known: runs that compare them did not complete."
        words = "'study.confirm=[1000,1001,1002]' run.resume=auto"
        how = f"the same command with {words} compares them on seeds that no trial had"
        return f"Whether it beats the unchanged command is not known: {how}."

    def _important(self, found: Mapping[str, Importance], done: Sequence[Tried]) -> str:
        if not found:
            return f"Importance of options: cannot tell from {len(done)} completed trials, it takes {FEWEST}."
        sure = [f"{key} ({one.value:.0%})" for key, one in found.items() if one.sure]
        if not sure:
            return f"Importance of options: of {len(done)} completed trials, none is beyond what chance gives."
        return f"Importance of options beyond what chance gives, {len(sure)} of {len(found)}: {', '.join(sure)}."

    def _row(self, trial: Tried, levels: Mapping[str, float]) -> Mapping[str, Any]:
        row = {"trial": trial.name, "state": trial.state, "seeds": sum(run.completed for run in trial.runs)}
        value = {"value": scale_of(self.metric).share(levels[trial.name])} if trial.name in levels else {}
        return row | value | {key: _short(text) for key, text in trial.params.items()}

    def _plots(
        self,
        done: Sequence[Tried],
        values: Mapping[str, Values],
        levels: Mapping[str, float],
        found: Mapping[str, Importance],
    ) -> dict[str, Drawing]:
        if not done:
            return {}
        percent = scale_of(self.metric).bounded
        points = {name: interval(of, self.metric) for name, of in values.items()}
        numbers = {trial.name: number_of(trial.name) for trial in done}
        so_far = accumulate((levels[trial.name] for trial in done), max if self._up else min)
        best = [(numbers[one.name], Estimate(value, value, value)) for one, value in zip(done, so_far, strict=True)]
        tried = Curve("trials, with 95% intervals", [(numbers[one.name], points[one.name]) for one in done], line=False)
        plots = {
            "history": curves(
                "Trials", [tried, Curve("best so far", best, dots=False)], "trial", self.metric, percent=percent
            )
        }
        for one in self.dimensions:
            if one.kind != "choice":
                drawn = sorted((self._drawn(trial)[one.key], points[trial.name]) for trial in done)
                along = f"{one.key}{', on a logarithmic axis' if one.logarithmic else ''}"
                line = [Curve(one.key, drawn, line=False)]
                plots[f"by_{one.key}"] = curves(one.key, line, along, self.metric, one.logarithmic, percent)
        if found:
            bars = {key: Estimate(*(100 * end for end in (one.value, 0.0, one.value))) for key, one in found.items()}
            plots["importance"] = intervals("Importance of options", bars, "% of that of all")
        return plots


def _value(dimension: Dimension, text: str) -> Any:
    return text if dimension.kind == "choice" else int(text) if dimension.integer else float(text)


def _short(text: str) -> str:
    """A number with four digits."""
    try:
        number = float(text)
    except ValueError:
        return text
    return text if number.is_integer() else f"{number:.4g}"
