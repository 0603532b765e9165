"""Supervised fine-tuning on reference answers: check them, evaluate, train, evaluate. The policy ends at its best step
(`run.select`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from trl import SFTConfig

from rlvr_exp.algorithms.base import shared_arguments
from rlvr_exp.algorithms.gradients import NonFiniteGuard
from rlvr_exp.algorithms.sft import SFT, Examples, ImitationTrainer
from rlvr_exp.config.load import build
from rlvr_exp.config.parallel import Batches, derive
from rlvr_exp.config.schema import Config
from rlvr_exp.episodes.episode import POLICY
from rlvr_exp.evaluation.leakage import apart
from rlvr_exp.evaluation.text_similarity import saved_role_rates
from rlvr_exp.models.policy import Policy
from rlvr_exp.records import manifest
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.tracking import Tracker
from rlvr_exp.stages.shared.components import (
    RunComponents,
    build_components,
    split_tasks,
    training_tasks,
)
from rlvr_exp.stages.shared.held_out import evaluate_and_save, evaluate_before, held_out_success, selection
from rlvr_exp.stages.shared.training import TrainingInputs, example_order, fit, open_tracker
from rlvr_exp.stages.shared.trial import on_trial
from rlvr_exp.tasks.base import Task
from rlvr_exp.training.learner import GoldFeed, SFTLearner
from rlvr_exp.training.loop import Measurement
from rlvr_exp.training.step_log import StepClock


def run(config: Config, context: RunContext) -> StageResult:
    with open_tracker(config, context) as tracker, build_components(config, context) as components:
        golds = golds_of(components, config, context, training_tasks(components, config, context))
        if config.run.trial:
            return on_trial(
                components, config, context, lambda clock: train(components, config, context, tracker, golds, clock)
            )
        before = context.before = {} if config.model.from_scratch else evaluate_before(components, config, context)
        tracker.rates("before", 0, before)
        steps, final = train(components, config, context, tracker, golds)
        after = evaluate_and_save(components, config, context, "after")
        tracker.rates("after", steps, after)
    return StageResult(before=before, after=after, metrics=final | saved_role_rates(context.directory), steps=steps)


def golds_of(
    components: RunComponents, config: Config, context: RunContext, tasks: Sequence[Task], required: bool = True
) -> tuple[Examples, Examples]:
    """Tokenise the reference answers of the training tasks and of `dev`. This happens before the first evaluation,
    because the run ends if none can be imitated.

    Raises:
        InputError: no task can be imitated, although `required` is set.
    """
    algorithm, policy = build(config.algorithm), components.policy
    context.progress(kind="wait", name="prepare the golds")
    examples = algorithm.examples(policy, components.domain, tasks, required)
    if len(examples):
        example_order(config, examples)  # A source of the mixture without golds ends the run here.
    dev = split_tasks(components.domain, "dev")
    if config.evaluation.split != "dev":  # A run for tuning reports both success and loss on dev.
        dev, _ = apart(components.domain, dev, components.held_out)
    held_out = algorithm.examples(policy, components.domain, dev, required)
    counts = {"examples": len(examples), "held_out": len(held_out), "left_out": examples.left_out}
    manifest.update(context.directory, imitation=counts)
    return examples, held_out


def train(
    components: RunComponents,
    config: Config,
    context: RunContext,
    tracker: Tracker,
    golds: tuple[Examples, Examples],
    clock: StepClock | None = None,
) -> tuple[int, dict[str, float]]:
    """Train on tokenised reference answers for the configured steps, or until the clock of a trial stops the training.
    Return the number of finished steps and the last row of metrics."""
    algorithm, policy, (examples, held_out) = build(config.algorithm), components.policy, golds
    plan = batch_plan(config)
    select = selection(components, config, context)
    with TemporaryDirectory() as scratch:
        trainer = ImitationTrainer(
            policy,
            trainer_arguments(policy, config, algorithm, plan, Path(scratch)),
            build(config.optimizer).make(policy.model),
            examples.dataset,
            held_out.dataset,
            NonFiniteGuard(config.run.guards.max_skipped),
            config.algorithm.max_sequence_tokens,
        )
        learner = SFTLearner(POLICY, trainer, algorithm.eval_every_steps, held_out.characters)
        order = example_order(config, examples)(config.seed, "order of examples")
        feed = GoldFeed(examples, order, plan.sequences * config.parallel.world, config.seed)
        training = TrainingInputs(
            policies=policy,
            learners={POLICY: learner},
            learning=lambda step: (POLICY,),
            feed=feed,
            shared=feed.metrics,
            measurements=[
                held_out_success(components, config, context, select),
                held_out_loss(learner, context),
            ],
            select=select,
        )
        return fit(training, config, context, tracker, clock)


def held_out_loss(learner: SFTLearner, context: RunContext) -> Measurement:
    """Measure the loss on the reference answers of `dev`."""

    def measure() -> Mapping[str, float]:
        context.progress(kind="wait", name="held-out loss")
        return learner.held_out_loss()

    return Measurement(learner.due, measure)


def batch_plan(config: Config) -> Batches:
    options = config.algorithm
    return derive(options.batch_size, options.max_sequence_tokens, options.max_tokens_per_device, config.parallel.world)


def trainer_arguments(policy: Policy, config: Config, algorithm: SFT, plan: Batches, scratch: Path) -> SFTConfig:
    return SFTConfig(
        **{**shared_arguments(config, scratch, policy.model.dtype), **algorithm.trl_arguments()},
        per_device_train_batch_size=plan.micro_batch,
        per_device_eval_batch_size=plan.micro_batch,
        gradient_accumulation_steps=plan.accumulation,
    )
