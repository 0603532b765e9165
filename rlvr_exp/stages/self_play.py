"""Self-play in rounds: the policy answers training tasks, its answers are verified, kept, refined and relabelled with the
tasks that they solve, and it imitates a choice of them beside the data's golds; evaluated before and after."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from datasets import Dataset

from rlvr_exp.algorithms.examples import Examples, example
from rlvr_exp.algorithms.nonfinite_guard import NonFiniteGuard
from rlvr_exp.algorithms.sft import ImitationTrainer
from rlvr_exp.config import build
from rlvr_exp.config.self_play import HINDSIGHT
from rlvr_exp.core.errors import InputError, InputProblem, Interrupted
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.rollouts.sampling_params import SamplingParams
from rlvr_exp.self_play.answers import Answers, Progress
from rlvr_exp.self_play.round import RoundMaker
from rlvr_exp.stages.sft import batch_plan, golds_of, trainer_arguments
from rlvr_exp.stages.shared.components import RunComponents, build_components, never_trained, training_tasks
from rlvr_exp.stages.shared.fit import Training, fit, open_tracker
from rlvr_exp.stages.shared.held_out import evaluate_and_save, evaluate_before, held_out_success, selection
from rlvr_exp.stages.shared.self_play_feed import Imitation, SelfPlayFeed
from rlvr_exp.stages.shared.trial import on_trial
from rlvr_exp.tasks.base import Task
from rlvr_exp.training.loop import Measurement
from rlvr_exp.training.sft_learner import SFTLearner
from rlvr_exp.training.step_clock import StepClock
from rlvr_exp.verifiers.execution import KeepsOutputs, executor_of


def run(config, context: RunContext) -> StageResult:
    with open_tracker(config, context) as tracker, build_components(config, context) as components:
        check_domain(components, config)
        tasks = training_tasks(components, config, context)
        golds = golds_of(components, config, context, tasks, required=not config.self_play.without_golds)
        if config.run.trial:
            return on_trial(
                components,
                config,
                context,
                lambda clock: train(components, config, context, tracker, tasks, golds, clock),
            )
        before = context.before = evaluate_before(components, config, context)
        tracker.rates("before", 0, before)
        steps, final = train(components, config, context, tracker, tasks, golds)
        after = evaluate_and_save(components, config, context, "after")
        tracker.rates("after", steps, after)
    return StageResult(before=before, after=after, metrics=final | saved_role_rates(context.directory), steps=steps)


def check_domain(components: RunComponents, config) -> None:
    """Raises InputError where the data or the verifier cannot do what the options ask for."""
    executor_of(components.verifier, "verifier")
    asked = [kind for kind in HINDSIGHT if config.self_play.made(kind)]
    if asked and not components.domain.relabels:
        what, remedy = (
            "the domain does not say how a task is relabelled",
            " ".join(f"self_play.{one}=0" for one in asked),
        )
        raise InputError(InputProblem(f"self_play.{asked[0]}", what, components.domain.name, "arc", "", remedy))


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
    options, algorithm, policy = config.self_play, build(config.algorithm), components.policy
    each = max(1, config.algorithm.max_steps // options.rounds)
    horizon = each if options.from_base else config.algorithm.max_steps
    scheduled = replace(config, algorithm=replace(config.algorithm, max_steps=horizon))
    plan, select = batch_plan(config), selection(components, config, context)
    # Before a checkpoint is loaded into the model.
    base = {name: value.clone() for name, value in policy.model.state_dict().items()} if options.from_base else {}
    with TemporaryDirectory() as scratch:
        trainer = ImitationTrainer(
            policy,
            trainer_arguments(policy, scheduled, build(scheduled.algorithm), plan, Path(scratch)),
            build(config.optimizer).make(policy.model),
            golds[0].dataset if golds[0] else Dataset.from_list([example(policy, "", "")]),  # For its columns alone.
            golds[1].dataset if golds[1] else None,
            NonFiniteGuard(config.run.guards.max_skipped),
        )
        learner = SFTLearner(POLICY, trainer, algorithm.eval_every_steps)
        maker = round_maker(components, config, context, tasks)
        feed = SelfPlayFeed(
            options,
            maker,
            Imitation(
                policy,
                components.domain,
                golds[0],
                each,
                plan.sequences * config.parallel.world,
                config.algorithm.max_sequence_tokens,
                lambda: learner.restart(base),
            ),
            tasks,
            lambda: answers_of(components, config),
            config.seed,
            context.directory,
            lambda name: shown(context, name),
        )

        def held_out_loss() -> Mapping[str, float]:
            context.progress(kind="wait", name="held-out loss")
            return learner.held_out_loss()

        remembers: dict[str, Any] = {"curriculum": maker.curriculum} if maker.curriculum.state_dict() else {}
        training = Training(
            policies=policy,
            learners={POLICY: learner},
            learning=lambda step: (POLICY,),
            feed=feed,
            measurements=[
                held_out_success(components, config, context, select),
                *([Measurement(learner.due, held_out_loss)] if golds[1] else []),
            ],
            select=select,
            shared=feed.metrics,
            parts={"rounds": maker, "feed": feed, **remembers},
        )
        return fit(training, config, context, tracker, clock)


def round_maker(components: RunComponents, config, context: RunContext, tasks: list[Task]) -> RoundMaker:
    return RoundMaker(
        config.self_play,
        components.domain,
        tasks,
        never_trained(components, config),
        build(config.curriculum, tasks=tasks, seed=config.seed),
        executor_of(components.verifier, "verifier"),
        config.seed,
        context.directory.name,
    )


def answers_of(components: RunComponents, config) -> Answers:
    """What samples a round. Its verdicts carry outputs."""
    policy, model, options = components.policy, config.model, config.self_play
    longest, batch_size = model.max_completion_tokens, config.evaluation.batch_size
    return Answers(
        policy,
        components.domain,
        KeepsOutputs(components.verifier, "verifier"),
        SamplingParams.of(options, policy, longest, batch_size, components.domain),
        components.engine,
        min(model.max_prompt_tokens, policy.max_tokens - longest),
    )


def shown(context: RunContext, name: str) -> Progress:
    def progress(done: int, total: int) -> None:
        with suppress(Interrupted):  # The step ends first, with a checkpoint.
            context.progress(kind="phase", name=name, done=done, total=total)

    return progress
