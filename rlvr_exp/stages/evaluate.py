"""Evaluate a policy, or a cascade of two (`evaluate.cascade`), on held-out tasks: greedy and sampled pass@k with
intervals, reasons for failure, and latency. With `evaluate.baseline=RUN`, also report the difference from the last
evaluation of that run, paired by task."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlvr_exp.config.schema import Config
from rlvr_exp.config.stage_options import Evaluate
from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.metrics import METRICS, flat_rates, latency, task_values, verdict_counts
from rlvr_exp.evaluation.paired import in_words, paired
from rlvr_exp.evaluation.saved import read_numbers
from rlvr_exp.evaluation.text_similarity import role_rates
from rlvr_exp.launch.preflight import baseline_problems
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.rollout_files import EvalSample, read_evaluation
from rlvr_exp.rollouts.distributed import all_reduce_counters
from rlvr_exp.stages.shared.components import build_components
from rlvr_exp.stages.shared.data_and_verifier import system_metrics
from rlvr_exp.stages.shared.held_out import evaluate_and_save


def run(config: Config, context: RunContext) -> StageResult:
    options = _options(config)
    baseline = _baseline(config) if options.baseline else []
    with build_components(config, context) as components:
        try:
            rates = evaluate_and_save(components, config, context, "after")
        finally:  # A server that failed too often is counted all the same.
            context.metrics = dict(components.engine.metrics())
        counted = all_reduce_counters({**system_metrics(components.verifier), **components.engine.metrics()})
    scored = read_evaluation(context.directory, "after")
    numbers = read_numbers(context.directory, "after")
    metrics: dict[str, object] = {**counted, **role_rates(numbers.get("roles", {}))}
    metrics |= flat_rates(numbers.get("strata", {}))
    metrics |= {f"excess_code/{name}": value for name, value in numbers.get("excess_code", {}).items()}
    for mode in ("greedy", "sampled"):
        counts = verdict_counts(row for row in scored if row.mode == mode)
        metrics |= {f"verdict_{mode}/{name}": count for name, count in counts.items() if count}
    metrics |= {f"time/answer_{name}": seconds for name, seconds in latency(scored).items()}
    if baseline:
        found = _differences(baseline, scored, (*METRICS, *config.evaluation.further))
        metrics |= {f"difference/{metric}": change for metric, change in found.items()}
        context.progress(kind="note", text=_told(found, options.baseline))
    return StageResult(before={}, after=rates, metrics=metrics, steps=0)


def _options(config: Config) -> Evaluate:
    options = config.evaluate
    assert options is not None  # The stage has its node.
    return options


def _baseline(config: Config) -> list[EvalSample]:
    """Return the last evaluation of the baseline. It is read first, so that a mismatch is reported before any work.

    Raises:
        InputError: the baseline does not exist, or was measured in another way.
    """
    if problems := tuple(baseline_problems(config)):
        raise InputError(*problems)
    return read_evaluation(Path(_options(config).baseline), "after")


def _told(differences: Mapping[str, Mapping[str, float]], baseline: str) -> str:
    head = f"change against {baseline}, paired by task:"
    return "\n".join([head, *(f"  {metric}: {in_words(change, metric)}" for metric, change in differences.items())])


def _differences(
    baseline: list[EvalSample], scored: list[EvalSample], metrics: Sequence[str]
) -> dict[str, dict[str, float | int]]:
    """Return this run minus the baseline, for each metric that both have."""
    return {
        metric: paired(baseline, scored, metric, "evaluate.baseline").to_dict()
        for metric in metrics
        if task_values(baseline, metric) and task_values(scored, metric)
    }
