"""The page of a study or a sweep: its answer with plots, its arms with pooled seeds, its jobs with links to their reports, the curves of the arms."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import quote

from rlvr_exp.config.scales import scale_of
from rlvr_exp.records.tracking import Row
from rlvr_exp.report.curves import curves
from rlvr_exp.report.outcome import changed, rated, title, track_of
from rlvr_exp.report.page import document
from rlvr_exp.report.plots import Drawing

MOST_CURVES = 8
"""Arms that are drawn: a chart has so many colours."""
MOST_ROWS = 40
"""Rows of a study's own table that are shown; its file has all."""


@dataclass(frozen=True)
class StudyData:
    """What the page shows, as in `study.json`."""

    name: str
    kind: str
    command: Sequence[str]
    answer: Sequence[str]
    plots: Mapping[str, Drawing]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    options: Mapping[str, Mapping[str, Any]]
    """By option in which arms differ, its value in each arm."""
    jobs: Sequence[Mapping[str, Any]]
    arms: Sequence[Mapping[str, Any]]
    metrics: Mapping[str, Sequence[Row]]
    """Mean rows over the seeds, by arm."""


def study_page(study: StudyData) -> str:
    name, command = escape(study.name), escape(shlex.join(study.command))
    head = f'<h1>{escape(study.kind)}</h1><p class="note">{name}</p><p><code>{command}</code></p>'
    sections = {
        "Answer": _answer(study),
        "Arms": _arms(study.arms),
        "Options that differ": _options(study.options),
        "Jobs": _jobs(study.jobs),
        "Curves, mean over seeds": _curves(study.metrics),
    }
    body = "".join(f"<section><h2>{title}</h2>{part}</section>" for title, part in sections.items() if part)
    return document(f"{study.kind}: {study.name}", f"<header>{head}</header>{body}")


def _answer(study: StudyData) -> str:
    """The sentences, the plots, and the study's own tables."""
    first, *others = [escape(sentence) for sentence in study.answer] or [""]
    said = f"<p><b>{first}</b></p>{''.join(f'<p>{sentence}</p>' for sentence in others)}" if first else ""
    plots = "".join(f"<figure>{plot.svg()}</figure>" for plot in study.plots.values())
    drawn = f'<div class="charts big">{plots}</div>' if plots else ""
    return said + drawn + "".join(_own_table(name, rows) for name, rows in study.tables.items() if rows)


def _own_table(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of the study by the name of its file, cut where it is long."""
    left = f" <small>the first {MOST_ROWS} of {len(rows):,} rows</small>" if len(rows) > MOST_ROWS else ""
    file = quote(f"{name}.csv")
    return f'<h3><a href="{file}">{escape(name.replace("_", " "))}</a>{left}</h3>{_table(rows[:MOST_ROWS])}'


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    heads = list(dict.fromkeys(name for row in rows for name in row))
    body = ["".join(f"<td>{escape(_shown(row.get(name, '')))}</td>" for name in heads) for row in rows]
    top = "".join(f"<th>{escape(name)}</th>" for name in heads)
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    return f'<div class="wide"><table><tr>{top}</tr>{lines}</table></div>'


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)


def _options(options: Mapping[str, Mapping[str, Any]]) -> str:
    return _table([{"option": name, **values} for name, values in options.items()]) if options else ""


def _curves(metrics: Mapping[str, Sequence[Row]]) -> str:
    drawn = curves(dict(list(metrics.items())[:MOST_CURVES]))
    left = f'<p class="note">The first {MOST_CURVES} of {len(metrics)} arms.</p>' if len(metrics) > MOST_CURVES else ""
    return drawn and drawn + left


def _arms(arms: Sequence[Mapping[str, Any]]) -> str:
    """A table for each metric that an arm was measured by."""
    metrics = dict.fromkeys(key.partition("/")[2] for arm in arms for key in arm["rates"])
    note = (
        '<p class="note">Ranges are 95% intervals over seeds and tasks; differences are paired by seed and task, and where '
        "several arms are compared with the first, a difference counts after Holm's correction.</p>"
    )
    return note + "".join(_metric(metric, arms) for metric in metrics) if metrics else ""


def _metric(metric: str, arms: Sequence[Mapping[str, Any]]) -> str:
    heads = ("seeds, lowest to highest", "before", "after", "change", f"against {arms[0]['name']}")
    rows = "".join(_arm(metric, arm, heads) for arm in arms)
    top = "".join(f"<th>{escape(head)}</th>" for head in ("", *heads))
    head = f"<h3>{escape(title(metric))}</h3>"
    track = "<th>0% &hellip; 100%</th>" if scale_of(metric).bounded else "<th></th>"
    found = [arm["findings"][metric] for arm in arms if metric in arm["findings"]]
    words = f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in found)}</ul>" if found else ""
    return f'{head}<div class="wide"><table class="rates"><tr>{top}{track}</tr>{rows}</table></div>{words}'


def _arm(metric: str, arm: Mapping[str, Any], heads: Sequence[str]) -> str:
    before, after = (arm["rates"].get(f"{when}/{metric}") for when in ("before", "after"))
    each = (after or before or {}).get("of_seeds", ())
    number = scale_of(metric).number
    spread = f" <small>{number(min(each))} to {number(max(each))}</small>" if len(each) > 1 else ""
    cells = (
        f"{len(arm['runs'])}{spread}",
        *(rated(rate, metric) for rate in (before, after)),
        *(changed(arm[key].get(metric), metric) for key in ("change", "against_first")),
    )
    labelled = zip(heads, cells, strict=True)
    shown = "".join(f'<td data-label="{escape(head)}">{cell}</td>' for head, cell in labelled)
    return f'<tr><th>{escape(arm["name"])}</th>{shown}<td class="trackcell">{track_of(before, after, metric)}</td></tr>'


def _jobs(jobs: Sequence[Mapping[str, Any]]) -> str:
    metrics = list(dict.fromkeys(key for job in jobs for when in ("before", "after") for key in job[when]))
    shown = [
        (metric, when) for metric in metrics for when in ("before", "after") if any(metric in job[when] for job in jobs)
    ]
    names = [f"{title(metric)}, {when}" for metric, when in shown]
    heads = "".join(f"<th>{escape(name)}</th>" for name in ("job", "status", "steps", "seconds", *names))
    rows = "".join(_job(job, shown) for job in jobs)
    return f'<div class="wide"><table class="sortable"><tbody><tr>{heads}</tr>{rows}</tbody></table></div>'


def _job(job: Mapping[str, Any], shown: Sequence[tuple[str, str]]) -> str:
    report = quote(f"{job['directory']}/report.html")
    why = f"<small>{escape(str(job['diagnosis']))}</small>" if job["diagnosis"] else ""
    facts = "".join(
        f"<td>{escape(str('' if job[name] is None else job[name]))}</td>" for name in ("status", "steps", "seconds")
    )
    rates = [(job[when].get(metric), metric) for metric, when in shown]
    cells = "".join(
        f'<td data-value="{"" if rate is None else rate["value"]}">{rated(rate, metric)}</td>' for rate, metric in rates
    )
    there = " <small>reused</small>" if job["reused"] else ""
    return f'<tr><td><a href="{report}">{escape(job["job"])}</a>{there}{why}</td>{facts}{cells}</tr>'
