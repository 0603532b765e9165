"""Supervised fine-tuning on gold answers, stopped by held-out loss; the best step is what is left in `checkpoints/best`."""

from pathlib import Path
from tempfile import TemporaryDirectory

from trl import SFTConfig

from rlvr_exp.algorithms.arguments import shared_arguments
from rlvr_exp.algorithms.sft import EarlyStop, ImitationTrainer
from rlvr_exp.config import build
from rlvr_exp.config.batching import derive
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.evaluation.separation import check_separation
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.models.whole import whole_weights
from rlvr_exp.run import manifest
from rlvr_exp.run.callbacks import Metrics, Saving
from rlvr_exp.run.checkpoints import Checkpoints, restore
from rlvr_exp.run.job import Job, Result
from rlvr_exp.run.tracking import Tracker
from rlvr_exp.stages.setup import Parts, measured, prepared, split_tasks, training_tasks


def run(config, job: Job) -> Result:
    with prepared(config, job) as parts:
        before = job.before = {} if config.model.from_scratch else measured(parts, config, job, "before")
        steps, final = train(parts, config, job)
        after = measured(parts, config, job, "after")
    return Result(before=before, after=after, metrics=final, steps=steps)


def train(parts: Parts, config, job: Job) -> tuple[int, dict[str, float]]:
    """Imitate the train split until the steps are done or held-out loss stops falling; the policy ends at its best."""
    algorithm = build(config.algorithm)
    policy = parts.policy
    examples, left_out = algorithm.examples(policy, parts.domain, training_tasks(parts, config, job))
    dev = split_tasks(parts.domain, "dev")
    check_separation(dev, parts.held_out)  # what decides when to stop is not what success is measured on
    held_out, _ = algorithm.examples(policy, parts.domain, dev)
    manifest.extend(job.directory, imitation={"examples": len(examples), "held_out": len(held_out), "left_out": left_out})
    checkpoints = Checkpoints(job.directory, config.run.checkpoint)

    def better(step: int) -> None:
        checkpoints.save(step, policy)
        checkpoints.mark_best(step)

    stop = EarlyStop(config.algorithm.patience, better)
    tracker = Tracker(job.directory, build(config.tracking))
    try:
        with TemporaryDirectory() as scratch:
            trainer = ImitationTrainer(
                policy,
                trainer_arguments(parts, config, algorithm, Path(scratch)),
                build(config.optimizer).make(policy.model),
                examples,
                held_out,
                [Metrics(tracker, job, lambda: adapter_metrics(policy.model)), Saving(checkpoints, policy, job), stop],
            )
            trainer.train()
            steps = trainer.state.global_step
    finally:
        tracker.close()
    if steps == 0 or checkpoints.best is None:
        raise GuardStop(f"{steps} of {config.algorithm.max_steps} steps were trained and held-out loss was never measured")
    with whole_weights(policy.model, write=True):
        restore(policy, checkpoints.best, config.model.trust_remote_code)
    return steps, tracker.last | {"held_out/best_loss": stop.best_loss, "held_out/best_step": stop.best_step}


def trainer_arguments(parts: Parts, config, algorithm, scratch: Path) -> SFTConfig:
    settings = config.algorithm
    plan = derive(
        settings.batch_size, settings.max_sequence_tokens, settings.max_tokens_per_device, config.parallel.world
    )
    return SFTConfig(
        **{**shared_arguments(config, scratch, parts.policy.model.dtype), **algorithm.trl_arguments()},
        per_device_train_batch_size=plan.micro_batch,
        per_device_eval_batch_size=plan.micro_batch,
        gradient_accumulation_steps=plan.accumulation,
    )
