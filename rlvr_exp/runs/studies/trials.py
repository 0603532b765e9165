"""Trials of a search, kept by Optuna in SQLite in the study's folder, and the importance of the options.

Nothing else imports Optuna. Every draw depends on the study's seed and the trial's number alone, so a resumed search draws as
an unbroken one. Searches with other options share the file under other names.

Importance is PED-ANOVA (Watanabe, Bansal and Hutter 2023, arXiv:2304.10255): how far the values of the best trials differ from
those of all. Optuna's two other evaluators fit forests of scikit-learn, which nothing else here needs. The values of the
trials are permuted to estimate the same figure by chance.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.study import CHOICE, Dimension, dimensions, text_of
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import derive, stream
from rlvr_exp.core.statistics import LEVEL

FILE = "search.db"
UNCHANGED, RUNS, REASON, PRUNED = "unchanged", "runs", "reason", "pruned"
"""Attributes of a trial: it is the unchanged command, the directories of its runs by seed, the reason of a refusal, and whether
it was pruned."""
SEEDS = 2**32
"""Number of seeds of Optuna's samplers."""


def optuna() -> Any:
    """The package. Raises InputError if it is not installed."""
    try:
        import optuna as package
    except ImportError as fault:
        remedy = "pip install 'rlvr_exp[search]'"
        raise InputError(InputProblem("study", "a search needs the package optuna", "", "", "", remedy)) from fault
    package.logging.set_verbosity(package.logging.ERROR)
    return package


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress Optuna's warnings, for example about experimental options."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def storage(root: Path) -> Any:
    """The database of the searches in a folder."""
    root.mkdir(parents=True, exist_ok=True)
    return optuna().storages.RDBStorage(f"sqlite:///{(root / FILE).resolve()}")


def distribution(dimension: Dimension) -> Any:
    """Optuna's distribution. Choices are texts, as in words."""
    of = optuna().distributions
    if dimension.kind == CHOICE:
        return of.CategoricalDistribution([text_of(value) for value in dimension.values])
    kind = of.IntDistribution if dimension.integer else of.FloatDistribution
    return kind(*dimension.values, log=dimension.logarithmic)


@dataclass(frozen=True)
class Ended:
    """An earlier trial that has ended."""

    number: int
    words: tuple[str, ...]
    unchanged: bool
    state: str
    runs: Mapping[str, str]
    """Directory of each run by seed."""
    reason: str


class Trial:
    """A trial in progress."""

    def __init__(self, trial: Any, words: Sequence[str], unchanged: bool):
        self._trial, self.number, self.words, self.unchanged = trial, trial.number, tuple(words), unchanged
        self._reported = max(trial.study.get_trials(deepcopy=False)[trial.number].intermediate_values, default=0)
        self.pruned = bool(trial.user_attrs.get(PRUNED)) or (self._reported > 0 and trial.should_prune())
        """The trial is unpromising."""

    def report(self, values: Sequence[tuple[int, float]], window: int) -> None:
        """Report the values of its first run by step, up to the value that prunes the trial.

        Args:
            window: report the mean of this many values, since single steps are noisy.
        """
        for place, (step, _) in enumerate(values):
            if step > self._reported and not self.pruned:
                self._trial.report(fmean(value for _, value in values[max(0, place + 1 - window) : place + 1]), step)
                self._reported, self.pruned = step, bool(self._trial.should_prune())
                if self.pruned:
                    self._trial.set_user_attr(PRUNED, True)

    def keep(self, runs: Mapping[str, str], reason: str = "") -> None:
        """Store the runs of an ended trial."""
        self._trial.set_user_attr(RUNS, dict(runs))
        self._trial.set_user_attr(REASON, reason)


