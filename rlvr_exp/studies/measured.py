"""Studies that train and then measure: once a training has completed, the runs that measure its policy come."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rlvr_exp.config import study as options
from rlvr_exp.studies.study import Job, Listed, Rounds, Run, Study


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
