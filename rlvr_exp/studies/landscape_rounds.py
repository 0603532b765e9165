"""The runs of a study of the landscape as they come: a training a seed, and once it has ended, measurements around the policy
that it began with and around the one that it ended with."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlvr_exp.config import optimization_studies as options
from rlvr_exp.studies.study import Job, Rounds, Run, Study

TRAINING, BASE, TRAINED = "training", "base", "trained"
"""The arms."""


class LandscapeJobs(options.Landscape, Study):
    """The jobs of the study; what they answer is found elsewhere."""

    def training_jobs(self) -> list[Job]:
        return self.arm(TRAINING, self.training)

    def measuring_jobs(self, seed: int, checkpoint: Path | str) -> list[Job]:
        """Around both ends of a training; the line between them is measured with the base."""
        ends = ((BASE, f"benchmark.other={checkpoint}"), (TRAINED, f"model.path={checkpoint}"))
        return [job for name, word in ends for job in self.arm(name, [*self.measuring, word], [seed])]

    def jobs(self) -> list[Job]:
        """For a plan, with the place of a checkpoint that is not there yet."""
        training = self.training_jobs()
        later = [one for job in training for one in self.measuring_jobs(job.seed, f"{job.name}/checkpoints/latest")]
        return [*training, *(replace(job, open=True) for job in later)]


class LandscapeRounds(Rounds):
    def __init__(self, study: LandscapeJobs):
        self._study = study
        self._next = study.training_jobs()
        self._training = {job.name for job in self._next}
        """Trainings that have not ended."""

    def batch(self) -> Sequence[Job]:
        jobs, self._next = self._next, []
        return jobs

    def left(self) -> int:
        return len(self._next) + 2 * len(self._training)

    def ended(self, run: Run) -> None:
        if run.job.name not in self._training:
            return
        self._training.remove(run.job.name)
        if run.completed:
            self._next += self._study.measuring_jobs(run.job.seed, run.last_checkpoint)
