"""Studies: a question, the runs that it needs, and the answer from their directories. Starts nothing."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.words import one_experiment
from rlvr_exp.core.errors import InputError
from rlvr_exp.report.plots import Drawing
from rlvr_exp.runs.jobs import Job, Run


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
