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
    """Its command without its directory."""
    own: tuple[str, ...]
    """The words by which it differs from other jobs."""
    open: bool = False
    """In a plan: some of its words are known only when it starts."""
    label: str = ""
    """Its name; by default the name of its arm and seed."""

    @property
    def name(self) -> str:
        return self.label or f"{self.arm}_seed{self.seed}"

    @property
    def text(self) -> str:
        return " ".join(self.own) or "(no sweep)"


@dataclass(frozen=True)
class JobRun:
    """A job that has been run, well or not."""

    job: Job
    directory: Path
    code: int
    summary: Mapping[str, Any]
    reused: bool = False
    """The run had completed before."""
    pruned: bool = False
    """The study stopped the run, which was unpromising."""

    @property
    def completed(self) -> bool:
        return self.summary.get("status") == COMPLETED

    @property
    def last_checkpoint(self) -> Path:
        """The best checkpoint if the training selected one, else the latest."""
        best, latest = (self.directory / "checkpoints" / name for name in ("best", "latest"))
        return (best if best.exists() else latest).resolve()


@dataclass(frozen=True)
class PlacedJob:
    """A job and its directory."""

    job: Job
    directory: Path
    reused: bool
    """The directory has a finished run of the same fingerprint."""
    checked: Checked


def check(jobs: Sequence[Job], metric: str = "") -> list[Checked]:
    """The configurations of all jobs.

    Args:
        metric: the rate of the study, which its evaluations must measure; '': none.

    Raises:
        InputError: with each problem of any job.
    """
    of_words = {words: compose_lenient(words) for words in dict.fromkeys(job.words for job in jobs)}
    checked, found = [of_words[job.words] for job in jobs], list[InputProblem]()
    for job, one in zip(jobs, checked, strict=True):
        config, problems = one.config, [*one.problems]
        if not problems and not repeatable(config.stage):
            allowed = "a stage that trains, evaluate, benchmark"
            problems.append(InputProblem("stage", "no stage for the runs of a study", config.stage, allowed))
        measured = not problems and (trains(config.stage) or config.stage == "evaluate")
        if measured and (word := config.evaluation.lacks(metric)):
            what = f"does not measure {metric}, by which the study answers"
            problems.append(InputProblem("evaluation", what, remedy=word))
        found += [replace(problem, where=f"study, arm {job.arm}: {problem.where}") for problem in problems]
    if found:
        raise InputError(*dict.fromkeys(found))
    return checked


def places(jobs: Sequence[Job], checked: Sequence[Checked], root: Path, reuse: Sequence[str]) -> list[PlacedJob]:
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
        found.append(PlacedJob(job, known or _free(root / job.name, one, data), known is not None, one))
    return found


def _free(directory: Path, checked: Checked, data: dict[str, dict[str, str]]) -> Path:
    """The directory, or another name if the directory has a run that this job cannot resume.

    A run can be resumed if it has the same options, data and initial weights, and not more steps.
    """
    file = directory / "config.yaml"
    if not file.is_file():
        return directory
    resumes = _options(yaml.safe_load(file.read_text(encoding="utf-8"))) == _options(resolved(checked))
    if resumes and _identified(directory):
        known, (_, ours, start, steps) = run_fingerprint(directory), _parts(checked, data)
        same = _hash(known["data"], known["start"]) == _hash(ours, start)
        resumes = same and (known["max_steps"] or 0) <= (steps or 0)
    return directory if resumes else directory.with_name(f"{directory.name}_{fingerprint(checked, data)[:8]}")


def fingerprint(checked: Checked, known: dict[str, dict[str, str]] | None = None) -> str:
    """The fingerprint of a run of this configuration. `known`: fingerprints of data that were read before; extended."""
    return _hash(*_parts(checked, {} if known is None else known))


def _parts(checked: Checked, known: dict[str, dict[str, str]]) -> tuple[Any, Any, Any, Any]:
    """Options, data, initial weights and steps, as `run_fingerprint` has them."""
    options, config = resolved(checked), checked.config
    if (named := _hash(options["data"])) not in known:
        known[named] = data_fingerprints(config)
    return _options(options), known[named], initial_weights(config), flat(options).get(MAX_STEPS)


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options that determine a run's result: those of its trajectory, and those that select its best step."""
    chosen = {key: value for key, value in flat(values).items() if key.startswith("run.select.")}
    return trajectory_options(values) | chosen


def _hash(*parts: object) -> str:
    return content_hash(json.loads(json.dumps(parts)))  # As files hold them.


def _identified(directory: Path) -> bool:
    """Whether the manifest has the data and the initial weights. Only runs that load a policy record both."""
    file = directory / manifest.NAME
    return file.is_file() and {"data", "start"} <= json.loads(file.read_text(encoding="utf-8")).keys()


