"""Studies: a question, the jobs that it needs, their directories, and the answer. Starts nothing.

A finished run of the same fingerprint (options, data, initial weights, steps) is reused.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from rlvr_exp.config import study as options
from rlvr_exp.config.compose import compose_lenient
from rlvr_exp.config.load import resolved
from rlvr_exp.config.schema import repeatable, trains
from rlvr_exp.config.schema_check import Checked
from rlvr_exp.config.words import one_experiment
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.hashing import content_hash
from rlvr_exp.launch.resume import data_fingerprints
from rlvr_exp.records import manifest
from rlvr_exp.records.context import COMPLETED, read_summary
from rlvr_exp.records.manifest import MAX_STEPS, flat, initial_weights, run_fingerprint, trajectory_options
from rlvr_exp.report.plots import Drawing


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


@dataclass(frozen=True)
class Findings:
    """What a study found out."""

    answer: Sequence[str]
    """Sentences, the first of which answers the question, or says why it cannot be answered."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Rows by the name of their file."""
    plots: Mapping[str, Drawing] = field(default_factory=dict)


class Rounds(ABC):
    """The jobs of a study as they come: which are next may depend on how those before them ended."""

    @abstractmethod
    def batch(self) -> Sequence[Job | Run]:
        """What can be started next, and runs that are there and not to be started; empty: nothing before a job that runs
        has ended, or nothing any more."""

    @abstractmethod
    def left(self) -> int:
        """How many jobs are to come after those that came, at most."""

    def refused(self, fault: InputError) -> Sequence[Job | Run]:
        """What comes in place of the last batch, whose configuration cannot work."""
        raise fault

    def unwanted(self, running: Mapping[str, Path]) -> Collection[str]:
        """Jobs that are not to go on, by what those that run have written into their directories so far."""
        return ()

    def ended(self, run: Run) -> None:  # noqa: B027 A list of jobs learns nothing from it.
        """A job has ended, or was there already."""


class Listed(Rounds):
    """All at once."""

    def __init__(self, jobs: Sequence[Job]):
        self._jobs = [*jobs]

    def batch(self) -> Sequence[Job | Run]:
        jobs, self._jobs = self._jobs, []
        return jobs

    def left(self) -> int:
        return len(self._jobs)


class Study(options.Study, ABC):
    """A question. Derives from the schema of its options."""

    @abstractmethod
    def jobs(self) -> list[Job]:
        """The runs that it needs, those first that others are compared with; in a plan, where rounds name them one by one."""

    def rounds(self, root: Path, seed: int) -> Rounds:
        """How they come, for a study in this folder. Raises InputError: what it needs for that is missing."""
        return Listed(self.jobs())

    def extremes(self) -> list[Job]:
        """Jobs whose configuration is checked before any run: they stand for those that its rounds may name."""
        return []

    @abstractmethod
    def summarise(self, runs: Sequence[Run]) -> Findings:
        """The answer by the runs that completed, of which there is at least one. Reads their directories only."""

    def arm(
        self, name: str, words: Sequence[str], seeds: Sequence[int] | None = None, command: Sequence[str] | None = None
    ) -> list[Job]:
        """The jobs of an arm, one a seed; None: of the study's seeds, by the study's command."""
        begun = self.command if command is None else command
        every = (*begun, *self.words, *words)  # The arm's own last: they decide.
        found = ((seed, f"seed={seed}") for seed in (self.seeds if seeds is None else seeds))
        return [Job(name, seed, (*one_experiment(every), word), (*words, word)) for seed, word in found]


class ArmStudy(options.Arms, Study):
    """A study of arms that its options name."""

    def arm_jobs(self) -> list[Job]:
        """Of the arms that are run, in their order."""
        chosen = {name: words for name, words in self.arms.items() if not self.only or name in self.only}
        return [job for name, words in chosen.items() for job in self.arm(name, words)]


class MeasuredStudy(options.Measured, Study):
    @abstractmethod
    def trainings(self) -> list[Job]:
        """The jobs that train."""

    @abstractmethod
    def measurements(self, training: Job, checkpoint: str) -> list[Job]:
        """The jobs that measure what one of them has trained.

        Args:
            checkpoint: its folder; '' in a plan, where there is none yet.
        """

    def others(self) -> list[Job]:
        """Jobs that need no training, such as those that measure the initial policy."""
        return []

    def jobs(self) -> list[Job]:
        trainings = self.trainings()
        after = [replace(job, open=True) for training in trainings for job in self.measurements(training, "")]
        return [*trainings, *self.others(), *after]

    def rounds(self, root: Path, seed: int) -> Rounds:
        return _TrainedFirst(self.trainings(), self.others(), self.measurements)

    def policy(self, checkpoint: str) -> list[str]:
        """The words that name a trained policy, as far as it is known."""
        return [f"model.path={checkpoint}"] if checkpoint else []

    def measure_arm(self, name: str, words: Sequence[str], seeds: Sequence[int] | None = None) -> list[Job]:
        """As `arm`, by the command that measures."""
        return self.arm(name, words, seeds, self.measure)


class _TrainedFirst(Rounds):
    def __init__(self, trainings: Sequence[Job], others: Sequence[Job], then: Callable[[Job, str], Sequence[Job]]):
        self._listed = Listed([*trainings, *others])
        self._left = {job.name: job for job in trainings}
        self._then = then
        self._ready = list[Job]()

    def batch(self) -> Sequence[Job | Run]:
        if first := self._listed.batch():
            return first
        ready, self._ready = self._ready, []
        return ready

    def left(self) -> int:
        expected = sum(len(self._then(job, "")) for job in self._left.values())
        return self._listed.left() + len(self._ready) + expected

    def ended(self, run: Run) -> None:
        if (training := self._left.pop(run.job.name, None)) is not None and run.completed:
            self._ready += self._then(training, str(run.last_checkpoint))
