"""The jobs of many runs, their configurations and their directories.

A finished run of the same fingerprint (options, data, initial weights, steps) is reused.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.schema import repeatable, trains
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.launch.resume import data_fingerprints
from rlvr_exp.records import manifest
from rlvr_exp.records.context import COMPLETED, read_summary
from rlvr_exp.records.fingerprint import MAX_STEPS, flat, initial_weights, run_fingerprint, trajectory_options


@dataclass(frozen=True)
class Job:
    """A run of a study, a sweep or a chain, before it starts."""

    arm: str
    seed: Any
    words: tuple[str, ...]
    """Its command, but for its directory."""
    own: tuple[str, ...]
    """Those of them by which it differs from other jobs."""
    open: bool = False
    """In a plan: what it differs by is not known before it starts."""
    label: str = ""
    """Its name, if not the one of its arm and seed."""

    @property
    def name(self) -> str:
        return self.label or f"{self.arm}_seed{self.seed}"

    @property
    def text(self) -> str:
        return " ".join(self.own) or "(no sweep)"


@dataclass(frozen=True)
class Run:
    """A job that has been run, well or not."""

    job: Job
    directory: Path
    code: int
    summary: Mapping[str, Any]
    reused: bool = False
    """It was there already."""
    pruned: bool = False
    """The study has stopped it, since it promised too little."""

    @property
    def completed(self) -> bool:
        return self.summary.get("status") == COMPLETED

    @property
    def last_checkpoint(self) -> Path:
        """Of the policy that a training ended with: its best one, where it looked for that."""
        best, latest = (self.directory / "checkpoints" / name for name in ("best", "latest"))
        return (best if best.exists() else latest).resolve()


@dataclass(frozen=True)
class Place:
    """A job and its directory."""

    job: Job
    directory: Path
    reused: bool
    """A finished run of the same fingerprint is there."""
    checked: Checked


def check(jobs: Sequence[Job], metric: str = "") -> list[Checked]:
    """The configurations of all jobs.

    Args:
        metric: the rate that the study is about, which its evaluations have to measure; '': none.

    Raises:
        InputError: with every problem of any, once.
    """
    of_words = {words: compose_lenient(words) for words in dict.fromkeys(job.words for job in jobs)}
    checked = [of_words[job.words] for job in jobs]
    found = [
        replace(problem, where=f"study, arm {job.arm}: {problem.where}")
        for job, one in zip(jobs, checked, strict=True)
        for problem in (*one.problems, *_other_stage(one), *_unmeasured(one, metric))
    ]
    if found:
        raise InputError(*dict.fromkeys(found))
    return checked


def _other_stage(checked: Checked) -> Iterator[InputProblem]:
    if not checked.problems and not repeatable(checked.config.stage):
        allowed = "a stage that trains, evaluate, benchmark"
        yield InputProblem("stage", "no stage for the runs of a study", checked.config.stage, allowed)


def _unmeasured(checked: Checked, metric: str) -> Iterator[InputProblem]:
    config = checked.config
    if checked.problems or not (trains(config.stage) or config.stage == "evaluate"):
        return
    if word := config.evaluation.lacks(metric):
        yield InputProblem("evaluation", f"does not measure {metric}, by which the study answers", remedy=word)


def places(jobs: Sequence[Job], checked: Sequence[Checked], root: Path, reuse: Sequence[str]) -> list[Place]:
    """A directory for each job: below the root, or of a finished run of the same fingerprint in a folder of `reuse`.

    Raises:
        InputError: a folder of `reuse` does not exist.
    """
    problems = [
        InputProblem("study.reuse", "no such folder", name, "folders with run directories")
        for name in reuse
        if not Path(name).is_dir()
    ]
    if problems:
        raise InputError(*problems)
    finished = dict(reversed([*_finished([root]), *_finished(map(Path, reuse))]))  # Its own runs come before others.
    found, data = [], dict[str, dict[str, str]]()
    for job, one in zip(jobs, checked, strict=True):
        known = finished.get(fingerprint(one, data)) if finished and not job.open else None
        found.append(Place(job, known or _free(root / job.name, one, data), known is not None, one))
    return found


def _free(directory: Path, checked: Checked, data: dict[str, dict[str, str]]) -> Path:
    """The directory, unless a run is in it that ours cannot go on from, of a study that has been changed since: then another
    name."""
    if not (directory / "config.yaml").is_file() or _goes_on(directory, checked, data):
        return directory
    return directory.with_name(f"{directory.name}_{fingerprint(checked, data)[:8]}")


def _goes_on(directory: Path, checked: Checked, data: dict[str, dict[str, str]]) -> bool:
    """Whether the run in a directory has the options, data and initial weights of ours, and no more steps."""
    config = yaml.safe_load((directory / "config.yaml").read_text(encoding="utf-8"))
    if _options(config) != _options(resolved(checked)):
        return False
    if not _identified(directory):
        return True
    there, (_, ours, start, steps) = run_fingerprint(directory), _parts(checked, data)
    return _hash(there["data"], there["start"]) == _hash(ours, start) and (there["max_steps"] or 0) <= (steps or 0)


def fingerprint(checked: Checked, known: dict[str, dict[str, str]] | None = None) -> str:
    """That a run of this configuration would have; `known`: of data that was read already, extended."""
    return _hash(*_parts(checked, {} if known is None else known))


def _parts(checked: Checked, known: dict[str, dict[str, str]]) -> tuple[Any, Any, Any, Any]:
    """Options, data, initial weights and steps, as `run_fingerprint` has them."""
    options, config = resolved(checked), checked.config
    if (named := _hash(options["data"])) not in known:
        known[named] = data_fingerprints(config)
    return _options(options), known[named], initial_weights(config), flat(options).get(MAX_STEPS)


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    """What decides about a run's result: besides its trajectory, at which step of it the run ends with its best weights."""
    chosen = {key: value for key, value in flat(values).items() if key.startswith("run.select.")}
    return trajectory_options(values) | chosen


def _hash(*parts: object) -> str:
    return content_hash(json.loads(json.dumps(parts)))  # As files hold them.


def _identified(directory: Path) -> bool:
    """Whether it has recorded its data and its initial weights; what measures no policy has not, nor a folder of others."""
    file = directory / manifest.NAME
    return file.is_file() and {"data", "start"} <= json.loads(file.read_text(encoding="utf-8")).keys()


def _finished(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Fingerprint and directory of each completed run that a study can have, at any depth."""
    for folder in folders:
        for path in sorted(folder.rglob("summary.json")):
            summary = read_summary(path.parent) or {}
            ours = summary.get("status") == COMPLETED and repeatable(summary.get("stage", ""))
            if ours and _identified(path.parent):
                run = run_fingerprint(path.parent)
                options = _options(yaml.safe_load((path.parent / "config.yaml").read_text(encoding="utf-8")))
                yield _hash(options, run["data"], run["start"], run["max_steps"]), path.parent
