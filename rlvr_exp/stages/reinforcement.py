"""Reinforcement learning against a verifier: evaluate, train, evaluate. Serves every algorithm that learns from
verified completions; `+stage=grpo` and `+stage=ppo` are its presets."""

from pathlib import Path
from tempfile import TemporaryDirectory

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.config import build
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.records.context import RunContext, StageResult
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
from rlvr_exp.stages.fit import POLICY, Training, fit, held_out_success
from rlvr_exp.stages.rollout_feed import RolloutFeed, check_signal
from rlvr_exp.training.rl_learner import RLLearner


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
    policy, domain = components.policy, components.domain
    prompts = [policy.encode_prompt(domain.prompt(task)) for task in components.held_out[:2]]
    feed = RolloutFeed(collector, components.verifier, context.directory)
    with TemporaryDirectory() as scratch:
        learner = RLLearner(POLICY, policy, algorithm, config, prompts, Path(scratch))
        training = Training(
            policies=policy,
            learners={POLICY: learner},
            learning=lambda step: (POLICY,),
            feed=feed,
            measurements=[held_out_success(components, config, context)],
            shared=feed.metrics,
            parts=collector.parts,
        )
        steps, final = fit(training, config, context)
    check_signal(training.learners, steps, config.algorithm.max_steps)
    return steps, final
