"""The table of a sweep, beside its jobs: `study.json`, `jobs.csv`, `arms.csv` and `study.html`.

Jobs that differ in nothing but the seed are one arm, pooled by task. Reads the jobs' directories and starts nothing.
"""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.evaluation.arms import Arm, arms
from rlvr_exp.evaluation.tables import arms_table
from rlvr_exp.launch.execute import Outcome
from rlvr_exp.records.tracking import read_metrics
from rlvr_exp.report.study_page import study_page

SEED = "seed"
OWN = (SEED, "run.dir")
"""Options in which the jobs of an arm may differ."""
FACTS = ("status", "steps", "seconds")


def write_study(root: Path, command: Sequence[str], swept: Sequence[Sequence[str]], outcomes: Sequence[Outcome]) -> str:
    """Write the files into `root`; returns the arms as text, '' where no two jobs differ in their seed alone.

    Args:
        swept: the words that differ between jobs, for each job; of an interrupted sweep the first have outcomes.
    """
    jobs = [_job(root, words, outcome) for words, outcome in zip(swept, outcomes, strict=False)]
    found = arms([job["arm"] for job in jobs], [job[SEED] for job in jobs], [outcome.directory for outcome in outcomes])
    curves = {arm.name: _mean_curves([outcomes[i].directory for i in arm.runs]) for arm in found}
    plain = [arm.to_dict() for arm in found]
    write_json(root / "study.json", {"command": list(command), "jobs": jobs, "arms": plain})
    write_text(root / "jobs.csv", _csv([_job_row(job) for job in jobs]))
    write_text(root / "arms.csv", _csv([_arm_row(arm) for arm in found]))
    write_text(root / "study.html", study_page(root.resolve().name, command, jobs, plain, curves))
    return arms_table(found) if len(found) < len(jobs) else ""


def _job(root: Path, words: Sequence[str], outcome: Outcome) -> dict[str, Any]:
    options = dict(word.lstrip("+~").partition("=")[::2] for word in words)
    arm = ", ".join(word for word in words if word.lstrip("+~").partition("=")[0] not in OWN)
    return {
        "job": " ".join(words) or "(no sweep)",
        "arm": arm or "all",
        SEED: options.get(SEED),
        "options": options,
        "exit": outcome.code,
        **{name: outcome.summary.get(name) for name in FACTS},
        **{when: outcome.summary.get(when) or {} for when in ("before", "after")},
        "diagnosis": outcome.summary.get("diagnosis", ""),
        "directory": os.path.relpath(outcome.directory, root),
    }


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
    plain = {name: job[name] for name in ("job", "arm", *job["options"], "exit", *FACTS) if name in job}
    rates = {f"{when}/{metric}": rate for when in ("before", "after") for metric, rate in job[when].items()}
    return plain | job["options"] | _flat(rates) | {"directory": job["directory"]}


def _arm_row(arm: Arm) -> dict[str, Any]:
    changes = {f"change/{metric}": one for metric, one in arm.change.items()}
    against = {f"against_first/{metric}": one for metric, one in arm.against_first.items()}
    seeds = " ".join(map(str, arm.seeds))
    return {"arm": arm.name, "runs": len(arm.runs), "seeds": seeds} | _flat({**arm.rates, **changes, **against})


def _flat(estimates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The value under its own name, the ends of its interval and its count of tasks behind it."""
    keys = {"": "value", "/low": "low", "/high": "high", "/tasks": "n"}
    return {f"{name}{end}": one[key] for name, one in estimates.items() for end, key in keys.items()}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
