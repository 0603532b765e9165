"""How much each option of a search has to do with being among its best trials, and whether chance would do as much.

The figure is PED-ANOVA's (Watanabe, Bansal and Hutter 2023, arXiv:2304.10255): how far the values of the best trials differ
from those of all. Optuna's two other evaluators fit forests of scikit-learn, which nothing else here needs. Chance is what
the same figure is where the trials' values are dealt out anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.search import Dimension
from rlvr_exp.core.crossed import holm
from rlvr_exp.core.seeds import stream
from rlvr_exp.core.statistics import LEVEL
from rlvr_exp.studies.trials import distribution, optuna, quiet

FEWEST = 10
"""Completed trials that it takes."""
BEST_SHARE, BEST_COUNT = 0.1, 5
"""The trials that count as the best: this share, and at least so many, as PED-ANOVA's authors advise."""
DEALS = 199


@dataclass(frozen=True)
class Importance:
    value: float
    """As a share of that of all options."""
    p: float
    """How often values that are dealt out anew give as much, corrected for all options (Holm 1979)."""

    @property
    def sure(self) -> bool:
        return self.p <= LEVEL


def importances(
    space: Sequence[Dimension], trials: Sequence[tuple[Mapping[str, Any], float]], maximize: bool
) -> dict[str, Importance]:
    """By key, the most important first; none of fewer trials than it takes.

    Args:
        trials: of each the values of all keys, as texts for choices, and what it reached.
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
