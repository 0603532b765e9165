"""Run directories of a study as if they had been run: each task of a run passes or not as a function says."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from completions import completion

from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample, When
from rlvr_exp.studies.study import Job, Run

TASKS = 60


def plant(
    root: Path, job: Job, passes: Callable[[int], bool], rollouts: int = 64, tasks: int = TASKS, **more: Any
) -> Run:
    """A completed run with an evaluation after training, in `root / job.name`; `more`: of its summary."""
    return plant_in(root / job.name, job, passes, rollouts, tasks, **more)


def plant_in(
    directory: Path, job: Job, passes: Callable[[int], bool], rollouts: int = 64, tasks: int = TASKS, **more: Any
) -> Run:
    directory.mkdir(parents=True)
    after = evaluated(directory, "after", passes, range(tasks))
    summary = {"stage": "grpo", "status": "completed", "steps": 2, "seconds": 3.0, "after": after, **more}
    write_json(directory / "summary.json", summary)
    options = dict(word.split("=") for word in job.own if "." in word)
    write_text(directory / "config.yaml", f"stage: grpo\nseed: {job.seed}\noptions: {options}\n")
    rows = [f'{{"step": {step}, "samples/sampled": {rollouts}, "tokens/completion_mean": 10.0}}' for step in (1, 2)]
    write_text(directory / "metrics.jsonl", "\n".join(rows) + "\n")
    return Run(job, directory, 0, summary)


def evaluated(
    directory: Path, when: When, passes: Callable[[int], bool], tasks: Iterable[int]
) -> dict[str, dict[str, Any]]:
    """An evaluation of a run, with greedy answers; returns its rates, as the run's summary has them."""
    scored = [
        EvalSample(
            completion(f"t{i}", "passed" if passes(i) else "failed", None if passes(i) else "parse"), "greedy", "p"
        )
        for i in tasks
    ]
    return {name: rate.to_dict() for name, rate in save(directory, when, scored).items()}
