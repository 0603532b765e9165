"""Reinforcement learning against a verifier: evaluate, train, evaluate. Serves every algorithm that learns from
verified completions; `+stage=grpo` and `+stage=ppo` are its presets."""

from pathlib import Path
from tempfile import TemporaryDirectory

from trl import GRPOConfig

from rlvr_exp.algorithms.arguments import shared_arguments
from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.sync_probe_callback import SyncProbeCallback
from rlvr_exp.config import build
from rlvr_exp.config.batching import BatchLimits
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.fingerprint import run_fingerprint
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.collect import Collector
from rlvr_exp.rollouts.sampler import SamplingParams
from rlvr_exp.stages.components import (
    RunComponents,
    build_components,
    evaluate_and_save,
    evaluate_before,
    rl_split,
    training_tasks,
)
from rlvr_exp.stages.fit import fit, held_out_success, resumed_step
from rlvr_exp.stages.rollout_feed import RolloutFeed
from rlvr_exp.training.callbacks import MetricsLogger
from rlvr_exp.training.checkpoints import Checkpoints
from rlvr_exp.training.guards import Guards
from rlvr_exp.training.saving import BestCheckpoint, CheckpointWriter


def run(config, context: RunContext) -> StageResult:
    with build_components(config, context) as components:
        longest, folder = config.model.max_completion_tokens, config.model.path
        algorithm = build(config.algorithm, max_completion_tokens=longest, checkpoint=folder)
        collector = collect_from(components, config, context, algorithm)
        before = context.before = evaluate_before(components, config, context)
        steps, final = train(components, config, context, algorithm, collector)
        after = evaluate_and_save(components, config, context, "after")
    return StageResult(before=before, after=after, metrics=final | saved_role_rates(context.directory), steps=steps)


def collect_from(components: RunComponents, config, context: RunContext, algorithm: Algorithm) -> Collector:
    """The collector of a run: tasks come from the curriculum, random draws from the run's seed."""
    options, longest = config.algorithm, config.model.max_completion_tokens
    tasks = training_tasks(components, config, context, rl_split(components.domain))
    return Collector(
        policy=components.policy,
        domain=components.domain,
        verifier=components.verifier,
        reward=build(config.reward),
        curriculum=build(config.curriculum, tasks=tasks, seed=config.seed),
        tasks=tasks,
        sampling=SamplingParams.of(
            options,
            components.policy,
            longest,
            options.rollout_batch_size or config.evaluation.batch_size,
            components.domain,
        ),
        plan=algorithm.plan(),
        group_filter=algorithm.group_filter(),
        shape=algorithm.shaped,
        seed=config.seed,
    )


def train(
    components: RunComponents, config, context: RunContext, algorithm: Algorithm, collector: Collector
) -> tuple[int, dict[str, float]]:
    """Update the policy for the configured steps; returns the steps done and the last row of metrics."""
    guards = Guards(config.run.guards, context)
    feed = RolloutFeed(components, context, algorithm, collector, guards.updates)
    checkpoints = Checkpoints(context.directory, config.run.checkpoint, run_fingerprint(context.directory))
    tracker = Tracker(context.directory, build(config.tracking), resumed_step(context))
    best_checkpoint = BestCheckpoint(
        config.run.select, checkpoints, tracker, held_out_success(components, config, context)
    )

    def row() -> dict[str, float]:
        return {**feed.row(), **probing.metrics(), **guards.metrics()}

    rows = MetricsLogger(tracker, context, row, feed.log.updated, lambda: feed.rows)
    checkpoint_writer = CheckpointWriter(checkpoints, components.policy, context, best_checkpoint)
    try:
        with TemporaryDirectory() as scratch:
            trainer = algorithm.trainer(
                components.policy,
                trainer_arguments(components, config, algorithm, Path(scratch)),
                build(config.optimizer).make(components.policy.model),
                feed.experience,
                [rows, guards, best_checkpoint, checkpoint_writer],
                BatchLimits(config.algorithm.max_tokens_per_device, config.model.max_prompt_tokens),
            )
            trainer.on_batch, trainer.guard = feed.on_batch, guards.updates
            prompts = [
                components.policy.encode_prompt(components.domain.prompt(task)) for task in components.held_out[:2]
            ]
            probing = SyncProbeCallback(config.run.probe, trainer, components.policy, prompts)
            trainer.add_callback(probing)
            trainer.metric_state |= {"steps": feed.log, "probe": probing, "clipping": trainer.clipping}
            checkpoints.add(
                {"guard": guards.updates, "select": best_checkpoint, **collector.parts, **trainer.checkpoint_parts}
            )
            steps = fit(trainer, checkpoints, best_checkpoint, components, config, context)
    finally:
        tracker.close()
    feed.check(steps, config.algorithm.max_steps)
    return steps, tracker.last | best_checkpoint.metrics()


def trainer_arguments(components: RunComponents, config, algorithm: Algorithm, scratch: Path) -> GRPOConfig:
    """TRL's configuration of the run. Its batch size is a formality: the trainer splits each step's batch itself."""
    return GRPOConfig(
        **{**shared_arguments(config, scratch, components.policy.model.dtype), **algorithm.trl_arguments()},
        per_device_train_batch_size=config.algorithm.group_size,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
    )
