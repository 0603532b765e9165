"""The report section of a cascade: the trained roles, the credit of each role, and the failures by role.

Every number is read from the rows of metrics and from the evaluation's files.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rlvr_exp.domains.dafny.options import ROLES
from rlvr_exp.records.tracking import Row
from rlvr_exp.report.charts import chart
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.outcome import credit_table
from rlvr_exp.report.rendering import words

CREDITS = {
    "annotator_only": "The annotator is credited with its proofs; the writer learns nothing.",
    "shared": "The writer is credited with the mean reward of the cascades that its body is part of, the annotator with "
    "that of its own annotation.",
    "counterfactual": "The writer is credited with the difference that its body makes: its reward under another annotator "
    "({other}) less the mean of the task's other bodies. The annotator is credited with the reward of its own annotation.",
}
OTHERS = {"gold": "the gold's annotations, grafted onto it", "resampled": "annotations drawn afresh"}
PROVED, BY_WRITER, BY_ANNOTATOR = 3, 2, 6
"""Colours: success is green, and no failure is."""
LINES = {
    "proved": ("cascade/success/mean", PROVED),
    "failed by the writer": ("cascade/failed_by/writer", BY_WRITER),
    "failed by the annotator": ("cascade/failed_by/annotator", BY_ANNOTATOR),
}


def cascade_section(run: RunData) -> str:
    """'' for a run of another stage."""
    options = run.config.get("cascade")
    if not isinstance(options, Mapping):
        return ""
    charts = chart(run.metrics, "Cascades: proved, and who failed", LINES, True)
    credits = {role: (f"cascade/credit/{role}", color) for color, role in enumerate(ROLES, 1)}
    charts += chart(run.metrics, "Mean credit of each role", credits, False)
    drawn = f'<div class="charts big">{charts}</div>' if charts else ""
    return f"<p>{escape(_description(options, run.metrics))}</p>{credit_table(run.metrics, 'cascade', ROLES)}{drawn}{_blame(run)}{_lengths(run)}"


def _description(options: Mapping[str, Any], metrics: Sequence[Row]) -> str:
    steps = {role: sum(f"{role}/loss" in row for row in metrics) for role in ROLES}
    learned = ", ".join(f"{role} {count}" for role, count in steps.items())
    mode, credit = str(options.get("mode")), str(options.get("credit"))
    if mode == "annotator_only":
        credit = "annotator_only"
    other = OTHERS.get(str(options.get("counterfactual")), "")
    return f"Mode {words(mode)}; rows of metrics in which a role learned: {learned}. {CREDITS.get(credit, '').format(other=other)}"


def _blame(run: RunData) -> str:
    """Held-out cascades that failed, by role and kind."""
    counts = {when: run.numbers.get(when, {}).get("blame", {}) for when in WHENS}
    names = sorted({name for each in counts.values() for name in each})
    if not names:
        return ""
    shown = [when for when in WHENS if run.numbers.get(when)]
    rows = "".join(
        f"<tr><th>{escape(words(name.replace('/', ': ')))}</th>"
        + "".join(f"<td>{counts[when].get(name, 0):,}</td>" for when in shown)
        + "</tr>"
        for name in names
    )
    heads = "".join(f"<th>{when}</th>" for when in shown)
    note = (
        '<p class="note">Held-out cascades that failed, greedy and sampled: whose fault, and how. A body that neither the '
        "gold's annotations nor any sampled ones prove counts as the writer's.</p>"
    )
    return f'<div class="wide"><table class="counts"><tr><th></th>{heads}</tr>{rows}</table></div>{note}'


def _lengths(run: RunData) -> str:
    """Sampled success by the length of the gold's body."""
    found = {when: run.numbers.get(when, {}).get("lengths", {}) for when in WHENS}
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    if not names:
        return ""
    shown = [when for when in WHENS if found[when]]
    rows = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{_rate(found[when].get(name))}</td>" for when in shown) + "</tr>"
        for name in names
    )
    heads = "".join(f"<th>sampled, {when}</th>" for when in shown)
    return f'<div class="wide"><table><tr><th>length of the gold body</th>{heads}</tr>{rows}</table></div>'


def _rate(rates: Mapping[str, Any] | None) -> str:
    rate = (rates or {}).get("pass_at_1")
    if not rate:
        return '<span class="none">&ndash;</span>'
    return f"<b>{100 * rate['value']:.1f}%</b> <small>{100 * rate['low']:.1f} to {100 * rate['high']:.1f}, n={rate['n']}</small>"
