"""A cascade: a writer of Dafny bodies and an annotator that makes Dafny prove them, both trained on the proof.

Evaluate the cascade, train the roles that learn (`cascade.mode`), evaluate a second time.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from rlvr_exp.config.cascade import starts
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.stages.cascade_components import CascadeComponents, build_components, evaluate_and_save, evaluate_before
from rlvr_exp.stages.cascade_learning import CascadeFeed, collector_of, held_out_success
from rlvr_exp.stages.cascade_roles import learners_of
from rlvr_exp.stages.fit import Training, fit
from rlvr_exp.stages.rollout_feed import check_signal


def run(config, context: RunContext) -> StageResult:
    options = config.cascade
    with build_components(config, context, starts(config)) as components:
        before = context.before = evaluate_before(components, config, context, options.attempts)
        steps, final = train(components, config, context)
        after = evaluate_and_save(components, config, context, "after", options.attempts)
    return StageResult(before=before, after=after, metrics=final, steps=steps)


def train(components: CascadeComponents, config, context: RunContext) -> tuple[int, dict[str, float]]:
    """Train the roles for the configured steps; returns the steps done and the last row of metrics."""
    collector = collector_of(components, config, context)
    feed = CascadeFeed(collector, components.writer.verifier, context.directory)
    with TemporaryDirectory() as scratch:
        training = Training(
            policies=components.policies,
            learners=learners_of(components, config, Path(scratch)),
            learning=config.cascade.learning,
            feed=feed,
            measurements=[held_out_success(components, config, context)],
            shared=feed.metrics,
            parts={"feed": feed, **collector.parts},
        )
        steps, final = fit(training, config, context)
    check_signal(training.learners, steps, config.algorithm.max_steps)
    return steps, final
