"""What a diagnosis reads of a real run, kept as numbers and short texts: `python kept_runs.py RUN FILE` keeps one more.

Left out: logs, and all prompts and completions whose text no cause reads; numbers stand in for those, so that equal texts stay
equal. FILE's folder is that of the tests' own, `kept`.
"""

import json
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rlvr_exp.records.rollout_files import RolloutRow, from_row, to_row
from rlvr_exp.report.causes.sampling import TWICE
from rlvr_exp.report.data import StepCounts, read_run
from rlvr_exp.report.evidence import Evidence, Share, evidence
from rlvr_exp.report.tasks import reference_answers

KEPT = Path(__file__).with_name("kept")
NODES = (
    "model", "data", "verifier", "sandbox", "reward", "algorithm", "curriculum", "environment", "evaluation", "optimizer",
    "scheduler",
)  # fmt: skip
COLUMNS = (
    "step", "loss", "learning_rate", "grad_norm", "grad_norm/after", "entropy", "kl", "kl/old", "clip/low", "clip/high",
    "samples/trained", "tokens/completion_mean", "reward/mean", "reward/std", "guard/reward", "guard/loss", "guard/gradient",
    "value/explained_variance", "time/step", "time/verify",
)  # fmt: skip
SHORT = 300
"""Characters of a text that is kept."""


def keep(run_dir: Path, file: Path) -> None:
    run = read_run(run_dir)
    write(evidence(run, reference_answers(run)), file)


def write(seen: Evidence, file: Path) -> None:
    ends = {"before": seen.before, "after": seen.after}
    texts = _Texts(seen)
    kept = {
        "config": {name: seen.config[name] for name in ("stage", *NODES) if seen.config.get(name)},
        "manifest": {
            "model": {
                name: seen.of_model(name) for name in ("total", "trained", "trained_by_part") if seen.of_model(name)
            },
            "train": seen.manifest.get("train") or {},
        },
        "summary": {name: seen.summary.get(name) for name in ("status", "steps", "reason")},
        "metrics": [{name: row[name] for name in COLUMNS if name in row} for row in seen.metrics],
        "steps": [texts.counts(one) for one in seen.step_counts],
        "ends": {when: texts.counts(one) for when, one in ends.items() if one is not None},
        "changed": [seen.changed.count, seen.changed.of],
        "change": seen.change,
        "rollouts": pack([texts.row(row) for row in seen.rollouts]),
        "measured": pack([texts.row(row) for row in seen.measured]),
        "golds": texts.golds,
    }
    file.write_text(json.dumps(_short(kept), separators=(",", ":")) + "\n")


def kept(path: Path) -> Evidence:
    read = json.loads(path.read_text())
    rollouts, measured = (
        [from_row(RolloutRow, row) for row in unpack(read[name])] for name in ("rollouts", "measured")
    )
    return Evidence(
        metrics=read["metrics"],
        step_counts=[StepCounts(**one) for one in read["steps"]],
        rollouts=rollouts,
        **{when: StepCounts(**one) for when, one in read["ends"].items()},
        measured=measured,
        changed=Share(*read["changed"]),
        change=read["change"],
        golds=read["golds"],
        config=read["config"],
        summary=read["summary"],
        manifest=read["manifest"],
    )


class _Texts:
    """Short names for texts and tasks that no cause reads."""

    def __init__(self, seen: Evidence):
        self._golds = {task: gold.strip() for task, gold in seen.golds.items()}
        self._stop = [text for text in seen.option("algorithm.stop", []) or [] if text]
        self._names: dict[str, str] = {}
        self.golds: dict[str, str] = {}

    def row(self, row: RolloutRow) -> dict[str, Any]:
        task, text, leaks = row.completion.task.id, row.completion.text, ""
        gold = self._golds.get(task, "")
        read = row.completion.truncated or row.verdict.bucket == "parse" or not text.strip()
        shown = text[:SHORT] if read else self._name(text.strip())
        cut = row.completion.truncated or any(one in gold for one in self._stop)
        if gold and (gold in row.prompt or gold == text.strip() or cut):
            leaks = gold[:SHORT] if gold in row.prompt else ""
            self.golds[self._name(task)] = gold[:SHORT] if leaks or cut else self._name(gold)
            shown = self.golds[self._name(task)] if gold == text.strip() else shown
        stops = "".join(one for one in self._stop if one in text and one not in shown)
        marks = TWICE.search(row.prompt)
        prompt = self._name(row.prompt) + (marks[0] if marks else "") + leaks
        return {
            **to_row(row), "task": self._name(task), "family": row.completion.task.family, "prompt": prompt, "completion": shown + stops, "log": "",
            "terms": {}, "about": None, "version": None,
        }  # fmt: skip

    def counts(self, one: StepCounts) -> dict[str, Any]:
        tasks = {self._name(task): count for task, count in one.tasks.items()}
        return {**vars(one), "verdicts": dict(one.verdicts), "tasks": tasks, "families": {}}

    def _name(self, text: str) -> str:
        return self._names.setdefault(text, f"n{len(self._names)}")


DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
NULLABLE = ("bucket", "rule", "reward", "advantage")


def pack(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows as columns: runs of equal values with their lengths, a digit for each value of a few, or all values."""
    columns = {name: _short([row.get(name) for row in rows]) for name in (rows[0] if rows else ())}
    return {name: _packed(values) for name, values in columns.items()}


def _packed(values: list[Any]) -> dict[str, Any]:
    """The shortest of the three forms."""
    kinds = list({repr(value): value for value in values}.values())
    forms: list[dict[str, Any]] = [
        {"all": values},
        {"runs": [(value, len(list(run))) for value, run in groupby(values)]},
    ]
    if len(kinds) <= len(DIGITS):
        digits = {repr(value): digit for value, digit in zip(kinds, DIGITS, strict=False)}
        forms.append({"of": kinds, "at": "".join(digits[repr(value)] for value in values)})
    return min(forms, key=lambda form: len(json.dumps(form)))


def _unpacked(column: dict[str, Any]) -> list[Any]:
    if "runs" in column:
        return [value for value, count in column["runs"] for _ in range(count)]
    return column["all"] if "all" in column else [column["of"][DIGITS.index(digit)] for digit in column["at"]]


def unpack(packed: dict[str, Any]) -> list[dict[str, Any]]:
    columns = {name: _unpacked(column) for name, column in packed.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [{name: value for name, value in row.items() if value is not None or name in NULLABLE} for row in rows]


def _short(value: Any) -> Any:
    """Numbers to four digits."""
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_short(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]))
