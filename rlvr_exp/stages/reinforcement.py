"""Reinforcement learning against a verifier: evaluate, train, evaluate. Serves every algorithm that learns from verified
completions and every environment; `+stage=grpo`, `ppo`, `cascade` and `adversarial` are its presets."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rlvr_exp.config.engine import is_vllm
from rlvr_exp.config.load import build
from rlvr_exp.config.roles import team_node
from rlvr_exp.config.schema import reads
from rlvr_exp.core.errors import Interrupted
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.launch.preflight import rl_split
from rlvr_exp.models.policy import acting
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rollouts.collect import Collector, RoleRules
from rlvr_exp.rollouts.engines.journaled import Shown
from rlvr_exp.stages.shared.components import RunComponents, build_components, training_tasks
from rlvr_exp.stages.shared.environments import runner_of, training_environment
from rlvr_exp.stages.shared.fit import Training, fit, open_tracker
from rlvr_exp.stages.shared.held_out import evaluate_and_save, evaluate_before, held_out_success, selection
from rlvr_exp.stages.shared.role_options import algorithm_of, learner_options, learning_roles
from rlvr_exp.stages.shared.rollout_feed import RolloutFeed, check_signal
from rlvr_exp.stages.shared.task_order import curriculum_of, mixed_tasks
from rlvr_exp.stages.shared.trial import on_trial
from rlvr_exp.training.learner import RLLearner
from rlvr_exp.training.step_log import StepClock


def run(config, context: RunContext) -> StageResult:
    with open_tracker(config, context) as tracker, build_components(config, context) as components:
        collector = collector_of(components, config, context)
        if config.run.trial:
            return on_trial(
                components, config, context, lambda clock: train(components, config, context, collector, tracker, clock)
            )
        before = context.before = evaluate_before(components, config, context)
        tracker.rates("before", 0, before)
        steps, final = train(components, config, context, collector, tracker)
        after = evaluate_and_save(components, config, context, "after")
        tracker.rates("after", steps, after)
    return StageResult(before=before, after=after, metrics=final | saved_role_rates(context.directory), steps=steps)


def collector_of(components: RunComponents, config, context: RunContext, reward: Reward | None = None) -> Collector:
    """The collector of a run: tasks come from the curriculum, random draws from the run's seed. `reward`: in place of the
    configured ones."""
    environment = training_environment(components, config)
    algorithms = {role: algorithm_of(config, role, environment.roles) for role in environment.roles}
    tasks = mixed_tasks(config, training_tasks(components, config, context, rl_split(components.domain)))
    batch = config.algorithm.rollout_batch_size or config.evaluation.batch_size
    team = team_node(config)
    shown = replace(components, engine=Shown(components.engine, partial(_show_rollouts, context)))
    return Collector(
        runner=runner_of(environment, shown, config, None, batch),
        rewards=dict.fromkeys(environment.roles, reward) if reward else _rewards(config, environment.roles),
        curriculum=curriculum_of(config, tasks),
        tasks=tasks,
        plan=algorithms[environment.roles[0]].plan(),
        rules={role: RoleRules(one.group_filter(), one.shaped_group) for role, one in algorithms.items()},
        seed=config.seed,
        samples=None if team is None else team.samples,
    )


def _show_rollouts(context: RunContext, done: int, total: int, rate: float | None, worked: float) -> None:
    with suppress(Interrupted):  # A step is finished before the run stops.
        context.progress(
            kind="phase",
            name="rollouts",
            done=done,
            total=total,
            unit="completions",
            worked=worked,
            tokens_per_second=rate,
        )


def _rewards(config, roles: Sequence[str]) -> dict[str, Reward]:
    """The reward of each role; roles without one of their own share the top's, with its state. None where the roles are paid
    otherwise."""
    if not reads(config, "reward"):
        return {}
    shared = build(config.reward)
    own = {role: config.roles[role].reward for role in config.roles}
    return {role: build(own[role]) if own.get(role) is not None else shared for role in roles}


def train(
    components: RunComponents,
    config,
    context: RunContext,
    collector: Collector,
    tracker: Tracker,
    clock: StepClock | None = None,
) -> tuple[int, dict[str, float]]:
    """Update the policies for the configured steps, or until a trial's clock ends them; returns the steps done and the last
    row of metrics."""
    learning = learning_roles(config, collector.environment.roles)
    feed = RolloutFeed(collector, components.verifier, context.directory)
    select = selection(components, config, context)
    with TemporaryDirectory() as scratch:
        learners = {
            role: _learner(role, components, config, collector.environment.roles, Path(scratch) / role)
            for role in components.policies
            if any(role in learning(step) for step in range(config.algorithm.max_steps))
        }
        training = Training(
            policies=components.checkpointed,
            learners=learners,
            learning=learning,
            feed=feed,
            measurements=[held_out_success(components, config, context, select)],
            select=select,
            shared=feed.metrics,
            parts={"feed": feed, **collector.parts},
            ends_phase=config.schedule.ends_stage if reads(config, "schedule") else None,
        )
        steps, final = fit(training, config, context, tracker, clock)
    if clock is None:
        check_signal(learners, steps, config.algorithm.max_steps)
    return steps, final


def _learner(role: str, components: RunComponents, config, roles: Sequence[str], scratch: Path) -> RLLearner:
    policy = components.policies[role]
    with acting(components.policies, role):
        prompts = [policy.encode_prompt(text) for text in _prompts(role, components)]
        served = components.engine.scored if is_vllm(components.engine) else None
        options = learner_options(config, role, roles)
        return RLLearner(role, policy, algorithm_of(config, role, roles), options, prompts, scratch, served)


def _prompts(role: str, components: RunComponents) -> list[str]:
    """Two of a role's prompts."""
    tasks = components.held_out[:2]
    if components.play is not None:
        return components.play.prompts(role, tasks)
    return [components.domain.task_prompt(task) for task in tasks]
