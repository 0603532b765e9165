"""What the training stages share: the loop with its collaborators, resuming from a checkpoint, the best step."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from rlvr_exp.config.load import build
from rlvr_exp.config.roles import of_role
from rlvr_exp.config.run import Select
from rlvr_exp.core.sealed import STEP
from rlvr_exp.models.parameters import gathered_weights
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.manifest import resumed_from, run_fingerprint
from rlvr_exp.records.tracking import Files, Tracker
from rlvr_exp.training.checkpoints import Checkpoints, Contents, Policies, placed, restore
from rlvr_exp.training.learner import Learner
from rlvr_exp.training.loop import Feed, Loop, Measurement
from rlvr_exp.training.row_log import RowLog
from rlvr_exp.training.selection import Selection
from rlvr_exp.training.step_log import ResourceTrends, StepClock


@dataclass(frozen=True)
class Training:
    """What a stage trains, and on what."""

    policies: Policies
    learners: Mapping[str, Learner]
    learning: Callable[[int], Sequence[str]]
    """The roles that learn in a step, counted from 0."""
    feed: Feed
    measurements: Sequence[Measurement]
    select: Select
    """How the best step is found."""
    shared: Callable[[], Mapping[str, float]] = dict
    """Metrics since the last row that belong to no role."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Further parts of a checkpoint, by name."""
    ends_phase: Callable[[int], bool] | None = None
    """Whether a phase of the schedule is over after so many steps: a checkpoint is written then."""


def open_tracker(config, context: RunContext) -> Tracker:
    """The tracker of a run that trains, opened before its first evaluation and closed after its last; of a trial, which keeps
    nothing, without a viewer."""
    sink = Files() if config.run.trial else build(config.tracking)
    return Tracker(context.directory, sink, resumed_step(context))


def fit(
    training: Training, config, context: RunContext, tracker: Tracker, clock: StepClock | None = None
) -> tuple[int, dict[str, float]]:
    """Train from the current step to the last; the policies end at their best step where one is selected. `clock`: of a trial,
    which it ends.

    Returns:
        The steps done, including those before the checkpoint, and the last row of metrics.

    Raises:
        GuardStop: no metric named by `run.select.metric` was logged, or the run must not go on.
    """
    context.progress(kind="wait", name="prepare the first step")
    about = run_fingerprint(context.directory)
    checkpoints = Checkpoints(context.directory, config.run.checkpoint, about, training.ends_phase)
    selection = Selection(training.select, checkpoints, tracker)
    contents = Contents(training.policies, training.learners, {**training.parts, "select": selection})
    trends = ResourceTrends(context.directory)

    def shared() -> dict[str, float]:
        return {**training.shared(), **trends.metrics()}

    done = _begin(checkpoints, contents, config, context)
    log = RowLog(tracker, context, training.learners, shared, config.run.log_every_steps, done, contents.named)
    loop = Loop(
        context=context,
        learners=training.learners,
        learning=training.learning,
        feed=training.feed,
        measurements=training.measurements,
        log=log,
        tracker=tracker,
        trends=trends,
        selection=selection,
        checkpoints=checkpoints,
        contents=contents,
        seed=config.seed,
        clock=clock or StepClock(),
    )
    done = loop.run(done, config.algorithm.max_steps)
    if clock is not None:
        return done, tracker.last
    selection.check()
    if training.select.restore:
        _restore_best(selection, training.policies, config)
    return done, tracker.last | selection.metrics()


def _begin(checkpoints: Checkpoints, contents: Contents, config, context: RunContext) -> int:
    """Prepare the learners, with the state of the checkpoint where the run is resumed; returns the steps done."""
    checkpoint = resumed_from(context.directory)
    if checkpoint is not None:
        checkpoints.load(checkpoint, contents, config.model.trust_remote_code)
        context.steps = resumed_step(context) or 0
    folders = {} if checkpoint is None else contents.training(checkpoint)
    for role, learner in contents.learners.items():
        if of_role(config, role).optimizer.gradient_cosine:
            learner.compare_gradients()
        learner.begin(folders.get(role))
    return context.steps


def _restore_best(selection: Selection, policies: Policies, config) -> None:
    if (best := selection.best_path) is None:
        return
    with ExitStack() as stack:
        for policy, _ in placed(policies, best):
            stack.enter_context(gathered_weights(policy.model, write=True))
        restore(policies, best, config.model.trust_remote_code)


def resumed_step(context: RunContext) -> int | None:
    """The step of the checkpoint that the run was resumed from; None for a new run."""
    checkpoint = resumed_from(context.directory)
    return None if checkpoint is None else int(STEP.fullmatch(checkpoint.name)[1])
