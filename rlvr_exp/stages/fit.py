"""What the training stages share: resuming from a checkpoint, the best step, held-out success during training."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from rlvr_exp.algorithms.resumable import Resumable
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.core.phase import EVALUATE, phase
from rlvr_exp.core.sealed import STEP
from rlvr_exp.evaluation.evaluate_policy import evaluate_policy
from rlvr_exp.evaluation.leakage import check_leakage
from rlvr_exp.evaluation.metrics import rates_from
from rlvr_exp.models.zero3 import gathered_weights
from rlvr_exp.records.context import RunContext
from rlvr_exp.records.manifest import resumed_from
from rlvr_exp.stages.components import RunComponents, held_out_tasks
from rlvr_exp.training.checkpoints import TRAINING, Checkpoints, restore
from rlvr_exp.training.saving import BestCheckpoint, EvalFn

SUCCESS = ("pass_at_1", "pass_at_1_greedy")


def resumed_step(context: RunContext) -> int | None:
    """The step of the checkpoint that the run was resumed from; None for a new run."""
    checkpoint = resumed_from(context.directory)
    return None if checkpoint is None else int(STEP.fullmatch(checkpoint.name)[1])


def fit(
    trainer: Resumable,
    checkpoints: Checkpoints,
    best_checkpoint: BestCheckpoint,
    components: RunComponents,
    config,
    context: RunContext,
) -> int:
    """Train from the current step to the last; the policy ends at its best step where the selection is active.

    Returns:
        The steps done, including those before the checkpoint.

    Raises:
        GuardStop: steps were left and none was trained, or no metric named by `run.select.metric` was logged.
    """
    checkpoints.of(trainer)
    checkpoint, before, folder = resumed_from(context.directory), resumed_step(context) or 0, None
    if checkpoint is not None:
        checkpoints.load(checkpoint, components.policy, config.model.trust_remote_code)
        folder, context.steps = str(checkpoint / TRAINING), before
    done, wanted = before, config.algorithm.max_steps
    if done < wanted and not best_checkpoint.stopped:
        trainer.train(resume_from_checkpoint=folder)
        done = trainer.state.global_step
        if done <= before:
            raise GuardStop(f"step {before} of {wanted}: steps were left and none was trained; log.txt may say why")
    best_checkpoint.check()
    if (best := best_checkpoint.best_path) is not None:
        with gathered_weights(components.policy.model, write=True):
            restore(components.policy, best, config.model.trust_remote_code)
    return done


def held_out_success(components: RunComponents, config, context: RunContext) -> EvalFn:
    """Returns a function that evaluates verified success on the tasks of `run.select`, which no reported success
    includes. Writes no file.

    Raises:
        InputError: there is no such split, or it shares tasks with the reported ones.
    """
    wanted = config.run.select
    options = replace(config.evaluation, split=wanted.split, tasks=wanted.tasks, skip=0, samples=wanted.samples)
    tasks = held_out_tasks(components.domain, options) if wanted.every_steps else ()
    check_leakage(tasks, components.held_out)

    def progress(done: int, total: int) -> None:
        with suppress(Interrupted):  # The step ends first, with a checkpoint.
            context.progress(kind="phase", name="evaluate held-out", done=done, total=total)

    def now() -> Mapping[str, float]:
        start, who = time.perf_counter(), (components.policy, components.domain, components.verifier)
        with phase(EVALUATE):
            scored = evaluate_policy(*who, tasks, options, config.model, seed=config.seed, progress=progress)
        rates = rates_from(scored, SUCCESS)
        return {f"held_out/{name}": rate.value for name, rate in rates.items()} | {
            "time/held_out": time.perf_counter() - start
        }

    return now
