"""The record of a study or a sweep, beside its runs: `study.json`, tables as CSV, `study.html`, each plot as SVG and PNG.

Reads the directories of the runs and starts nothing.
"""

import csv
import io
import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.measures import scale_of
from rlvr_exp.evaluation.arms import Arm, arms, arms_table, rows_of
from rlvr_exp.records.manifest import flat
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.charts import curves
from rlvr_exp.report.outcome import changed, rated, title, track_of
from rlvr_exp.report.page import document
from rlvr_exp.report.plots import Drawing
from rlvr_exp.runs.study import Findings, Run

FACTS = ("status", "steps", "seconds")
NO_DIFFERENCE = ("seed", "evaluation.remember")
"""Options that are no difference between arms, besides those of the node `run`."""
OTHERS = ("median", "iqm", "ratio")
"""Estimates of an arm beside a mean, or of a difference of means."""


def write_record(
    root: Path, kind: str, command: Sequence[str], runs: Sequence[Run], findings: Findings | None = None
) -> str:
    """Write the files into `root`; returns the answer, and the arms as text where seeds are pooled.

    Args:
        kind: what it is of, such as sweep.
    """
    jobs = [_job(root, run) for run in runs]
    found = arms([run.job.arm for run in runs], [run.job.seed for run in runs], [run.directory for run in runs])
    curves = {arm.name: _mean_curves(_completed(runs[i] for i in arm.runs)) for arm in found}
    plain, options = [arm.to_dict() for arm in found], _differing(found, runs)
    findings = findings or Findings(())
    tables: dict[str, Sequence[Mapping[str, Any]]] = {name: list(rows) for name, rows in findings.tables.items()}
    about = {
        "kind": kind,
        "command": list(command),
        "answer": list(findings.answer),
        "tables": tables,
        "options": options,
        "jobs": jobs,
        "arms": plain,
    }
    write_json(root / "study.json", about)
    own = {"jobs": [*map(_job_row, jobs)], "arms": [*map(_arm_row, found)]}
    for name, rows in (own | tables).items():
        write_text(root / f"{name}.csv", _csv(rows))
    for name, plot in findings.plots.items():
        plot.write(root / name)
    write_text(root / "study.html", study_page(root.resolve().name, about, findings.plots, curves))
    pooled = arms_table(found, findings=not findings.answer) if len(found) < len(jobs) else ""
    return "\n\n".join(filter(None, ["\n".join(findings.answer), pooled]))


def _job(root: Path, run: Run) -> dict[str, Any]:
    return {
        "job": run.job.text,
        "arm": run.job.arm,
        "seed": run.job.seed,
        "options": dict(word.lstrip("+~").partition("=")[::2] for word in run.job.own),
        "exit": run.code,
        "reused": run.reused,
        **{name: run.summary.get(name) for name in FACTS},
        **({"status": "pruned"} if run.pruned else {}),
        **{when: run.summary.get(when) or {} for when in ("before", "after")},
        "diagnosis": run.summary.get("diagnosis", ""),
        "directory": os.path.relpath(run.directory, root),
    }


