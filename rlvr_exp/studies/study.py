"""What a study is: it names the runs that its question needs, and answers from their directories. Runs nothing itself."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvr_exp.config import study as options
from rlvr_exp.config.words import one_experiment
from rlvr_exp.core.errors import InputError
from rlvr_exp.records.context import COMPLETED
from rlvr_exp.report.plots import Drawing


@dataclass(frozen=True)
class Job:
    """A run that a study needs."""

    arm: str
    seed: Any
    words: tuple[str, ...]
    """Its command, but for its directory."""
    own: tuple[str, ...]
    """Those of them by which it differs from other jobs."""
    open: bool = False
    """In a plan: what it differs by is not known before it starts."""

    @property
    def name(self) -> str:
        return f"{self.arm}_seed{self.seed}"

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
