"""The training loop of every stage that trains: a step, from top to bottom.

A step is one optimizer update of each role that learns in it. One batch of rollouts may serve several updates, and a
checkpoint may fall between them.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlvr_exp.core.errors import Interrupted
from rlvr_exp.core.phase import UPDATE, go_over
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.distributed import any_rank
from rlvr_exp.training.checkpoints import Checkpoints, Contents
from rlvr_exp.training.learner import Learner
from rlvr_exp.training.row_log import RowLog
from rlvr_exp.training.selection import Selection
from rlvr_exp.training.step_log import MEASURING, SAVING, UPDATING, ResourceTrends, StepClock


class Feed(Protocol):
    """The data that the roles learn from."""

    def collect(self, step: int) -> Any:
        """The rollouts of a step, counted from 0, for every role; for imitation the gold answers."""

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Log the collected rollouts, once the learners have taken them."""

    @property
    def rows(self) -> Sequence[RolloutRow]:
        """Rollouts of the last collected step; empty if none are logged."""


@dataclass(frozen=True)
class Measurement:
    """Something measured between steps. It joins the row of its step, if one is due, else it has a row of its own."""

    due: Callable[[int], bool]
    """Whether it is measured after a step, counted from 1."""
    measure: Callable[[], Mapping[str, float]]
    """Its metrics, by name."""


@dataclass(frozen=True)
class Loop:
    """The collaborators of a training run."""

    context: RunContext
    learners: Mapping[str, Learner]
    learning: Callable[[int], Sequence[str]]
    """The roles that learn in a step, counted from 0."""
    feed: Feed
    measurements: Sequence[Measurement]
    log: RowLog
    tracker: Tracker
    trends: ResourceTrends
    selection: Selection
    checkpoints: Checkpoints
    contents: Contents
    seed: int
    clock: StepClock = field(default_factory=StepClock)
    meanwhile: Callable[[int], AbstractContextManager[None]] = lambda step: nullcontext()
    """A step's updates happen inside; the rollouts of a later step may be collected at the same time."""

    def run(self, done: int, steps: int) -> int:
        """Train from step `done` to step `steps`, or until the selection or a trial's clock stops it; returns the steps
        done.

        Raises:
            Interrupted: a stop was requested; a checkpoint is written first.
            GuardStop: the run must not go on.
        """
        for step in range(done, steps):
            if self.selection.stopped:
                break
            with self.clock.timed(UPDATING):
                self._update(step)
            done, last = step + 1, step + 1 == steps or self.clock.over()
            for line in self.trends.step(done, steps):
                self.context.progress(kind="note", text=line)
            for one in self.measurements:
                if one.due(done):
                    with self.clock.timed(MEASURING):
                        self.tracker.log(done, one.measure())
            self.selection.consider(done)  # It may stop the run: then this step is the last, and has a row.
            if last or self.selection.stopped or self.log.due(done):
                self.log.write(done, steps, list(self.feed.rows), self.seed)
            self.selection.consider(done)  # By a metric of the row, where it selects by one.
            self._save(done, steps, last or self.selection.stopped)
            if last:
                break
        return done

    def _update(self, step: int) -> None:
        """Collect rollouts if a role has used up its last, and update every role that learns in the step."""
        self.context.heartbeat()
        go_over(UPDATE)
        learning = {role: self.learners[role] for role in self.learning(step)}
        taking = {role: learner for role, learner in learning.items() if learner.needs_rollouts}
        if taking:
            rollouts = self.feed.collect(step)
            for learner in taking.values():
                learner.take(rollouts)
            self.feed.write(taking)  # Before the updates: should they fail, their rollouts can be read.
        with self.meanwhile(step):
            for learner in learning.values():
                if learner.ready:
                    learner.update()

    def _save(self, step: int, steps: int, ended: bool) -> None:
        """Write a checkpoint if one is due, if the step is the best, if a stop was requested, and at the end."""
        self.context.steps = step  # Rows of metrics may be rarer than steps.
        # All ranks stop at the same step, whenever each received the request; after the last step the evaluation stops.
        stopping = any_rank(self.context.interrupted) and not ended
        if ended:
            for learner in self.learners.values():
                learner.end()
        best = self.selection.is_best(step)
        if ended or stopping or best or self.checkpoints.due(step):
            with self.clock.timed(SAVING):
                self.checkpoints.save(step, self.contents)
        if best:
            self.checkpoints.mark_best(step)
        if stopping:
            raise Interrupted(f"stopped at step {step} of {steps}; a checkpoint was written")
