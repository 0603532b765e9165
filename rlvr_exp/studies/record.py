"""What runs of several arms leave beside their directories: `study.json`, tables as CSV, `study.html`, each plot as SVG and PNG.

One piece for studies and for sweeps. Reads the runs' directories and starts nothing.
"""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.evaluation.arms import Arm, arms
from rlvr_exp.evaluation.tables import arms_table, rows_of
from rlvr_exp.records.fingerprint import flat
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report.study_page import StudyData, study_page
from rlvr_exp.studies.study import Findings, Run

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
    about: dict[str, Any] = {"kind": kind, "command": list(command), "answer": list(findings.answer)}
    tables: dict[str, Sequence[Mapping[str, Any]]] = {name: list(rows) for name, rows in findings.tables.items()}
    write_json(root / "study.json", about | {"tables": tables, "options": options, "jobs": jobs, "arms": plain})
    own = {"jobs": [*map(_job_row, jobs)], "arms": [*map(_arm_row, found)]}
    for name, rows in (own | tables).items():
        write_text(root / f"{name}.csv", _csv(rows))
    for name, plot in findings.plots.items():
        plot.write(root / name)
    shown = StudyData(
        root.resolve().name, kind, command, findings.answer, findings.plots, tables, options, jobs, plain, curves
    )
    write_text(root / "study.html", study_page(shown))
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
