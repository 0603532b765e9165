"""Supervised fine-tuning on gold answers: evaluate, train, evaluate. The policy ends at its best step
(`run.select`)."""

from pathlib import Path
from tempfile import TemporaryDirectory

from trl import SFTConfig

from rlvr_exp.algorithms.arguments import shared_arguments
from rlvr_exp.algorithms.sft import ImitationTrainer
from rlvr_exp.config import build
from rlvr_exp.config.batching import derive
from rlvr_exp.evaluation.leakage import check_leakage
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.fingerprint import run_fingerprint
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.stages.components import (
    RunComponents,
    build_components,
    evaluate_and_save,
    evaluate_before,
    split_tasks,
    training_tasks,
)
from rlvr_exp.stages.fit import fit, held_out_success, resumed_step
from rlvr_exp.training.callbacks import MetricsLogger
from rlvr_exp.training.checkpoints import Checkpoints
from rlvr_exp.training.guards import Guards
from rlvr_exp.training.saving import BestCheckpoint, CheckpointWriter


def run(config, context: RunContext) -> StageResult:
    with build_components(config, context) as components:
        before = context.before = {} if config.model.from_scratch else evaluate_before(components, config, context)
        steps, final = train(components, config, context)
        after = evaluate_and_save(components, config, context, "after")
    return StageResult(before=before, after=after, metrics=final | saved_role_rates(context.directory), steps=steps)


def train(components: RunComponents, config, context: RunContext) -> tuple[int, dict[str, float]]:
    """Train on the train split's golds for the configured steps; returns the steps done and the last row of metrics."""
    algorithm = build(config.algorithm)
    policy = components.policy
    examples, left_out = algorithm.examples(policy, components.domain, training_tasks(components, config, context))
    dev = split_tasks(components.domain, "dev")
    check_leakage(dev, components.held_out)  # what decides when to stop is not what success is measured on
    held_out, _ = algorithm.examples(policy, components.domain, dev)
    manifest.update(
        context.directory, imitation={"examples": len(examples), "held_out": len(held_out), "left_out": left_out}
    )
    guards = Guards(config.run.guards, context)
    checkpoints = Checkpoints(context.directory, config.run.checkpoint, run_fingerprint(context.directory))
    tracker = Tracker(context.directory, build(config.tracking), resumed_step(context))
    best_checkpoint = BestCheckpoint(
        config.run.select, checkpoints, tracker, held_out_success(components, config, context)
    )

    def row() -> dict[str, float]:
        return {**adapter_metrics(policy.model), **guards.metrics()}

    try:
        with TemporaryDirectory() as scratch:
            trainer = ImitationTrainer(
                policy,
                trainer_arguments(components, config, algorithm, Path(scratch)),
                build(config.optimizer).make(policy.model),
                examples,
                held_out,
                [
                    MetricsLogger(tracker, context, row),
                    guards,
                    best_checkpoint,
                    CheckpointWriter(checkpoints, policy, context, best_checkpoint),
                ],
            )
            trainer.guard = guards.updates
            trainer.metric_state |= {"clipping": trainer.clipping}
            checkpoints.add({"guard": guards.updates, "select": best_checkpoint})
            steps = fit(trainer, checkpoints, best_checkpoint, components, config, context)
    finally:
        tracker.close()
    return steps, tracker.last | best_checkpoint.metrics()


def trainer_arguments(components: RunComponents, config, algorithm, scratch: Path) -> SFTConfig:
    settings = config.algorithm
    plan = derive(
        settings.batch_size, settings.max_sequence_tokens, settings.max_tokens_per_device, config.parallel.world
    )
    return SFTConfig(
        **{**shared_arguments(config, scratch, components.policy.model.dtype), **algorithm.trl_arguments()},
        per_device_train_batch_size=plan.micro_batch,
        per_device_eval_batch_size=plan.micro_batch,
        gradient_accumulation_steps=plan.accumulation,
    )
