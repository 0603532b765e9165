"""The record of a study or a sweep, beside its runs: `study.json`, tables as CSV, `study.html`, each plot as SVG and PNG.

Reads the directories of the runs and starts nothing.
"""

import csv
import io
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.core.measures import RATE, Gain, Share, scale_of
from rlvr_exp.evaluation.arms import Arm, arms, arms_table, rows_of
from rlvr_exp.records import manifest
from rlvr_exp.records.manifest import flat
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.report.charts import curves
from rlvr_exp.report.outcome import changed, rated, title, track_of
from rlvr_exp.report.page import document, model_of
from rlvr_exp.report.plots import Drawing
from rlvr_exp.report.rendering import part
from rlvr_exp.runs.study import Findings, JobRun

WHENS = ("before", "after")
FACTS = ("status", "steps", "seconds")
NO_DIFFERENCE = ("seed", "evaluation.remember")
"""Options that are no difference between arms, besides those of the node `run`."""
OTHERS = ("median", "iqm", "ratio")
"""Estimates of an arm beside a mean, or of a difference of means."""


def write_record(
    root: Path, kind: str, command: Sequence[str], runs: Sequence[JobRun], findings: Findings | None = None
) -> str:
    """Write the files into `root`. Returns the answer, and the arms as text if seeds are pooled.

    Args:
        kind: the kind of the record, such as sweep.
    """
    jobs = [
        {
            "job": run.job.text,
            "arm": run.job.arm,
            "seed": run.job.seed,
            "options": dict(word.lstrip("+~").partition("=")[::2] for word in run.job.own),
            "exit": run.code,
            "reused": run.reused,
            **{name: run.summary.get(name) for name in FACTS},
            **({"status": "pruned"} if run.pruned else {}),
            **{when: run.summary.get(when) or {} for when in WHENS},
            "diagnosis": run.summary.get("diagnosis", ""),
            "directory": os.path.relpath(run.directory, root),
        }
        for run in runs
    ]
    found = arms([run.job.arm for run in runs], [run.job.seed for run in runs], [run.directory for run in runs])
    findings = findings or Findings(())
    tables: dict[str, Sequence[Mapping[str, Any]]] = {name: list(rows) for name, rows in findings.tables.items()}
    about = {
        "kind": kind,
        "facts": _facts(runs),
        "command": list(command),
        "answer": list(findings.answer),
        "tables": tables,
        "options": _differing(found, runs),
        "jobs": jobs,
        "arms": [arm.to_dict() for arm in found],
    }
    write_json(root / "study.json", about)
    own = {"jobs": [*map(_job_row, jobs)], "arms": [*map(_arm_row, found)]}
    for name, rows in (own | tables).items():
        text = io.StringIO()
        writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(root / f"{name}.csv", text.getvalue())
    for name, plot in findings.plots.items():
        plot.write(root / name)
    drawn = {arm.name: _mean_curves([runs[i] for i in arm.runs]) for arm in found}
    write_text(root / "study.html", study_page(root.resolve().name, about, findings.plots, drawn))
    pooled = arms_table(found, findings=not findings.answer) if len(found) < len(jobs) else ""
    return "\n\n".join(filter(None, ["\n".join(findings.answer), pooled]))


