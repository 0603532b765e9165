"""Reinforcement learning against a verifier: evaluate, train, evaluate. The stage serves every environment and every
algorithm that learns from verified completions. `+stage=grpo`, `ppo`, `cascade` and `adversarial` are its presets."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, cast

from rlvr_exp.config.engine import is_vllm, receives_weights
from rlvr_exp.config.load import build
from rlvr_exp.config.roles import team_node
from rlvr_exp.config.schema import Config, reads
from rlvr_exp.core.errors import GuardStop, Interrupted
from rlvr_exp.curriculum.base import Observation
from rlvr_exp.episodes.environment import Environment
from rlvr_exp.episodes.types import TokenCount, TokenSample
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.launch.preflight import rl_split
from rlvr_exp.models.policy import Policy, acting
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import RolloutRow, write_rollouts
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rollouts.collect import Collector, RoleRules, Rollouts, rollouts_state
from rlvr_exp.rollouts.distributed import all_reduce_counters
from rlvr_exp.rollouts.engines.base import HoldsWeights
from rlvr_exp.rollouts.engines.journaled import Shown
from rlvr_exp.rollouts.engines.trained_server import TrainedServer
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.stages.shared.components import (
    RunComponents,
    build_components,
    runner_of,
    training_environment,
    training_tasks,
)
from rlvr_exp.stages.shared.data_and_verifier import system_metrics
from rlvr_exp.stages.shared.held_out import evaluate_and_save, evaluate_before, held_out_success, selection
from rlvr_exp.stages.shared.training import (
    TrainingInputs,
    algorithm_of,
    curriculum_of,
    fit,
    learner_options,
    learning_roles,
    mixed_tasks,
    open_tracker,
)
from rlvr_exp.stages.shared.trial import on_trial
from rlvr_exp.training.learner import Learner, RLLearner
from rlvr_exp.training.step_log import StepClock, rollout_rows
from rlvr_exp.verifiers.base import Verifier


def run(config: Config, context: RunContext) -> StageResult:
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


class RolloutFeed:
    """Collects the rollouts of a step. Roles that learn in the same step learn from the same episodes.

    Args:
        server: samples with the trained weights; None: another engine.
        lag: 1: the rollouts of the next step are collected during the updates of a step.
        logprobs: write the log-probability of each token.
    """

    def __init__(
        self,
        collector: Collector,
        verifier: Verifier,
        directory: Path,
        server: TrainedServer | None = None,
        lag: int = 0,
        logprobs: bool = False,
    ):
        self._collector, self._verifier, self._directory = collector, verifier, directory
        self._server, self._lag, self._logprobs = server, lag, logprobs
        self._ahead: tuple[Rollouts, dict[str, float]] | None = None
        """Rollouts that a later step takes, and their metrics."""
        self._rollouts: Rollouts | None = None
        self.rows: Sequence[RolloutRow] = ()
        self._metrics: list[dict[str, float]] = []
        """Metrics of the steps since the last logged row."""

    def collect(self, step: int) -> Rollouts:
        if self._ahead is None:
            if self._server is not None:
                self._server.updates = step
            self._ahead = self._collected(step)
        (self._rollouts, row), self._ahead = self._ahead, None
        self._metrics.append(row)
        return self._rollouts

    def _collected(self, step: int) -> tuple[Rollouts, dict[str, float]]:
        rollouts, environment = self._collector.collect(step), self._collector.environment
        row = environment.metrics(rollouts.episodes)
        if len(environment.roles) > 1:
            row |= credit_metrics(environment.name, rollouts.groups)
        return rollouts, row | teaching(rollouts.observations)

    @contextmanager
    def meanwhile(self, step: int) -> Iterator[None]:
        """Collect the next rollouts in a thread, with the weights of now, while the block updates them. Rows of metrics and
        checkpoints come after the block, so that they never depend on which of the two was faster."""
        plan = self._collector.plan
        following = step + plan.iterations
        if not self._lag or self._ahead is not None or following >= plan.steps:
            yield
            return
        server = self._server
        assert server is not None
        (player,) = self._collector.runner.players.values()
        faults: list[BaseException] = []
        server.pin(player.policy, step)

        def run() -> None:
            try:
                self._ahead = self._collected(following)
            except BaseException as fault:  # Raised below, in the thread that trains.
                faults.append(fault)
            finally:
                server.release()

        thread = Thread(target=run, name="rollouts", daemon=True)
        thread.start()
        try:
            yield
        finally:
            thread.join()
        if faults:
            raise faults[0]

    def write(self, learners: Mapping[str, Learner]) -> None:
        """Write the rollouts. Groups are numbered consecutively, and advantages are those of the updates; a model may
        contribute to them. The fate of a role's rollouts is `frozen` if the role does not learn in the step."""
        assert self._rollouts is not None
        rows: list[RolloutRow] = []
        for role, groups in self._rollouts.groups.items():
            learner, first = learners.get(role), rows[-1].group + 1 if rows else 0
            assert learner is None or isinstance(learner, RLLearner)
            found = (
                rollout_rows(groups, None, False)
                if learner is None
                else rollout_rows(groups, learner.learned, learner.algorithm.regularised)
            )
            if self._logprobs:
                policy = self._collector.runner.players[role].policy
                found = [replace(one, token_logprobs=_token_logprobs(policy, one.completion.sampled)) for one in found]
            rows += [
                replace(one, group=first + one.group, fate="frozen" if learner is None else one.fate) for one in found
            ]
        write_rollouts(self._directory, self._rollouts.step + 1, rows)
        self.rows = rows

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last row that belong to no role."""
        names = dict.fromkeys(name for row in self._metrics for name in row)
        row = {name: fmean(one[name] for one in self._metrics if name in one) for name in names}
        self._metrics = []
        normalizer = {
            f"{part}/normalizer_{name}": value
            for part, reward in self._collector.rewards.items()
            for name, value in reward.metrics().items()
        }
        collected = {f"collected/{name}": value for name, value in self._collector.metrics().items()}
        curriculum = {f"curriculum/{name}": value for name, value in self._collector.curriculum.metrics().items()}
        mix = {f"mix/{source}": float(count) for source, count in self._collector.mix.items()}
        system = all_reduce_counters(system_metrics(self._verifier))
        return {**row, **collected, **mix, **curriculum, **normalizer, **system}

    def state_dict(self) -> dict[str, Any]:
        """Return the data of the next row, and rollouts for a later step, as plain values."""
        ahead = self._ahead and {"rollouts": rollouts_state(self._ahead[0]), "row": self._ahead[1]}
        return {"rows": list(self._metrics), "ahead": ahead}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._metrics, ahead = list(state["rows"]), state.get("ahead")
        self._ahead = ahead and (self._collector.rollouts_from(ahead["rollouts"]), ahead["row"])


def credit_metrics(name: str, groups: Mapping[str, Groups]) -> dict[str, float]:
    """Return the mean credit of each role, and its mean range within a group."""
    row: dict[str, float] = {}
    for role, of_role in groups.items():
        paid = [[one for one in group.rewards if one is not None] for group in of_role.sampled]
        if any(paid):
            row[f"{name}/credit/{role}"] = fmean(one for each in paid for one in each)
            row[f"{name}/credit_spread/{role}"] = fmean(max(each) - min(each) if each else 0.0 for each in paid)
    return row


def teaching(observations: Sequence[Observation]) -> dict[str, float]:
    """Return the share of sampled groups with varying rewards, and the number of distinct tasks of these groups."""
    if not observations:
        return {}
    mixed = [one.task for one in observations if one.mixed]
    return {
        "curriculum/mixed_groups": len(mixed) / len(observations),
        "curriculum/effective_prompts": float(len(set(mixed))),
    }


def collector_of(
    components: RunComponents, config: Config, context: RunContext, reward: Reward | None = None
) -> Collector:
    """Return the collector of a run. Tasks come from the curriculum, and the seed of the run determines all draws.
    `reward` replaces the configured rewards."""
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


def _rewards(config: Config, roles: Sequence[str]) -> dict[str, Reward]:
    """Return the reward of each role. Roles without a reward of their own share one instance of the run's reward. Empty
    if the environment assigns rewards in another way."""
    if not reads(config, "reward"):
        return {}
    shared = build(config.reward)
    own = {role: config.roles[role].reward for role in config.roles}
    return {role: build(own[role]) if own.get(role) is not None else shared for role in roles}


def train(
    components: RunComponents,
    config: Config,
    context: RunContext,
    collector: Collector,
    tracker: Tracker,
    clock: StepClock | None = None,
) -> tuple[int, dict[str, float]]:
    """Update the policies for the configured steps, or until the clock of a trial stops them. Return the number of
    finished steps and the last row of metrics."""
    learning = learning_roles(config, collector.environment.roles)
    server = cast(TrainedServer, components.engine) if receives_weights(components.engine) else None
    feed = RolloutFeed(
        collector,
        components.verifier,
        context.directory,
        server,
        config.algorithm.lag,
        config.algorithm.log_token_logprobs,
    )
    select = selection(components, config, context)
    schedule: Any = getattr(config, "schedule", None)  # A node of a domain.
    with TemporaryDirectory() as scratch:
        learners = {
            role: _learner(role, components, config, collector.environment, Path(scratch) / role)
            for role in components.policies
            if any(role in learning(step) for step in range(config.algorithm.max_steps))
        }
        training = TrainingInputs(
            policies=components.checkpointed,
            learners=learners,
            learning=learning,
            feed=feed,
            measurements=[held_out_success(components, config, context, select)],
            select=select,
            shared=feed.metrics,
            parts={"feed": feed, **collector.parts},
            ends_phase=schedule.ends_stage if reads(config, "schedule") else None,
            meanwhile=feed.meanwhile,
        )
        steps, final = fit(training, config, context, tracker, clock)
    if clock is None:
        check_signal(learners, steps, config.algorithm.max_steps)
    return steps, final


def _token_logprobs(policy: Policy, sampled: TokenSample | TokenCount) -> list[tuple[str, float]]:
    """Empty for a completion that was never drawn."""
    if not isinstance(sampled, TokenSample):
        return []
    return list(zip(policy.pieces(sampled.ids), (round(one, 4) for one in sampled.logprobs), strict=True))


def _learner(
    role: str, components: RunComponents, config: Config, environment: Environment, scratch: Path
) -> RLLearner:
    policy, roles, domain = components.policies[role], environment.roles, environment.domain(role)
    with acting(components.policies, role):
        prompts = [policy.encode_prompt(text) for text in _prompts(role, components)]
        holds = is_vllm(components.engine) or receives_weights(components.engine)
        engine = cast(HoldsWeights, components.engine) if holds else None
        options, algorithm = learner_options(config, role, roles), algorithm_of(config, role, roles)
        algorithm.begin(domain, policy, components.teacher)
        return RLLearner(role, policy, algorithm, options, prompts, scratch, engine)


def _prompts(role: str, components: RunComponents) -> list[str]:
    """Return two prompts of a role."""
    tasks = components.held_out[:2]
    if components.play is not None:
        return components.play.prompts(role, tasks)
    return [components.domain.task_prompt(task) for task in tasks]


def check_signal(learners: Mapping[str, RLLearner], done: int, wanted: int) -> None:
    """Raise GuardStop if no step had a learning signal for any role."""
    if not any(learner.log.steps_with_signal for learner in learners.values()):
        raise GuardStop(
            f"{done} of {wanted} steps were done and none had anything to learn from: in every group all rewards were "
            "equal. Look at rollouts/: a policy that always fails or always passes needs other tasks, a higher "
            "algorithm.temperature, a reward that tells its answers apart, or training on gold answers first"
        )
