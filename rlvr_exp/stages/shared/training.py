"""Training: the order of the tasks, the options of each role, the training loop, resuming, and the best step."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.sft import Examples
from rlvr_exp.config.load import build
from rlvr_exp.config.roles import of_role, team_node
from rlvr_exp.config.run import Select
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.sealed import STEP
from rlvr_exp.core.seeds import derive
from rlvr_exp.core.shares import normalized
from rlvr_exp.curriculum.base import Curriculum, Mixed
from rlvr_exp.models.parameters import gathered_weights
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.manifest import resumed_from, run_fingerprint
from rlvr_exp.records.tracking import Files, Row, Tracker
from rlvr_exp.report.card import card
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.sources import by_source
from rlvr_exp.training.checkpoints import Checkpoints, Contents, Policies, placed, restore
from rlvr_exp.training.example_order import MixedPasses, Order, Passes
from rlvr_exp.training.learner import Learner
from rlvr_exp.training.loop import Feed, Loop, Measurement
from rlvr_exp.training.row_log import RowLog
from rlvr_exp.training.selection import Selection
from rlvr_exp.training.step_log import ResourceTrends, StepClock


def mixed_tasks(config: Config, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of the mixed sources, or all tasks without a mixture. Raises InputError if a source has no tasks."""
    if not config.data.mix:
        return [*tasks]
    kept = {task.id for own in by_source(tasks, config.data.mix).values() for task in own}
    return [task for task in tasks if task.id in kept]


def curriculum_of(config: Config, tasks: Sequence[Task]) -> Curriculum:
    """Build the configured curriculum, or one for each source of the mixture.

    Raises:
        InputError: a source lacks tasks, or lacks tasks that its curriculum needs.
    """
    mix = config.data.mix
    if not mix:
        return build(config.curriculum, tasks=tasks, seed=config.seed)
    found = by_source(tasks, mix)
    parts = {source: _of_source(config, source, own) for source, own in found.items()}
    return Mixed(parts, normalized(mix), {task.id: source for source, own in found.items() for task in own})


def _of_source(config: Config, source: str, tasks: Sequence[Task]) -> Curriculum:
    """Each source has its own seed. With a common seed, sources of the same size would be shuffled alike."""
    try:
        return build(config.curriculum, tasks=tasks, seed=derive(config.seed, "source", source))
    except InputError as fault:
        problems = (replace(one, what=f"{one.what} among those of {source!r}") for one in fault.problems)
        raise InputError(*problems) from fault


def example_order(config: Config, examples: Examples) -> Callable[..., Order]:
    """Return a function that makes the order of the examples from a random key. Raises InputError if a source has no
    example."""
    mix = config.data.mix
    if not mix:
        return partial(Passes, len(examples))
    indices = examples.by(lambda task: task.source)
    if absent := [source for source in mix if source not in indices]:
        what = "no gold that can be imitated comes from there"
        allowed = ", ".join(f"{source} ({len(own)} golds)" for source, own in indices.items())
        raise InputError(InputProblem("data.mix", what, ", ".join(absent), allowed or "no golds at all"))
    return partial(MixedPasses, indices, normalized(mix))


def learning_roles(config: Config, roles: Sequence[str]) -> Callable[[int], Sequence[str]]:
    """Return a function from a step, counted from 0, to the roles that learn in it. Without a schedule, all roles learn
    in every step."""
    if (team := team_node(config)) is not None:
        return team.learning
    if not reads(config, "schedule"):
        return lambda step: roles
    schedule: Any = getattr(config, "schedule", None)  # A node of a domain.
    turns = schedule.learn or [*reversed(roles)]  # The role that acts last learns first.
    return lambda step: schedule.learning(step, turns)