class Trials:
    """All trials of a search.

    Args:
        root: the study's folder.
        name: identifies all options that determine the value of a trial.
    """

    def __init__(self, study: options.Search, root: Path, name: str, seed: int):
        self._options, self._seed, self._optuna = study, seed, optuna()
        self._distributions = {one.key: distribution(one) for one in dimensions(study.space)}
        with quiet():
            self._study = self._optuna.create_study(
                storage=storage(root),
                study_name=name,
                direction=study.direction,
                pruner=_pruner(self._optuna.pruners, study),
                load_if_exists=True,
            )

    @property
    def begun(self) -> int:
        return sum(trial.state.name != "WAITING" for trial in self._all())

    def begin_with(self, values: Mapping[str, Any]) -> None:
        """The first trial has these values, by key."""
        if not self._all():
            shown = {key: value if key not in self._choices else text_of(value) for key, value in values.items()}
            self._study.enqueue_trial(shown, user_attrs={UNCHANGED: True})

    def ask(self) -> Trial:
        with quiet():
            self._study.sampler = self._sampler(self.begun)
            return self._drawn(self._study.ask(self._distributions))

    def running(self) -> list[Trial]:
        """Earlier trials that have not ended."""
        found = []
        for frozen in self._all():
            if frozen.state.name == "RUNNING":
                with quiet():
                    self._study.sampler = self._sampler(frozen.number)
                    found.append(self._drawn(self._optuna.Trial(self._study, frozen._trial_id)))
        return found

    def ended(self) -> list[Ended]:
        return [
            Ended(
                one.number,
                self._words(one.params),
                bool(one.user_attrs.get(UNCHANGED)),
                one.state.name,
                one.user_attrs.get(RUNS, {}),
                one.user_attrs.get(REASON, ""),
            )
            for one in self._all()
            if one.state.is_finished()
        ]

    def tell(self, trial: Trial, value: float | None = None) -> None:
        """Record the end of a trial. Without a value it was pruned, or has failed."""
        if value is not None:
            self._study.tell(trial.number, value)
            return
        states = self._optuna.trial.TrialState
        self._study.tell(trial.number, state=states.PRUNED if trial.pruned else states.FAIL)

    def best(self) -> tuple[str, ...] | None:
        """The words of the best trial. None without a completed trial, or if the unchanged command is the best."""
        completed = [trial for trial in self._all() if trial.state.name == "COMPLETE"]
        if not completed:
            return None
        choose = max if self._options.direction == "maximize" else min
        # The first of equal trials. Optuna leaves the order open.
        best = choose(sorted(completed, key=lambda trial: trial.number), key=lambda trial: trial.value)
        return None if best.user_attrs.get(UNCHANGED) else self._words(best.params)

    def _all(self) -> Any:
        return self._study.get_trials(deepcopy=False)

    @property
    def _choices(self) -> set[str]:
        return {one.key for one in dimensions(self._options.space) if one.kind == CHOICE}

    def _drawn(self, trial: Any) -> Trial:
        """Draw a value for each key. An interrupted trial draws the missing values."""
        for key, of in self._distributions.items():
            if key in self._choices:
                trial.suggest_categorical(key, of.choices)
            elif isinstance(of, self._optuna.distributions.IntDistribution):
                trial.suggest_int(key, of.low, of.high, log=of.log)
            else:
                trial.suggest_float(key, of.low, of.high, log=of.log)
        return Trial(trial, self._words(trial.params), bool(trial.user_attrs.get(UNCHANGED)))

    def _words(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        known = [one for one in dimensions(self._options.space) if one.key in params]
        return tuple(f"{one.key}={params[one.key]}" for one in known)

    def _sampler(self, number: int) -> Any:
        seed = derive(self._seed, "search", number) % SEEDS
        if self._options.sampler == "random":
            return self._optuna.samplers.RandomSampler(seed=seed)
        return self._optuna.samplers.TPESampler(seed=seed, n_startup_trials=self._options.startup)


def _pruner(of: Any, study: options.Search) -> Any:
    if study.pruner == "median":
        return of.MedianPruner(study.pruner_startup, study.pruner_warmup)
    if study.pruner == "halving":
        return of.SuccessiveHalvingPruner(min_resource=study.pruner_warmup)
    return of.NopPruner()


FEWEST = 10
"""Fewest completed trials for an estimate."""
BEST_SHARE, BEST_COUNT = 0.1, 5
"""Share and least number of trials that count as the best, as the authors of PED-ANOVA advise."""
DEALS = 199


@dataclass(frozen=True)
class Importance:
    value: float
    """Share of the importance of all options."""
    p: float
    """p-value by permutation of the trials' values, corrected for all options (Holm 1979)."""

    @property
    def sure(self) -> bool:
        return self.p <= LEVEL


def importances(
    space: Sequence[Dimension], trials: Sequence[tuple[Mapping[str, Any], float]], maximize: bool
) -> dict[str, Importance]:
    """By key, the most important first. Empty for too few trials.

    Args:
        trials: the values of all keys, with choices as texts, and the result of each trial.
    """
    if len(trials) < FEWEST:
        return {}
    losses = [-value if maximize else value for _, value in trials]
    study, draws = _study(space, [params for params, _ in trials]), stream("importance", len(trials))
    found = _measured(study, losses)
    dealt = [_measured(study, draws.sample(losses, len(losses))) for _ in range(DEALS)]
    p = {key: (1 + sum(one[key] >= value for one in dealt)) / (1 + DEALS) for key, value in found.items()}
    corrected, total = dict(zip(p, holm([*p.values()]), strict=True)), sum(found.values()) or 1.0
    ordered = sorted(found, key=lambda key: (-found[key], key))
    return {key: Importance(found[key] / total, corrected[key]) for key in ordered}


def _study(space: Sequence[Dimension], params: Sequence[Mapping[str, Any]]) -> Any:
    package = optuna()
    of = {one.key: distribution(one) for one in space}
    study = package.create_study()
    study.add_trials([package.trial.create_trial(params=dict(one), distributions=of, value=0.0) for one in params])
    return study


def _measured(study: Any, losses: Sequence[float]) -> dict[str, float]:
    package = optuna()
    share = max(BEST_SHARE, BEST_COUNT / len(losses))
    evaluator = package.importance.PedAnovaImportanceEvaluator(target_quantile=share)
    with quiet():
        found = package.importance.get_param_importances(
            study, evaluator=evaluator, target=lambda trial: losses[trial.number], normalize=False
        )
    return {str(key): float(value) for key, value in found.items()}