def _differing(found: Sequence[Arm], runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Options in which arms differ, by the configuration of the first run of each: by option, then by arm."""
    first = {arm.name: runs[arm.runs[0]].directory / "config.yaml" for arm in found}
    configs = {name: flat(yaml.safe_load(path.read_text("utf-8"))) for name, path in first.items() if path.is_file()}
    shared = [
        {key: value for key, value in config.items() if key not in NO_DIFFERENCE and key.partition(".")[0] != "run"}
        for config in configs.values()
    ]
    return {key: dict(zip(configs, values, strict=True)) for key, values in rows_of(shared, True).items()}


def _completed(runs: Iterable[Run]) -> list[Path]:
    """The directories of those that completed, as the other curves of a study have them; of all where none did."""
    every = [*runs]
    return [run.directory for run in [run for run in every if run.completed] or every]


def _mean_curves(directories: Sequence[Path]) -> list[dict[str, float]]:
    """Rows of metrics, each the mean over the runs that have the metric in that step."""
    values: dict[int, dict[str, list[float]]] = {}
    for directory in directories:
        for row in read_metrics(directory):
            of_step = values.setdefault(int(row["step"]), {})
            for name, value in row.items():
                if value is not None:
                    of_step.setdefault(name, []).append(value)
    return [
        {name: sum(each) / len(each) for name, each in of_step.items()} | {"step": step}
        for step, of_step in sorted(values.items())
    ]


def _job_row(job: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: job[name] for name in ("job", "arm", "exit", "reused", *FACTS)}
    rates = {f"{when}/{metric}": rate for when in ("before", "after") for metric, rate in job[when].items()}
    return plain | job["options"] | _flat(rates) | {"directory": job["directory"]}


def _arm_row(arm: Arm) -> dict[str, Any]:
    changes = {f"change/{metric}": one for metric, one in arm.change.items()}
    against = {f"against_first/{metric}": one for metric, one in arm.against_first.items()}
    seeds = " ".join(map(str, arm.seeds))
    return {"arm": arm.name, "runs": len(arm.runs), "seeds": seeds} | _flat({**arm.rates, **changes, **against})


def _flat(estimates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The value under its own name, the ends of its interval, its count of tasks, and other estimates of the same, behind it."""
    keys = {"": "value", "/low": "low", "/high": "high", "/tasks": "n"}
    found: dict[str, Any] = {}
    for name, one in estimates.items():
        found |= {f"{name}{end}": one[key] for end, key in keys.items() if key in one}
        found |= _flat({f"{name}/{other}": one[other] for other in OTHERS if other in one})
    return found


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


MOST_CURVES = 8
"""Arms that are drawn: a chart has so many colours."""
MOST_ROWS = 40
"""Rows of a study's own table that are shown; its file has all."""


def study_page(
    name: str, study: Mapping[str, Any], plots: Mapping[str, Drawing], metrics: Mapping[str, Sequence[Row]]
) -> str:
    """The page of a study or a sweep.

    Args:
        study: as in `study.json`.
        metrics: mean rows over the seeds, by arm.
    """
    kind, command = escape(study["kind"]), escape(shlex.join(study["command"]))
    head = f'<h1>{kind}</h1><p class="note">{escape(name)}</p><p><code>{command}</code></p>'
    options = [{"option": option, **values} for option, values in study["options"].items()]
    sections = {
        "Answer": _answer(study, plots),
        "Arms": _arms(study["arms"]),
        "Options that differ": _table(options) if options else "",
        "Jobs": _jobs(study["jobs"]),
        "Curves, mean over seeds": _curves(metrics),
    }
    body = "".join(f"<section><h2>{title}</h2>{part}</section>" for title, part in sections.items() if part)
    return document(f"{study['kind']}: {name}", f"<header>{head}</header>{body}")


def _answer(study: Mapping[str, Any], plots: Mapping[str, Drawing]) -> str:
    """The sentences, the plots, and the study's own tables."""
    first, *others = [escape(sentence) for sentence in study["answer"]] or [""]
    said = f"<p><b>{first}</b></p>{''.join(f'<p>{sentence}</p>' for sentence in others)}" if first else ""
    figures = "".join(f"<figure>{plot.svg()}</figure>" for plot in plots.values())
    drawn = f'<div class="charts big">{figures}</div>' if figures else ""
    return said + drawn + "".join(_own_table(name, rows) for name, rows in study["tables"].items() if rows)


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
    rows = "".join(_job_cells(job, shown) for job in jobs)
    return f'<div class="wide"><table class="sortable"><tbody><tr>{heads}</tr>{rows}</tbody></table></div>'


def _job_cells(job: Mapping[str, Any], shown: Sequence[tuple[str, str]]) -> str:
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