def _facts(runs: Sequence[JobRun]) -> dict[str, str]:
    """The date of the first run, the models, and the number of runs."""
    folders = [run.directory for run in runs if (run.directory / "config.yaml").is_file()]
    configs = [yaml.safe_load((folder / "config.yaml").read_text("utf-8")) for folder in folders]
    with_manifest = (folder for folder in folders if (folder / manifest.NAME).is_file())
    created = [str(moment) for folder in with_manifest if (moment := manifest.section(folder, "created"))]
    models = dict.fromkeys(model_of(config) for config in configs)
    return {
        "started": f"{datetime.fromisoformat(min(created)):%Y-%m-%d %H:%M}" if created else "",
        "model": ", ".join(filter(None, models)),
        "runs": f"{len(runs)}, {sum(run.completed for run in runs)} completed",
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _differing(found: Sequence[Arm], runs: Sequence[JobRun]) -> dict[str, dict[str, Any]]:
    """Options in which arms differ, by the configuration of the first run of each: by option, then by arm."""
    first = {arm.name: runs[arm.runs[0]].directory / "config.yaml" for arm in found}
    configs = {name: flat(yaml.safe_load(path.read_text("utf-8"))) for name, path in first.items() if path.is_file()}
    shared = [
        {key: value for key, value in config.items() if key not in NO_DIFFERENCE and key.partition(".")[0] != "run"}
        for config in configs.values()
    ]
    return {key: dict(zip(configs, values, strict=True)) for key, values in rows_of(shared, True).items()}


def _mean_curves(runs: Sequence[JobRun]) -> list[dict[str, float]]:
    """Rows of metrics, each the mean over the completed runs that have the metric in that step; over all if none completed."""
    values: dict[int, dict[str, list[float]]] = {}
    for run in [run for run in runs if run.completed] or runs:
        for row in read_metrics(run.directory):
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
    rates = {f"{when}/{metric}": rate for when in WHENS for metric, rate in job[when].items()}
    return plain | job["options"] | _flat(rates) | {"directory": job["directory"]}


def _arm_row(arm: Arm) -> dict[str, Any]:
    changes = {f"change/{metric}": one for metric, one in arm.change.items()}
    against = {f"against_first/{metric}": one for metric, one in arm.against_first.items()}
    seeds = " ".join(map(str, arm.seeds))
    return {"arm": arm.name, "runs": len(arm.runs), "seeds": seeds} | _flat({**arm.rates, **changes, **against})


def _flat(estimates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Columns of each estimate: its value, the ends of its interval, its number of tasks, then its other estimates."""
    keys = {"": "value", "/low": "low", "/high": "high", "/tasks": "n"}
    found: dict[str, Any] = {}
    for name, one in estimates.items():
        found |= {f"{name}{end}": one[key] for end, key in keys.items() if key in one}
        found |= _flat({f"{name}/{other}": one[other] for other in OTHERS if other in one})
    return found


MOST_CURVES = 8
"""Arms in a chart, which has as many colours."""
MOST_ROWS = 40
"""Rows of a study's own table on the page. The table's file has all rows."""


def study_page(
    name: str, study: Mapping[str, Any], plots: Mapping[str, Drawing], metrics: Mapping[str, Sequence[Row]]
) -> str:
    """The page of a study or a sweep.

    Args:
        study: as in `study.json`.
        metrics: mean rows over the seeds, by arm.
    """
    jobs, arms = study["jobs"], study["arms"]
    of_jobs = dict.fromkeys(key for job in jobs for when in WHENS for key in job[when])
    options = [{"option": option, **values} for option, values in study["options"].items()]
    body = part(
        "study",
        name=name, about=study, command=shlex.join(study["command"]),
        plots=[Markup(plot.svg()) for plot in plots.values()],
        tables=[(table, _table(rows), len(rows)) for table, rows in study["tables"].items() if rows],
        options=_table(options) if options else "",
        metrics=list(dict.fromkeys(key.partition("/")[2] for arm in arms for key in arm["rates"])),
        columns=[(metric, when) for metric in of_jobs for when in WHENS if any(metric in job[when] for job in jobs)],
        curves=curves(dict(list(metrics.items())[:MOST_CURVES])), most=(MOST_ROWS, MOST_CURVES),
        show={"title": title, "rated": rated, "changed": changed, "track": track_of, "scale": scale_of},
    )  # fmt: skip
    return document(f"{study['kind']}: {name}", body)


def _table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    heads = _columns(rows)
    return part(
        "plain_table", heads=heads, rows=[[_shown(row.get(name, "")) for name in heads] for row in rows[:MOST_ROWS]]
    )


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Share):
        return RATE.shown(value)
    if isinstance(value, Gain):
        return f"{RATE.number(value, '+')} {RATE.unit}"
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
