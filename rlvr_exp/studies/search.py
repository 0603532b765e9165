"""Which values of some options train best. The best of many trials was chosen for its figure, which is therefore too good:
the answer is what the best and the unchanged command reach on seeds that no trial had.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from rlvr_exp.config.scales import scale_of
from rlvr_exp.config.search import Dimension
from rlvr_exp.core.statistics import Estimate
from rlvr_exp.records.context import COMPLETED
from rlvr_exp.report.plots import Curve, Drawing, curves, intervals
from rlvr_exp.studies.budget import budgets, unequal
from rlvr_exp.studies.compared import Wording, compared
from rlvr_exp.studies.contrast import Values, arm_values, interval, level, measured
from rlvr_exp.studies.importance import FEWEST, Importance, importances
from rlvr_exp.studies.search_rounds import BEST, TRIAL, UNCHANGED, SearchJobs, SearchRounds, number_of
from rlvr_exp.studies.study import Findings, Rounds, Run

DIFFERENCE = Wording("difference", "the best trial minus the unchanged command", "better", "worse")
PRUNED, FAILED = "pruned", "failed"


@dataclass(frozen=True)
class Tried:
    """A trial by its runs."""

    name: str
    runs: Sequence[Run]
    seeds: int
    """How many runs it has where it completes."""
    pruned: bool

    @property
    def state(self) -> str:
        if any(not (run.completed or run.pruned) for run in self.runs):
            return FAILED
        return COMPLETED if sum(run.completed for run in self.runs) == self.seeds and not self.pruned else PRUNED

    @property
    def params(self) -> Mapping[str, str]:
        """By key, as its words have them."""
        return dict(word.partition("=")[::2] for word in self.runs[0].job.own[:-1])

    @property
    def shown(self) -> str:
        return ", ".join(f"{key}={_short(text)}" for key, text in self.params.items())


class Search(SearchJobs):
    _rounds: SearchRounds | None = None

    def rounds(self, root: Path, seed: int) -> Rounds:
        self._rounds = SearchRounds(self, root, seed)
        return self._rounds

    def summarise(self, runs: Sequence[Run]) -> Findings:
        trials = self._trials(runs)
        done = [trial for trial in trials if trial.state == COMPLETED]
        values = arm_values([run for trial in done for run in trial.runs], self.metric) if done else {}
        levels = {name: level(of) for name, of in values.items()}
        found = importances(self.dimensions, [(self._drawn(one), levels[one.name]) for one in done], self._up)
        fresh = [run for run in runs if run.job.arm in (UNCHANGED, BEST)]
        check = compared(fresh, UNCHANGED, self.metric, self.equal, DIFFERENCE) if self._measured(fresh) else None
        answer = [
            *self._fair(done),
            *self._answer(done, levels, check),
            _counted(trials),
            *self._important(found, done),
        ]
        rows = [self._row(trial, levels) for trial in trials]
        of_options = [{"option": key, "importance": one.value, "p_holm": one.p} for key, one in found.items()]
        tables: dict[str, Sequence[Mapping[str, Any]]] = {"trials": rows, "importance": of_options}
        plots = self._plots(done, values, levels, found)
        if check is not None:
            tables, plots = {**check.tables, **tables}, {**check.plots, **plots}
        return Findings(answer, {name: table for name, table in tables.items() if table}, plots)

    def _trials(self, runs: Sequence[Run]) -> list[Tried]:
        """By their numbers, which runs that were there already do not come by."""
        pruned = self._rounds.pruned if self._rounds is not None else ()
        of_trials = {name: of for name, of in _by_arm(runs).items() if name.startswith(TRIAL)}
        return [
            Tried(name, of_trials[name], len(self.seeds), name in pruned) for name in sorted(of_trials, key=number_of)
        ]

    @property
    def _up(self) -> bool:
        return self.direction == "maximize"

    def _measured(self, fresh: Sequence[Run]) -> bool:
        return {run.job.arm for run in fresh if measured(run, self.metric)} == {UNCHANGED, BEST}

    def _drawn(self, trial: Tried) -> dict[str, Any]:
        """Its values as they were drawn."""
        return {one.key: _value(one, trial.params[one.key]) for one in self.dimensions}

    def _best(self, levels: Mapping[str, float]) -> str:
        """The first of those that are best."""
        return (max if self._up else min)(levels, key=lambda name: levels[name])

    def _fair(self, done: Sequence[Tried]) -> list[str]:
        spent = budgets([run for trial in done for run in trial.runs], self.equal) if self.equal != "none" else {}
        said = unequal(spent, self.equal)
        return [said] if said else []

    def _answer(self, done: Sequence[Tried], levels: Mapping[str, float], check: Findings | None) -> list[str]:
        if not done:
            return ["Cannot tell: no trial completed."]
        best = next(trial for trial in done if trial.name == self._best(levels))
        figure = f"{scale_of(self.metric).shown(levels[best.name])} {self.metric}"
        chosen = (
            f"The best of {len(done)} completed trials is {best.name} ({best.shown}) with {figure} on the seeds that chose "
            f"it{_tied(levels, best.name)}: too good a figure, since it was chosen for it."
        )
        if check is None:
            return [f"{chosen} {self._unconfirmed(best)}"]
        seeds = ", ".join(map(str, self.confirm))
        first, *others = check.answer
        asked = f"The best trial against the unchanged command, on seeds that no trial had ({seeds})"
        return [f"{asked}: {first}", *others, chosen]

    def _unconfirmed(self, best: Tried) -> str:
        if best.name.endswith(UNCHANGED):
            return "It is the unchanged command: nothing better was found."
        if self.confirm:
            return "Whether it beats the unchanged command is not known: runs that compare them did not complete."
        words = "'study.confirm=[1000,1001,1002]' run.resume=auto"
        how = f"the same command with {words} compares them on seeds that no trial had"
        return f"Whether it beats the unchanged command is not known: {how}."

    def _important(self, found: Mapping[str, Importance], done: Sequence[Tried]) -> list[str]:
        if not found:
            return [f"Importance of options: cannot tell from {len(done)} completed trials, it takes {FEWEST}."]
        sure = [f"{key} ({one.value:.0%})" for key, one in found.items() if one.sure]
        if not sure:
            return [f"Importance of options: of {len(done)} completed trials, none is beyond what chance gives."]
        return [f"Importance of options beyond what chance gives, {len(sure)} of {len(found)}: {', '.join(sure)}."]

    def _row(self, trial: Tried, levels: Mapping[str, float]) -> Mapping[str, Any]:
        row = {"trial": trial.name, "state": trial.state, "seeds": sum(run.completed for run in trial.runs)}
        value = {"value": levels[trial.name]} if trial.name in levels else {}
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
        points = {name: interval(of, self.metric) for name, of in values.items()}
        numbers = {trial.name: number_of(trial.name) for trial in done}
        so_far = accumulate((levels[trial.name] for trial in done), max if self._up else min)
        best = [(numbers[one.name], Estimate(value, value, value)) for one, value in zip(done, so_far, strict=True)]
        tried = Curve("trials, with 95% intervals", [(numbers[one.name], points[one.name]) for one in done], line=False)
        plots = {"history": curves("Trials", [tried, Curve("best so far", best, dots=False)], "trial", self.metric)}
        for one in self.dimensions:
            if one.kind != "choice":
                drawn = sorted((self._drawn(trial)[one.key], points[trial.name]) for trial in done)
                along = f"{one.key}{', on a logarithmic axis' if one.logarithmic else ''}"
                line = [Curve(one.key, drawn, line=False)]
                plots[f"by_{one.key}"] = curves(one.key, line, along, self.metric, one.logarithmic)
        if found:
            bars = {key: Estimate(*(100 * end for end in (one.value, 0.0, one.value))) for key, one in found.items()}
            plots["importance"] = intervals("Importance of options", bars, "% of that of all")
        return plots


def _by_arm(runs: Sequence[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.job.arm, []).append(run)
    return found


def _tied(levels: Mapping[str, float], best: str) -> str:
    others = sum(value == levels[best] for value in levels.values()) - 1
    return f", which {others} more reached" if others else ""


def _counted(trials: Sequence[Tried]) -> str:
    counts = {state: sum(trial.state == state for trial in trials) for state in (COMPLETED, PRUNED, FAILED)}
    said = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return f"{len(trials)} {'trial' if len(trials) == 1 else 'trials'}: {said}."


def _value(dimension: Dimension, text: str) -> Any:
    return text if dimension.kind == "choice" else int(text) if dimension.integer else float(text)


def _short(text: str) -> str:
    """A number with four digits."""
    try:
        number = float(text)
    except ValueError:
        return text
    return text if number.is_integer() else f"{number:.4g}"
