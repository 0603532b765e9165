"""A cascade: a writer of Dafny bodies and an annotator that makes Dafny prove them, both trained on the proof.

Evaluate the cascade, train the roles that learn (`cascade.mode`), evaluate a second time. The loop of the run is
`train`; rlvr_exp.stages.cascade_roles trains a role in a step exactly as a policy that learns alone.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import TrainerControl, TrainerState

from rlvr_exp.algorithms.role_scheduler import RoleScheduler
from rlvr_exp.config import build
from rlvr_exp.config.cascade import starts
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.models.zero3 import gathered_weights
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.fingerprint import run_fingerprint
from rlvr_exp.records.manifest import resumed_from
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.cascade import ROLES
from rlvr_exp.stages.cascade_components import CascadeComponents, build_components, evaluate_and_save, evaluate_before
from rlvr_exp.stages.cascade_learning import CascadeSteps, collector_of, held_out_success
from rlvr_exp.stages.cascade_roles import Learner, Learners
from rlvr_exp.stages.fit import resumed_step
from rlvr_exp.training.checkpoints import Checkpoints, restore
from rlvr_exp.training.guards_trend import ResourceTrends
from rlvr_exp.training.saving import BestCheckpoint, CheckpointWriter


def run(config, context: RunContext) -> StageResult:
    options = config.cascade
    with build_components(config, context, starts(config)) as components:
        before = context.before = evaluate_before(components, config, context, options.attempts)
        steps, final = train(components, config, context)
        after = evaluate_and_save(components, config, context, "after", options.attempts)
    return StageResult(before=before, after=after, metrics=final, steps=steps)


def train(components: CascadeComponents, config, context: RunContext) -> tuple[int, dict[str, float]]:
    """Train the roles for the configured steps; returns the steps done and the last row of metrics."""
    checkpoints = Checkpoints(context.directory, config.run.checkpoint, run_fingerprint(context.directory))
    tracker = Tracker(context.directory, build(config.tracking), resumed_step(context))
    best_checkpoint = BestCheckpoint(
        config.run.select, checkpoints, tracker, held_out_success(components, config, context)
    )
    names = [role for role in ROLES if config.cascade.steps_of(role, config.algorithm.max_steps)]
    models = {role: policy.model for role, policy in components.policies.items()}
    try:
        with TemporaryDirectory() as scratch, RoleScheduler(models, config.seed) as roles:
            collector = collector_of(components, config, context)
            steps = CascadeSteps(
                components,
                config,
                context,
                collector,
                tracker,
                ResourceTrends(context.directory, config.run.guards.trend_steps),
            )
            for name in names:
                roles.activate(name)
                steps.learners[name] = Learner(name, components, config, steps, Path(scratch) / name)
            learners = Learners(roles, steps.learners, Path(scratch))
            checkpoints.of(learners)
            guards = {f"{name}/guard": one.guards.updates for name, one in steps.learners.items()}
            checkpoints.add({"steps": steps, "select": best_checkpoint, **guards, **collector.parts})
            checkpoint_writer = CheckpointWriter(checkpoints, components.policies, context, best_checkpoint)
            done = _go_on(components, config, context, checkpoints, learners)
            done = _steps(done, config, roles, steps, best_checkpoint, checkpoint_writer)
    finally:
        tracker.close()
    best_checkpoint.check()
    if (best := best_checkpoint.best_path) is not None:
        with ExitStack() as stack:
            for model in dict.fromkeys(models.values()):
                stack.enter_context(gathered_weights(model, write=True))
            restore(components.policies, best, config.model.trust_remote_code)
    steps.check(done, config.algorithm.max_steps)
    return done, tracker.last | best_checkpoint.metrics()


def _go_on(
    components: CascadeComponents, config, context: RunContext, checkpoints: Checkpoints, learners: Learners
) -> int:
    """Restore the checkpoint, where the run is resumed; returns the steps done before it."""
    checkpoint = resumed_from(context.directory)
    if checkpoint is not None:
        checkpoints.load(checkpoint, components.policies, config.model.trust_remote_code)
        context.steps = resumed_step(context) or 0
    learners.begin()
    return context.steps


def _steps(
    done: int,
    config,
    roles: RoleScheduler,
    steps: CascadeSteps,
    best_checkpoint: BestCheckpoint,
    checkpoint_writer: CheckpointWriter,
) -> int:
    """The loop: each role that learns in a step takes its turn, then come the step's row, the best step, the
    checkpoint."""
    wanted = config.algorithm.max_steps
    for step in range(done, wanted):
        if best_checkpoint.stopped:
            break
        began = time.perf_counter()
        steps.begin(step)
        for role in config.cascade.learning(step):
            if roles.train(role, 1) != config.cascade.steps_of(role, step + 1):
                raise GuardStop(
                    f"step {step + 1} of {wanted}: the {role} was to learn and did not; log.txt may say why"
                )
        steps.end(time.perf_counter() - began)
        _end_of_step(step + 1, wanted, steps, best_checkpoint, checkpoint_writer)
        done = step + 1
    checkpoint_writer.on_train_end(None, TrainerState(global_step=done, max_steps=wanted), TrainerControl())
    return done


def _end_of_step(
    step: int, wanted: int, steps: CascadeSteps, best_checkpoint: BestCheckpoint, checkpoint_writer: CheckpointWriter
) -> None:
    """Call the callbacks at the end of a step, in the order of a trainer."""
    state, control = TrainerState(global_step=step, max_steps=wanted), TrainerControl()
    if steps.log():
        best_checkpoint.on_log(None, state, control)
    best_checkpoint.on_step_end(None, state, control)
    checkpoint_writer.on_step_end(None, state, control)
    if control.should_save:
        checkpoint_writer.on_save(None, state, control)
