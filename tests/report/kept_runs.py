"""What a diagnosis read of a real run, kept as numbers and a few answers: `python kept_runs.py RUN FILE` keeps one more.

Left out: prompts, logs, names of tasks, and all but a few completions. FILE's folder is that of the tests' own, `kept`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from rlvr_exp.records.rollout_files import RolloutRow, from_row, to_row
from rlvr_exp.report.data import StepCounts, read_run
from rlvr_exp.report.evidence import Evidence, Share, evidence

KEPT = Path(__file__).with_name("kept")
NODES = ("model", "algorithm", "evaluation", "optimizer", "scheduler")
COLUMNS = (
    "step", "loss", "learning_rate", "grad_norm", "grad_norm/after", "entropy", "kl", "kl/old", "clip/low", "clip/high",
    "samples/trained", "tokens/completion_mean", "reward/mean", "reward/std",
)  # fmt: skip
ROWS = 8


def keep(run_dir: Path, file: Path) -> None:
    seen = evidence(read_run(run_dir), {})
    config = {node: {k: v for k, v in seen.config[node].items() if not isinstance(v, dict)} for node in NODES}
    ends = {"before": seen.before, "after": seen.after}
    kept = {
        "config": {"stage": seen.config["stage"], **{node: given for node, given in config.items() if given}},
        "manifest": {"model": {name: seen.of_model(name) for name in ("total", "trained")}},
        "summary": {name: seen.summary.get(name) for name in ("status", "steps", "reason")},
        "metrics": [{name: row[name] for name in COLUMNS if name in row} for row in seen.metrics],
        "steps": [_counts(one) for one in seen.step_counts],
        "ends": {when: _counts(one) for when, one in ends.items() if one is not None},
        "changed": [seen.changed.count, seen.changed.of],
        "change": seen.change,
        "rollouts": [_row(row) for row in _few(seen.rollouts)],
        "measured": [_row(row) for row in _few(seen.measured)],
    }
    file.write_text(json.dumps(_short(kept), separators=(",", ":")) + "\n")


def kept(name: str) -> Evidence:
    read = json.loads((KEPT / f"{name}.json").read_text())
    return Evidence(
        metrics=read["metrics"],
        step_counts=[StepCounts(**one) for one in read["steps"]],
        rollouts=[from_row(RolloutRow, row) for row in read["rollouts"]],
        **{when: StepCounts(**one) for when, one in read["ends"].items()},
        measured=[from_row(RolloutRow, row) for row in read["measured"]],
        changed=Share(*read["changed"]),
        change=read["change"],
        config=read["config"],
        summary=read["summary"],
        manifest=read["manifest"],
    )


def _counts(one: StepCounts) -> dict[str, Any]:
    return {**vars(one), "verdicts": dict(one.verdicts), "tasks": {}, "families": {}}


def _few(rows: Any) -> Any:
    return rows[:: max(1, len(rows) // ROWS)][:ROWS]


def _row(row: RolloutRow) -> dict[str, Any]:
    return {**to_row(row), "prompt": f"prompt of {row.completion.task.id}", "log": ""}


def _short(value: Any) -> Any:
    """Numbers to four digits."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_short(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]))
