"""Arms against one of them: a table, a plot of the differences with their intervals, and sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_exp.config.scales import counted, scale_of
from rlvr_exp.core.statistics import Estimate
from rlvr_exp.evaluation.paired import of_few_seeds
from rlvr_exp.report.plots import intervals
from rlvr_exp.studies.budget import budgets, unequal
from rlvr_exp.studies.contrast import Contrast, arm_values, contrasts, level, undecidable
from rlvr_exp.studies.study import Findings, Run

UNSURE, NOTHING = "cannot tell", "no difference was found"


@dataclass(frozen=True)
class Wording:
    """What a difference is called."""

    name: str
    of: str
    """What is subtracted from what."""
    above: str
    """Said of a difference above 0; where less is better, below it."""
    below: str
    from_reference: bool = False
    """The reference minus the arm; else the arm minus the reference."""


AGAINST_FIRST = Wording("difference", "minus the first arm", "better", "worse")


def compared(runs: Sequence[Run], reference: str, metric: str, equal: str, wording: Wording) -> Findings:
    """
    Args:
        reference: the arm that the others are compared with.
        equal: the budget that should be equal, or none.
    """
    arms = arm_values(runs, metric)
    found = contrasts(arms, reference, metric, wording.from_reference)
    spent = budgets(runs, equal) if equal != "none" else {}
    table = [_row(name, level(of), found.get(name), spent.get(name), wording.name) for name, of in arms.items()]
    answer = [unequal(spent, equal), undecidable(arms, metric) or _headline(found, reference, metric, wording)]
    answer += [_sentence(name, between, metric, wording) for name, between in found.items()]
    scale = scale_of(metric)
    shown = 100 if scale.bounded else 1
    rows = {name: Estimate(*(shown * end for end in _ends(between))) for name, between in found.items()}
    unit = f"{scale.unit}, with 95% intervals over seeds and tasks"
    drawn = intervals(f"{metric}: {wording.of}", rows, unit) if rows else None
    return Findings([*filter(None, answer)], {wording.name: table}, {wording.name: drawn} if drawn else {})


def _ends(between: Contrast) -> tuple[float, float, float]:
    return between.value.value, between.value.low, between.value.high


def _row(name: str, level: float, between: Contrast | None, spent: float | None, called: str) -> Mapping[str, Any]:
    row: dict[str, Any] = {"arm": name, "level": level}
    if between is not None:
        row |= dict(zip((called, "low", "high"), _ends(between), strict=True))
        row |= {"tasks": between.value.n, "seeds": between.value.seeds, "p_holm": between.p}
    return row if spent is None else row | {"budget": spent}


def _headline(found: Mapping[str, Contrast], reference: str, metric: str, wording: Wording) -> str:
    if not found:
        return f"{UNSURE.capitalize()}: no arm was measured by {metric} on the tasks and seeds of {reference}."
    scale = scale_of(metric)
    clear = sorted((name for name in found if found[name].sure), key=lambda name: -abs(found[name].value.value))
    if not clear:
        ends = [scale.number(choose(one.value.smallest for one in found.values())) for choose in (min, max)]
        smallest = f"{ends[0]} to {ends[1]} {scale.unit}, by arm," if ends[0] != ends[1] else f"{ends[0]} {scale.unit}"
        seen = f"one of {smallest} would have been found in 80 of 100 such studies"
        return f"No difference was found: chance may be the cause of each; {seen}."
    parts = ", ".join(f"{name} ({scale.number(found[name].value.value, '+')} {scale.unit})" for name in clear)
    return f"{wording.name.capitalize()} on {metric} beyond chance, {len(clear)} of {len(found)}: {parts}."


def _sentence(name: str, between: Contrast, metric: str, wording: Wording) -> str:
    scale = scale_of(metric)
    mean, low, high = (scale.number(end, "+") for end in _ends(between))
    good = (between.value.value > 0) != scale.less_is_better
    what = (wording.above if good else wording.below) if between.sure else NOTHING
    seeds, smallest = between.value.seeds, f"{scale.number(between.value.smallest)} {scale.unit}"
    counts = f"{counted(between.value.n)}, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    found = "" if between.sure else f"; one of {smallest} would have been found in 80 of 100 such studies"
    few = of_few_seeds(seeds, "an interval" if between.sure else "such a figure")
    return f"{name}: {what}, {wording.name} {mean} {scale.unit} [{low}, {high}], {counts}{found}{few}."
