"""Reinforcement learning against a verifier: measure, train, measure again. Serves every algorithm that learns from
judged completions; `+stage=grpo` and `+stage=ppo` are its presets."""

from pathlib import Path
from tempfile import TemporaryDirectory

from trl import GRPOConfig

from rlvr_exp.algorithms.arguments import shared_arguments
from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.experience import Experience
from rlvr_exp.algorithms.probing import Probing
from rlvr_exp.config import build
from rlvr_exp.config.batching import Limits
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.models.adapters import adapter_metrics
from rlvr_exp.rollouts.collect import Collector
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.rollouts.sampler import Sampling
from rlvr_exp.rollouts.sharing import added
from rlvr_exp.run.callbacks import Metrics, Saving
from rlvr_exp.run.checkpoints import Checkpoints
from rlvr_exp.run.job import Job, Result
from rlvr_exp.run.rollout_files import write_rollouts
from rlvr_exp.run.rollout_rows import rollout_rows
from rlvr_exp.run.step_log import StepLog
from rlvr_exp.run.tracking import Tracker
from rlvr_exp.stages.judging import system_metrics
from rlvr_exp.stages.setup import Parts, measured, prepared, training_tasks


def run(config, job: Job) -> Result:
    with prepared(config, job) as parts:
        longest, folder = config.model.max_completion_tokens, config.model.path
        algorithm = build(config.algorithm, max_completion_tokens=longest, checkpoint=folder)
        collector = collect_from(parts, config, job, algorithm)
        before = job.before = measured(parts, config, job, "before")
        steps, final = train(parts, config, job, algorithm, collector)
        after = measured(parts, config, job, "after")
    return Result(before=before, after=after, metrics=final, steps=steps)


def collect_from(parts: Parts, config, job: Job, algorithm: Algorithm) -> Collector:
    """The collector of a run: its tasks come from the curriculum, its draws from the run's seed."""
    options, longest = config.algorithm, config.model.max_completion_tokens
    tasks = training_tasks(parts, config, job)
    return Collector(
        policy=parts.policy,
        domain=parts.domain,
        verifier=parts.verifier,
        reward=build(config.reward),
        curriculum=build(config.curriculum, tasks=tasks, seed=config.seed),
        tasks=tasks,
        sampling=Sampling.of(options, parts.policy, longest, options.rollout_batch_size or config.evaluation.batch_size),
        plan=algorithm.plan(),
        group_filter=algorithm.group_filter(),
        shape=algorithm.shaped,
        seed=config.seed,
    )


def train(parts: Parts, config, job: Job, algorithm: Algorithm, collector: Collector) -> tuple[int, dict[str, float]]:
    """Update the policy for the configured steps; returns the steps done and the last row of metrics."""
    log = StepLog(algorithm.regularised, algorithm.group_filter().mode != "keep")
    groups: Groups
    stateful = {"reward": collector.reward, "collector": collector}
    checkpoints = Checkpoints(job.directory, config.run.checkpoint, stateful)

    def experience(step: int) -> Experience:
        nonlocal groups
        groups = collector.collect(step)
        learned = algorithm.experience(groups, parts.policy.pad_id)
        log.record(groups, learned)
        return learned

    def told(learned: Experience) -> None:
        """With the advantages that the update learns with, which an algorithm may have estimated by its model."""
        write_rollouts(job.directory, groups.step + 1, rollout_rows(groups, learned, algorithm.regularised))

    def row() -> dict[str, float]:
        normalizer = {f"reward/normalizer_{name}": value for name, value in collector.reward.metrics().items()}
        collected = {f"collected/{name}": value for name, value in collector.metrics().items()}
        measured_now = {**log.metrics(), **collected, **normalizer, **adapter_metrics(parts.policy.model), **probing.metrics()}
        return {**measured_now, **added(system_metrics(parts.verifier))}

    tracker = Tracker(job.directory, build(config.tracking))
    try:
        with TemporaryDirectory() as scratch:
            trainer = algorithm.trainer(
                parts.policy,
                trainer_arguments(parts, config, algorithm, Path(scratch)),
                build(config.optimizer).make(parts.policy.model),
                experience,
                [Metrics(tracker, job, row, log.updated), Saving(checkpoints, parts.policy, job)],
                Limits(config.algorithm.max_tokens_per_device, config.model.max_prompt_tokens),
            )
            trainer.told = told
            prompts = [parts.policy.encode_prompt(parts.domain.prompt(task)) for task in parts.held_out[:2]]
            probing = Probing(config.run.probe, trainer, parts.policy, prompts)
            trainer.add_callback(probing)
            checkpoints.add(trainer.kept)
            trainer.train()
            steps = trainer.state.global_step
    finally:
        tracker.close()
    if log.steps_with_signal == 0:
        raise GuardStop(
            f"{steps} of {config.algorithm.max_steps} steps were done and none had anything to learn from: in every group "
            "all rewards were equal. Look at rollouts/: a policy that always fails or always passes needs other tasks, "
            "a higher algorithm.temperature or a reward that tells its answers apart"
        )
    return steps, tracker.last


def trainer_arguments(parts: Parts, config, algorithm: Algorithm, scratch: Path) -> GRPOConfig:
    """TRL's configuration of the run. Its batch is a matter of form: the trainer cuts each step's experience itself."""
    return GRPOConfig(
        **{**shared_arguments(config, scratch, parts.policy.model.dtype), **algorithm.trl_arguments()},
        per_device_train_batch_size=config.algorithm.group_size,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
    )