def _finished(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Fingerprint and directory of each completed run below the folders."""
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
    """The result of a study."""

    answer: Sequence[str]
    """Sentences. The first answers the question, or says why the study cannot answer it."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Rows by the name of their file."""
    plots: Mapping[str, Drawing] = field(default_factory=dict)


class Rounds(ABC):
    """The jobs of a study, in batches. The next batch may depend on how earlier jobs ended."""

    @abstractmethod
    def batch(self) -> Sequence[Job | JobRun]:
        """Jobs to start, and earlier runs that are not started again. Empty while running jobs must end first, and at the
        end."""

    @abstractmethod
    def left(self) -> int:
        """The maximum number of further jobs."""

    def refused(self, fault: InputError) -> Sequence[Job | JobRun]:
        """The replacement of the last batch, whose configuration was refused."""
        raise fault

    def unwanted(self, running: Mapping[str, Path]) -> Collection[str]:
        """Names of running jobs to stop, judged by the files in their directories."""
        return ()

    def ended(self, run: JobRun) -> None:  # noqa: B027 A list of jobs ignores it.
        """A job has ended, or had ended before."""


class Listed(Rounds):
    """All jobs at once."""

    def __init__(self, jobs: Sequence[Job]):
        self._jobs = [*jobs]

    def batch(self) -> Sequence[Job | JobRun]:
        jobs, self._jobs = self._jobs, []
        return jobs

    def left(self) -> int:
        return len(self._jobs)


class Study(options.Study, ABC):
    """A question. Derives from the schema of its options."""

    @abstractmethod
    def jobs(self) -> list[Job]:
        """The jobs, the reference first. A study with rounds uses them for its plan."""

    def rounds(self, root: Path, seed: int) -> Rounds:
        """The jobs in batches, for a study in the folder `root`. Raises InputError if something that it needs is missing."""
        return Listed(self.jobs())

    def extremes(self) -> list[Job]:
        """Jobs with extreme values of the rounds, whose configurations are checked before any run."""
        return []

    @abstractmethod
    def summarise(self, runs: Sequence[JobRun]) -> Findings:
        """The answer from the directories of the completed runs; at least one has completed."""

    def arm(
        self, name: str, words: Sequence[str], seeds: Sequence[int] | None = None, command: Sequence[str] | None = None
    ) -> list[Job]:
        """One job per seed. `seeds` and `command` default to those of the study."""
        begun = self.command if command is None else command
        every = (*begun, *self.words, *words)  # The words of the arm come last and override.
        found = ((seed, f"seed={seed}") for seed in (self.seeds if seeds is None else seeds))
        return [Job(name, seed, (*one_experiment(every), word), (*words, word)) for seed, word in found]


class ArmStudy(options.Arms, Study):
    """A study whose options name the arms."""

    def arm_jobs(self) -> list[Job]:
        """The jobs of the chosen arms, in order."""
        chosen = {name: words for name, words in self.arms.items() if not self.only or name in self.only}
        return [job for name, words in chosen.items() for job in self.arm(name, words)]


class MeasuredStudy(options.Measured, Study):
    @abstractmethod
    def trainings(self) -> list[Job]:
        """The jobs that train."""

    @abstractmethod
    def measurements(self, training: Job, checkpoint: str) -> list[Job]:
        """The jobs that measure the trained policy.

        Args:
            checkpoint: its folder; '' in a plan, which has no checkpoint yet.
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
        """The words that load a trained policy."""
        return [f"model.path={checkpoint}"] if checkpoint else []

    def measure_arm(self, name: str, words: Sequence[str], seeds: Sequence[int] | None = None) -> list[Job]:
        """Like `arm`, with the command that measures."""
        return self.arm(name, words, seeds, self.measure)


class _TrainedFirst(Rounds):
    def __init__(self, trainings: Sequence[Job], others: Sequence[Job], then: Callable[[Job, str], Sequence[Job]]):
        self._listed = Listed([*trainings, *others])
        self._left = {job.name: job for job in trainings}
        self._then = then
        self._ready = list[Job]()

    def batch(self) -> Sequence[Job | JobRun]:
        if first := self._listed.batch():
            return first
        ready, self._ready = self._ready, []
        return ready

    def left(self) -> int:
        expected = sum(len(self._then(job, "")) for job in self._left.values())
        return self._listed.left() + len(self._ready) + expected

    def ended(self, run: JobRun) -> None:
        if (training := self._left.pop(run.job.name, None)) is not None and run.completed:
            self._ready += self._then(training, str(run.last_checkpoint))
