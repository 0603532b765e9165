"""Planted runs of models that were trained from scratch: what each task's gold costs is given."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from completions import completion
from planted import plant

from rlvr_exp.config.scales import BITS
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample
from rlvr_exp.runs.jobs import Job, Run

CHARACTERS = 10


def plant_model(
    root: Path,
    job: Job,
    costs: Sequence[float],
    parameters: int = 1000,
    rows: Sequence[Mapping[str, float]] = ({"step": 2, "tokens/seen": 500.0, "time/step": 1.0},),
    passing: int = 0,
    tokens: int = 30,
    examples: int = 64,
) -> Run:
    """`costs`: bits a character of each task; `passing`: how many of them, the first, pass."""
    run = plant(root, job, lambda task: True, tasks=0)
    scored = [
        EvalSample(
            completion(f"t{i}", "passed" if i < passing else "failed", None if i < passing else "parse"),
            "sampled",
            "p",
            {"gold": {"bits": CHARACTERS * cost, "characters": CHARACTERS, "tokens": tokens - 20, "prompt_tokens": 20}},
        )
        for i, cost in enumerate(costs)
    ]
    rates = {name: rate.to_dict() for name, rate in save(run.directory, "after", scored, ("pass_at_1", BITS)).items()}
    summary = {**run.summary, "stage": "sft", "after": rates}
    write_json(run.directory / "summary.json", summary)
    write_json(run.directory / "manifest.json", {"model": {"total": parameters}, "imitation": {"examples": examples}})
    lines = ["{" + ", ".join(f'"{name}": {value}' for name, value in row.items()) + "}" for row in rows]
    write_text(run.directory / "metrics.jsonl", "\n".join(lines) + "\n")
    return Run(job, run.directory, 0, summary)
