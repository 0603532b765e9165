"""Several runs side by side: the measurements of each, and their curves in a single drawing.

Differences with paired intervals are computed by +stage=compare.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rlvr_exp.report.charts import line_chart
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.outcome import TITLES
from rlvr_exp.report.series import running_mean

DRAWN = (
    ("Reward, all runs", "reward/mean", False),
    ("Success rate while training, all runs", "success/mean", True),
    ("Entropy per token, all runs", "entropy", False),
)


def side_by_side(run: RunData, others: Sequence[RunData]) -> str:
    """'' without others."""
    if not others:
        return ""
    runs = dict(zip(_names([run, *others]), [run, *others], strict=True))
    charts = "".join(_chart(title, metric, percent, runs) for title, metric, percent in DRAWN)
    return f'{_table(runs)}<div class="charts big">{charts}</div>'


def _names(runs: Sequence[RunData]) -> list[str]:
    """A folder's own name, or its path where two share it."""
    names = [run.name for run in runs]
    return [run.name if names.count(run.name) == 1 else str(run.directory) for run in runs]


def _table(runs: Mapping[str, RunData]) -> str:
    rates = {name: _rates(run) for name, run in runs.items()}
    metrics = dict.fromkeys(key for of_run in rates.values() for key in of_run)
    heads = "".join(f"<th>{escape(TITLES.get(metric, metric))}, {when}</th>" for metric, when in metrics)
    cells = {name: "".join(f"<td>{_cell(rates[name].get(key))}</td>" for key in metrics) for name in runs}
    rows = "".join(f"<tr><th>{escape(name)}</th>{row}</tr>" for name, row in cells.items())
    return f'<div class="wide"><table><tr><th></th>{heads}</tr>{rows}</table></div>'


def _rates(run: RunData) -> dict[tuple[str, str], Mapping[str, Any]]:
    found = {
        (metric, when): rate for when in WHENS for metric, rate in run.numbers.get(when, {}).get("rates", {}).items()
    }
    return {key: rate for key, rate in found.items() if key[0] in TITLES}


def _cell(rate: Mapping[str, Any] | None) -> str:
    if rate is None:
        return '<span class="none">&ndash;</span>'
    return f"<b>{100 * rate['value']:.1f}%</b> <small>{100 * rate['low']:.1f} to {100 * rate['high']:.1f}</small>"


def _chart(title: str, metric: str, percent: bool, runs: Mapping[str, RunData]) -> str:
    """Running means, on the steps of any of the runs."""
    columns = {name: {row["step"]: row.get(metric) for row in run.metrics} for name, run in runs.items()}
    steps = sorted({int(step or 0) for column in columns.values() for step in column})
    smooth = {name: running_mean([column.get(step) for step in steps]) for name, column in columns.items()}
    return line_chart(title, steps, smooth, percent) if steps else ""
