"""Measure how fast the project is on this machine, in pairs with what people use today; a table of ratios."""

from dataclasses import asdict
from typing import Any

from rlvr_exp.benchmarks.contest import Outcome, table
from rlvr_exp.config import build
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.run.job import Job, Result


def run(config: Any, job: Job) -> Result:
    benchmark = build(config.benchmark, sandbox=config.sandbox)
    outcomes: list[Outcome] = []
    for name in benchmark.contests:
        job.progress(kind="phase", name=name, done=len(outcomes), total=len(benchmark.contests))
        outcomes += benchmark.contest(name)
    text = table(outcomes)
    write_json(job.directory / "benchmark.json", [asdict(outcome) for outcome in outcomes])
    write_text(job.directory / "benchmark.md", text + "\n")
    job.progress(kind="note", text=text)
    return Result(metrics={f"ratio/{outcome.name}": asdict(outcome.ratio) for outcome in outcomes})
