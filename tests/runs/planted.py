"""Run directories of a study as if they had been run: each task of a run passes or not as a function says."""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from completions import completion

from rlvr_exp.config.compose import compose, compose_lenient
from rlvr_exp.config.load import to_yaml
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.evaluation.saved import save
from rlvr_exp.launch.resume import data_fingerprints
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.manifest import initial_weights
from rlvr_exp.records.rollout_files import EvalSample, When
from rlvr_exp.runs import study
from rlvr_exp.runs.executors import Command, Feed, Local
from rlvr_exp.runs.study import Job, JobRun

TASKS = 60


def plant(
    root: Path, job: Job, passes: Callable[[int], bool], rollouts: int = 64, tasks: int = TASKS, **more: Any
) -> JobRun:
    """A completed run with an evaluation after training, in `root / job.name`; `more`: of its summary."""
    return plant_in(root / job.name, job, passes, rollouts, tasks, **more)


def plant_in(
    directory: Path, job: Job, passes: Callable[[int], bool], rollouts: int = 64, tasks: int = TASKS, **more: Any
) -> JobRun:
    directory.mkdir(parents=True)
    after = evaluated(directory, "after", passes, range(tasks))
    summary = {"stage": "grpo", "status": "completed", "steps": 2, "seconds": 3.0, "after": after, **more}
    write_json(directory / "summary.json", summary)
    options = dict(word.split("=") for word in job.own if "." in word)
    write_text(directory / "config.yaml", f"stage: grpo\nseed: {job.seed}\noptions: {options}\n")
    rows = [f'{{"step": {step}, "samples/sampled": {rollouts}, "tokens/completion_mean": 10.0}}' for step in (1, 2)]
    write_text(directory / "metrics.jsonl", "\n".join(rows) + "\n")
    return JobRun(job, directory, 0, summary)


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


def known_by(directory: Path, words: Sequence[str]) -> None:
    """Give a planted run the configuration and the manifest by which a study finds it again."""
    checked = compose(words)
    write_text(directory / "config.yaml", to_yaml(checked))
    data = {split: {"fingerprint": found} for split, found in data_fingerprints(checked.config).items()}
    write_json(directory / "manifest.json", {"data": data, "start": initial_weights(checked.config), "versions": {}})


class Fed(Feed):
    """Commands of one word each, one after the other; `began` is called with each."""

    def __init__(self, place: Path, **words: str):
        self.waiting = {name: Command((word,), place / f"{name}.txt") for name, word in words.items()}
        self.events: list[tuple[str, int | None]] = []
        self.began: Callable[[], None] = lambda: None

    def next(self) -> tuple[str, Command] | None:
        if not self.waiting:
            return None
        name = next(iter(self.waiting))
        self.events.append((name, None))
        self.began()
        return name, self.waiting.pop(name)

    def ended(self, name: str, code: int) -> None:
        self.events.append((name, code))


def plant_run(words: Sequence[str], passes: Callable[[int], bool]) -> None:
    """The run of a command, as if it had been started."""
    directory = Path(next(word for word in words if word.startswith("run.dir=")).removeprefix("run.dir="))
    arm, _, seed = directory.name.rpartition("_seed")
    stage = next(word for word in words if word.startswith("+stage=")).removeprefix("+stage=")
    plant_in(directory, Job(arm, int(seed.partition("_")[0]), (), ()), passes, stage=stage)
    known_by(directory, words)


composed = cache(compose_lenient)
read_data, DATA = data_fingerprints, dict[str, dict[str, str]]()


def known_data(config: Any) -> dict[str, str]:
    """The fingerprints of the data of a configuration, whose content no test of a planter changes."""
    if (key := repr(config.data)) not in DATA:
        DATA[key] = read_data(config)
    return DATA[key]


class Planter:
    """In place of the executor's processes; the one `lost` completes, and nobody hears of it.

    Commands are composed once, and data are read once, for all tests of this process.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        failing: str = "",
        lost: str = "",
        passes: Callable[[str, int], bool] = lambda _, task: bool(task % 2),
    ):
        self.ran, self.words = list[str](), list[str]()
        self.passes = passes
        self.failing, self.lost = failing, lost
        monkeypatch.setattr(Local, "run", lambda _, *given: self.run(*given))
        monkeypatch.setattr(study, "compose_lenient", composed)
        for module in (study, sys.modules[__name__]):
            monkeypatch.setattr(module, "data_fingerprints", known_data)

    def run(self, feed: Any, _: RunContext) -> None:
        while (found := feed.next()) is not None:
            name, command = found
            self.ran.append(name)
            self.words += command.words
            if name == self.failing:
                feed.ended(name, 3)
                continue
            plant_run(command.words, partial(self.passes, name))
            feed.ended(name, 5 if name == self.lost else 0)


def context_of(root: Path, notes: list[str], words: Sequence[str]) -> RunContext:
    root.mkdir(exist_ok=True)
    write_json(root / "manifest.json", {"command": ["python", "-m", "rlvr_exp", *words]})
    return RunContext(root, lambda event: notes.append(str(event.get("text", ""))))
