"""A search without training: its jobs are planted as runs that succeed by their learning rate, some rows at a time."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
from planted import plant

from rlvr_exp.core.files import write_text
from rlvr_exp.runs.studies import search as search_rounds
from rlvr_exp.runs.studies import trials
from rlvr_exp.runs.studies.search import Search
from rlvr_exp.runs.study import Job, JobRun

GREEDY, STEPS, SMALL = "pass_at_1_greedy", 6, 25
FREE = {"log_uniform": [1e-5, 1e-1]}


def search(**more) -> Search:
    given = {"space": {"optimizer": {"lr": FREE}}, "seeds": [0, 1], "trials": 4, "confirm": [], "metric": GREEDY}
    return Search(command=["+stage=grpo"], **(given | more))


def rate(job: Job) -> float:
    """The learning rate of a job, as the configuration would have it."""
    found = [word for word in job.words if word.startswith("optimizer.lr=")]
    return float(found[-1].partition("=")[2]) if found else 0.1


def success(job: Job) -> float:
    """Highest at a rate of 1e-3, and a little higher for later seeds."""
    from math import log10

    return 0.8 - 0.15 * abs(log10(rate(job)) + 3) + 0.02 * job.seed


def logged(root: Path, job: Job, steps: int) -> Path:
    """The directory of a run that has logged so many steps."""
    directory = root / job.name
    directory.mkdir(exist_ok=True, parents=True)
    rows = [{"step": step, "success/mean": success(job) * step / STEPS} for step in range(1, steps + 1)]
    write_text(directory / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return directory


def stopped(root: Path, job: Job) -> JobRun:
    return JobRun(job, root / job.name, 130, {"status": "interrupted"}, pruned=True)


def completed(root: Path, job: Job) -> JobRun:
    """Its run, which may have been finished before."""
    if not (root / job.name / "summary.json").exists():
        partly = root / job.name
        (partly / "metrics.jsonl").unlink(missing_ok=True)
        if partly.exists():
            partly.rmdir()
        plant(root, job, lambda task: task < SMALL * success(job), tasks=SMALL)
        logged(root, job, STEPS)
    return JobRun(job, root / job.name, 0, json.loads((root / job.name / "summary.json").read_text()))


class Broken(Exception):
    """The search was killed."""


def drive(
    study: Search,
    root: Path,
    seed: int = 0,
    failing: Callable[[Job], bool] = lambda _: False,
    kill_after: int = 10**6,
    kill_at_stop: bool = False,
) -> list[JobRun]:
    """All runs of a search, one at a time, each logged step by step.

    Args:
        kill_after: so many steps.
        kill_at_stop: once a run is not to go on, before it has ended.
    """
    rounds, runs, events = study.rounds(root, seed), list[JobRun](), 0
    while batch := rounds.batch():
        for one in batch:
            if isinstance(one, JobRun):
                runs.append(one)
                continue
            run = None
            for steps in range(1, STEPS + 1):
                events += 1
                if events > kill_after:
                    raise Broken
                if not (root / one.name / "summary.json").exists():
                    directory = logged(root, one, steps)
                    if one.name in rounds.unwanted({one.name: directory}):
                        if kill_at_stop:
                            raise Broken
                        run = stopped(root, one)
                        break
            if failing(one):
                run = JobRun(one, root / one.name, 3, {"status": "stopped"})
            runs.append(run or completed(root, one))
            rounds.ended(runs[-1])
    return runs


@pytest.fixture(scope="module")
def unchecked():
    """Configurations are not composed; the unchanged command has a learning rate of 0.1. Trials are kept in memory, which a
    search that is killed by an exception leaves as SQLite would, in a tenth of the time."""
    kept: dict[Path, optuna.storages.InMemoryStorage] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "storage", lambda root: kept.setdefault(root, optuna.storages.InMemoryStorage()))
        patch.setattr(search_rounds, "check", lambda jobs, metric: [SimpleNamespace() for _ in jobs])
        patch.setattr(search_rounds, "resolved", lambda _: {"optimizer": {"lr": 0.1}})
        patch.setattr(search_rounds, "fingerprint", lambda _: "f")
        yield


def names(runs: Sequence[JobRun]) -> list[str]:
    return [run.job.name for run in runs]


def stored(root: Path) -> list[tuple[str, dict[str, float], float | None, dict[int, float]]]:
    """State, values, result and what was reported of each trial, as Optuna has them."""
    storage = trials.storage(root)
    (name,) = optuna.get_all_study_names(storage)
    found = optuna.load_study(study_name=name, storage=storage).trials
    return [(one.state.name, one.params, one.value, one.intermediate_values) for one in found]