def learner_options(config: Config, role: str, roles: Sequence[str]) -> Config:
    """The configuration of one role: its own nodes, steps, groups and group size."""
    config = of_role(config, role)
    team, algorithm = team_node(config), config.algorithm
    if team is None and not reads(config, "schedule"):
        return config
    learning = learning_roles(config, roles)
    steps = max(1, sum(role in learning(step) for step in range(algorithm.max_steps)))
    sizes = {"max_steps": steps}
    if team is not None:
        sizes |= team.sizes(role, algorithm)
    return replace(config, algorithm=replace(algorithm, **sizes))


def algorithm_of(config: Config, role: str, roles: Sequence[str]) -> Algorithm:
    own = learner_options(config, role, roles)
    terms = getattr(own.reward, "terms", {}) if reads(config, "reward") else {}  # A user's own reward may have none.
    weights = {name: term.weight for name, term in terms.items()}
    limit, checkpoint = own.model.max_completion_tokens, own.model.path
    return build(own.algorithm, max_completion_tokens=limit, checkpoint=checkpoint, term_weights=weights)


@dataclass(frozen=True)
class TrainingInputs:
    """The policies that a stage trains, and the inputs of their training."""

    policies: Policies
    learners: Mapping[str, Learner]
    learning: Callable[[int], Sequence[str]]
    """The roles that learn in a step, counted from 0."""
    feed: Feed
    measurements: Sequence[Measurement]
    select: Select
    """Options of the search for the best step."""
    shared: Callable[[], Mapping[str, float]] = dict
    """Metrics since the last row that belong to no role."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Further parts of a checkpoint, by name."""
    ends_phase: Callable[[int], bool] | None = None
    """Whether a phase of the schedule ends after this many steps. The run then writes a checkpoint."""
    meanwhile: Callable[[int], AbstractContextManager[None]] = lambda step: nullcontext()
    """Collects later rollouts during the updates of a step."""


def open_tracker(config: Config, context: RunContext) -> Tracker:
    """Open the tracker of a training run, before its first evaluation. A trial has no viewer, because it keeps
    nothing."""
    sink = Files() if config.run.trial else build(config.tracking)
    return Tracker(context.directory, sink, resumed_step(context))


def fit(
    training: TrainingInputs, config: Config, context: RunContext, tracker: Tracker, clock: StepClock | None = None
) -> tuple[int, Row]:
    """Train from the current step to the last one. If a best step is selected, the policies end with its weights.

    Args:
        clock: the clock of a trial, which ends the training.

    Returns:
        The steps done, including those before the checkpoint, and the last row of metrics.

    Raises:
        GuardStop: the metric `run.select.metric` was never logged, or a guard stopped the run.
    """
    context.progress(kind="wait", name="prepare the first step")
    about = run_fingerprint(context.directory)
    checkpoints = Checkpoints(
        context.directory, config.run.checkpoint, about, training.ends_phase, partial(card, context.directory)
    )
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
        meanwhile=training.meanwhile,
    )
    done = loop.run(done, config.algorithm.max_steps)
    if clock is not None:
        return done, tracker.last
    selection.check()
    if training.select.restore:
        _restore_best(selection, training.policies, config)
    return done, tracker.last | selection.metrics()


def _begin(checkpoints: Checkpoints, contents: Contents, config: Config, context: RunContext) -> int:
    """Prepare the learners, from the checkpoint if the run is resumed. Returns the steps done."""
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


def _restore_best(selection: Selection, policies: Policies, config: Config) -> None:
    if (best := selection.best_path) is None:
        return
    with ExitStack() as stack:
        for policy, _ in placed(policies, best):
            stack.enter_context(gathered_weights(policy.model, write=True))
        restore(policies, best, config.model.trust_remote_code)


def resumed_step(context: RunContext) -> int | None:
    """The step of the checkpoint that the run was resumed from. None for a new run."""
    checkpoint = resumed_from(context.directory)
    if checkpoint is None:
        return None
    step = STEP.fullmatch(checkpoint.name)
    assert step is not None  # A checkpoint's folder is named by its step.
    return int(step[1])
