"""The sections of roles, of strata and of measures: similarity of answers to the golds, success by family and length, success
by kind of task, and what a verifier measured besides its verdicts, from the evaluation.

Every number is read from the evaluation's files; nothing is computed here.
"""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any

from rlvr_exp.config.scales import counted
from rlvr_exp.core.measures import GREEDY, is_count
from rlvr_exp.records.tracking import Row
from rlvr_exp.report.charts import line_chart
from rlvr_exp.report.curves import words
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.evidence import early, late

TITLES = {
    "exact_match": "exact match",
    "bleu": "BLEU",
    "functional_coverage": "functional coverage",
    "verified_rate": "verified",
}


def roles_section(run: RunData) -> str:
    """A table of rates for each role, and a table for each kind of group; '' for tasks without roles."""
    found = {when: run.numbers.get(when, {}).get("roles", {}) for when in WHENS}
    roles = sorted({role for of_when in found.values() for role in of_when})
    return "".join(_role(role, {when: of_when.get(role, {}) for when, of_when in found.items()}) for role in roles)


def measures_section(run: RunData) -> str:
    """A table of what the verifier measured; '' where it measured nothing."""
    found: dict[str, Any] = {when: run.numbers.get(when, {}).get("measures", {}) for when in WHENS}
    rows: dict[str, dict[str, Any]] = {
        name: {when: of[name] for when, of in found.items() if name in of} for name in _names(found)
    }
    return _table("measure", rows) if rows else ""


def strata_section(run: RunData) -> str:
    """A table for each kind of stratum, such as the style of the instruction; '' where tasks belong to none."""
    every = [run.numbers.get(when, {}).get("strata", {}) for when in reversed(WHENS)]
    found: dict[str, Any] = next(filter(None, every), {})
    return "".join(_table(kind, groups) for kind, groups in found.items())


def _role(role: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    rates = {when: one.get("rates", {}) for when, one in found.items()}
    shown = _table(
        f"{role}", {name: {when: of[name] for when, of in rates.items() if name in of} for name in _names(rates)}
    )
    last = next((found[when] for when in reversed(WHENS) if found[when]), {})
    for kind, groups in last.get("by", {}).items():
        rows = {name: dict(list(of_group.items())[:2]) for name, of_group in groups.items()}
        shown += f"<details><summary>{escape(role)} by {escape(kind)}</summary>{_table(kind, rows)}</details>"
    return shown


def _names(rates: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for of_when in rates.values() for name in of_when))


def _table(corner: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """A row per name; its cells under the names of any row."""
    columns = list(dict.fromkeys(column for cells in rows.values() for column in cells))
    heads = "".join(f"<th>{escape(_title(column))}</th>" for column in columns)
    body = "".join(
        f"<tr><th>{escape(_title(name))}</th>"
        + "".join(
            f'<td data-label="{escape(_title(column))}">{_rate(cells.get(column), is_count(name))}</td>'
            for column in columns
        )
        + "</tr>"
        for name, cells in rows.items()
    )
    return f'<div class="wide"><table class="roles"><tr><th>{escape(corner)}</th>{heads}</tr>{body}</table></div>'


def _title(name: str) -> str:
    plain = name.removesuffix(GREEDY)
    return TITLES.get(plain, words(plain)) + (", greedy" if plain != name else "")


def _rate(rate: Any, of_counts: bool) -> str:
    if not rate:
        return '<span class="none">not measured</span>'
    if of_counts:
        return (
            f"<b>{rate['value']:.2f}</b> <small>{rate['low']:.2f} to {rate['high']:.2f}; {counted(rate['n'])}</small>"
        )
    value, low, high = (100 * rate[key] for key in ("value", "low", "high"))
    return f"<b>{value:.1f}%</b> <small>{low:.1f} to {high:.1f}; {counted(rate['n'])}</small>"


def credit_table(metrics: Sequence[Row], environment: str, roles: Sequence[str]) -> str:
    """Mean credit and its spread within a group, early and late in the run, for each role that was sampled."""
    rows = []
    for role in roles:
        mean, spread = (_ends(metrics, f"{environment}/{name}/{role}") for name in ("credit", "credit_spread"))
        learned = "learns" if any(f"{role}/loss" in row for row in metrics) else "frozen"
        if mean:
            rows.append(f"<tr><th>{role}, {learned}</th><td>{mean}</td><td>{spread}</td></tr>")
    head = "<tr><th></th><th>credit, early &rarr; late</th><th>spread within a group, early &rarr; late</th></tr>"
    return f'<div class="wide"><table>{head}{"".join(rows)}</table></div>' if rows else ""


def _ends(metrics: Sequence[Row], name: str) -> str:
    values = [value for row in metrics if (value := row.get(name)) is not None]
    return f"{fmean(early(values)):.3f} &rarr; {fmean(late(values)):.3f}" if values else ""


def chart(metrics: Sequence[Row], title: str, lines: Mapping[str, tuple[str, int]], percent: bool) -> str:
    """`lines`: the metric and the colour of each."""
    met = {label: line for label, line in lines.items() if any(row.get(line[0]) is not None for row in metrics)}
    rows = [row for row in metrics if any(row.get(name) is not None for name, _ in met.values())]
    columns = {label: [row.get(name) for row in rows] for label, (name, _) in met.items()}
    colors = [color for _, color in met.values()]
    return line_chart(title, [int(row["step"] or 0) for row in rows], columns, percent, colors=colors) if rows else ""
