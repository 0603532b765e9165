"""Self-play in rounds: the policy answers training tasks, its answers are verified, kept, refined and relabelled with the
tasks that they solve, and it imitates a choice of them beside the data's golds; evaluated before and after."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from datasets import Dataset

from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.sft import Examples, ImitationTrainer, example
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import Interrupted
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.models.policy import Policy
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.distributed import rank
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.self_play.round import Progress, RoundMaker, RoundSampler
from rlvr_exp.solutions.store import SolutionStore
from rlvr_exp.stages.sft import batch_plan, golds_of, held_out_loss, trainer_arguments
from rlvr_exp.stages.shared.components import RunComponents, build_components, never_trained, training_tasks
from rlvr_exp.stages.shared.fit import Training, fit, open_tracker
from rlvr_exp.stages.shared.held_out import evaluate_and_save, evaluate_before, held_out_success, selection
from rlvr_exp.stages.shared.self_play_feed import STORE, Imitation, SelfPlayFeed
from rlvr_exp.stages.shared.stage_checks import check_self_play
from rlvr_exp.stages.shared.task_order import curriculum_of, example_order, mixed_tasks
from rlvr_exp.stages.shared.trial import on_trial
from rlvr_exp.tasks.base import Task
from rlvr_exp.training.learner import SFTLearner
from rlvr_exp.training.step_log import StepClock
from rlvr_exp.verifiers.base import KeepsOutputs, executor_of


def run(config, context: RunContext) -> StageResult:
    with open_tracker(config, context) as tracker, build_components(config, context) as components:
        check_domain(components, config)
        if rank() == 0:  # A store that cannot be used is told before anything is measured.
            SolutionStore(store_path(config, context), option=STORE).close()
        tasks = mixed_tasks(config, training_tasks(components, config, context))
        golds = golds_of(components, config, context, tasks, required=not config.self_play.without_golds)

        def trained(clock: StepClock | None = None) -> tuple[int, dict[str, float]]:
            return train(components, config, context, tracker, tasks, golds, clock)

        if config.run.trial:
            return on_trial(components, config, context, trained)
        before = context.before = evaluate_before(components, config, context)
        tracker.rates("before", 0, before)
        steps, final = trained()
        after = evaluate_and_save(components, config, context, "after")
        tracker.rates("after", steps, after)
    return StageResult(before=before, after=after, metrics=final | saved_role_rates(context.directory), steps=steps)


def check_domain(components: RunComponents, config) -> None:
    """Raises InputError where the data or the verifier cannot do what the options ask for."""
    executor_of(components.verifier, "verifier")
    check_self_play(config, components.domain)


def store_path(config, context: RunContext) -> Path:
    """The store of solutions; of a trial, which keeps nothing, in its own directory."""
    shared = "" if config.run.trial else config.self_play.solutions
    return Path(shared or context.directory / "solutions.sqlite")


def train(
    components: RunComponents,
    config,
    context: RunContext,
    tracker: Tracker,
    tasks: list[Task],
    golds: tuple[Examples, Examples],
    clock: StepClock | None = None,
) -> tuple[int, dict[str, float]]:
    """Train for the configured steps, or until a trial's clock ends them; returns the steps done and the last row of
    metrics."""
    options, policy = config.self_play, components.policy
    # Before a checkpoint is loaded into the model.
    base = {name: value.clone() for name, value in policy.model.state_dict().items()} if options.from_base else {}
    select = selection(components, config, context)
    with TemporaryDirectory() as scratch:
        trainer = imitation_trainer(policy, config, golds, Path(scratch))
        learner = SFTLearner(POLICY, trainer, config.algorithm.eval_every_steps, golds[1].characters)
        maker = round_maker(components, config, context, tasks)
        feed = self_play_feed(components, config, context, maker, golds[0], lambda: learner.restart(base))
        remembers: dict[str, Any] = {"curriculum": maker.curriculum} if maker.curriculum.state_dict() else {}
        measured = [held_out_loss(learner, context)] if golds[1] else []
        training = Training(
            policies=policy,
            learners={POLICY: learner},
            learning=lambda step: (POLICY,),
            feed=feed,
            measurements=[held_out_success(components, config, context, select), *measured],
            select=select,
            shared=feed.metrics,
            parts={"rounds": maker, "feed": feed, **remembers},
        )
        return fit(training, config, context, tracker, clock)


def round_steps(config) -> int:
    """Updates of a round; the last has what is left."""
    return max(1, config.algorithm.max_steps // config.self_play.rounds)


def imitation_trainer(policy: Policy, config, golds: tuple[Examples, Examples], scratch: Path) -> ImitationTrainer:
    """The trainer, whose schedule is that of one round where each trains from the first weights."""
    horizon = round_steps(config) if config.self_play.from_base else config.algorithm.max_steps
    scheduled = replace(config, algorithm=replace(config.algorithm, max_steps=horizon))
    train, held_out = golds
    return ImitationTrainer(
        policy,
        trainer_arguments(policy, scheduled, build(scheduled.algorithm), batch_plan(config), scratch),
        build(config.optimizer).make(policy.model),
        train.dataset if train else Dataset.from_list([example(policy, "", "")]),  # For its columns alone.
        held_out.dataset if held_out else None,
        NonFiniteGuard(config.run.guards.max_skipped),
        config.algorithm.max_sequence_tokens,
    )


def self_play_feed(
    components: RunComponents,
    config,
    context: RunContext,
    maker: RoundMaker,
    gold: Examples,
    restart: Callable[[], None],
) -> SelfPlayFeed:
    imitation = Imitation(
        components.policy,
        components.domain,
        gold,
        order=example_order(config, gold) if len(gold) else None,
        steps=round_steps(config),
        golds_alone=config.algorithm.max_steps - round(config.self_play.golds_alone * config.algorithm.max_steps),
        batch_size=batch_plan(config).sequences * config.parallel.world,
        longest=config.algorithm.max_sequence_tokens,
        restart=restart,
    )
    return SelfPlayFeed(
        config.self_play,
        maker,
        imitation,
        sampler=lambda: round_sampler(components, config),
        seed=config.seed,
        directory=context.directory,
        store=store_path(config, context),
        progress=lambda name: shown(context, name),
    )


def round_maker(components: RunComponents, config, context: RunContext, tasks: list[Task]) -> RoundMaker:
    return RoundMaker(
        config.self_play,
        components.domain,
        tasks,
        never_trained(components, config),
        curriculum_of(config, tasks),
        executor_of(components.verifier, "verifier"),
        config.seed,
        context.directory.name,
    )


def round_sampler(components: RunComponents, config) -> RoundSampler:
    """What samples a round. Its verdicts carry outputs."""
    policy, model = components.policy, config.model
    longest, batch_size = model.max_completion_tokens, config.evaluation.batch_size
    return RoundSampler(
        policy,
        components.domain,
        KeepsOutputs(components.verifier, "verifier"),
        SamplingParams.of(config.self_play, policy, longest, batch_size, components.domain),
        components.engine,
        min(model.max_prompt_tokens, policy.max_tokens - longest),
    )


def shown(context: RunContext, name: str) -> Progress:
    """What tells a person how far a round is."""

    def progress(done: int, total: int) -> None:
        with suppress(Interrupted):  # The step ends first, with a checkpoint.
            context.progress(kind="phase", name=name, done=done, total=total)

    return progress
