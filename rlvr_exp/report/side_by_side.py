"""Several runs side by side: the measurements of each, and their curves in a single drawing.

Differences with paired intervals are computed by +stage=compare.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.charts import line_chart
from rlvr_exp.report.data import WHENS, RunData
from rlvr_exp.report.outcome import is_success, title
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
    every = [run, *others]
    runs = dict(zip(_distinct([one.directory for one in every]), every, strict=True))
    return f"{_table(runs)}{curves({name: one.metrics for name, one in runs.items()})}"


def compared_curves(run: RunData) -> str:
    """The curves of the runs that +stage=compare read, or that a chain ran; '' for another stage."""
    compared = run.config.get("compare") or {}
    paths = [Path(name) for name in compared.get("runs", ())] or [run.directory / name for name in run.links]
    return curves({name: read_metrics(path) for name, path in zip(_distinct(paths), paths, strict=True)})


def curves(metrics: Mapping[str, Sequence[Row]]) -> str:
    """Each run a line, by its rows of metrics; '' where none has any."""
    charts = "".join(_chart(title, metric, percent, metrics) for title, metric, percent in DRAWN)
    return f'<div class="charts big">{charts}</div>' if charts else ""


def _distinct(paths: Sequence[Path]) -> list[str]:
    """A folder's own name, or its path where two share it."""
    names = [path.resolve().name for path in paths]
    return [name if names.count(name) == 1 else str(path) for name, path in zip(names, paths, strict=True)]


def _table(runs: Mapping[str, RunData]) -> str:
    rates = {name: _rates(run) for name, run in runs.items()}
    metrics = dict.fromkeys(key for of_run in rates.values() for key in of_run)
    heads = "".join(f"<th>{escape(title(metric))}, {when}</th>" for metric, when in metrics)
    cells = {name: "".join(f"<td>{_cell(rates[name].get(key))}</td>" for key in metrics) for name in runs}
    rows = "".join(f"<tr><th>{escape(name)}</th>{row}</tr>" for name, row in cells.items())
    return f'<div class="wide"><table><tr><th></th>{heads}</tr>{rows}</table></div>'


def _rates(run: RunData) -> dict[tuple[str, str], Mapping[str, Any]]:
    found = {
        (metric, when): rate for when in WHENS for metric, rate in run.numbers.get(when, {}).get("rates", {}).items()
    }
    return {key: rate for key, rate in found.items() if is_success(key[0])}


def _cell(rate: Mapping[str, Any] | None) -> str:
    if rate is None:
        return '<span class="none">&ndash;</span>'
    return f"<b>{100 * rate['value']:.1f}%</b> <small>{100 * rate['low']:.1f} to {100 * rate['high']:.1f}</small>"


def _chart(title: str, metric: str, percent: bool, metrics: Mapping[str, Sequence[Row]]) -> str:
    """Running means, on the steps of any of the runs."""
    columns = {name: {row["step"]: row.get(metric) for row in rows} for name, rows in metrics.items()}
    steps = sorted({int(step or 0) for column in columns.values() for step in column})
    smooth = {name: running_mean([column.get(step) for step in steps]) for name, column in columns.items()}
    return line_chart(title, steps, smooth, percent) if steps else ""
