"""Compare this project with common alternatives on this machine, and its estimates with measurements.

Speed is measured in pairs and reported as a table of ratios. Every other benchmark is a function of
rlvr_exp.benchmarks. It takes the configuration and the context, and returns its report and its metrics. It raises
GuardStop for a difference that must not occur.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from hydra.utils import get_method

from rlvr_exp.benchmarks.contest import Outcome, table
from rlvr_exp.config.benchmark import GradientVariance, Landscape, Paired, Training
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.records.context import BENCHMARK, RunContext, StageResult

STEPS = 8
"""The memory estimate of benchmark=training reads the prompts of this many first steps."""


def run(config: Any, context: RunContext) -> StageResult:
    metrics: dict[str, Any]
    if isinstance(config.benchmark, Paired):
        # Benchmarks of verifiers alone run in a process without torch, as verifiers do.
        data, text, ratios = _training(config, context) if reads(config, "model") else _verdicts(config, context)
        metrics = {f"ratio/{name}": asdict(ratio) for name, ratio in ratios.items()}
    elif isinstance(config.benchmark, GradientVariance):
        with _bench(config, context) as bench:
            text, metrics = build(config.benchmark).measure(bench, _progress(context))
        data = metrics
    elif isinstance(config.benchmark, Landscape):
        data, text, metrics = _landscape(config, context)
    else:
        text, metrics = get_method(config.benchmark._target_)(config, context)
        data = metrics
    write_json(context.directory / BENCHMARK, data)
    write_text(context.directory / "benchmark.md", text + "\n")
    context.progress(kind="note", text=text)
    return StageResult(metrics=metrics)


def _verdicts(config: Any, context: RunContext) -> tuple[Any, str, dict[str, Any]]:
    benchmark = build(config.benchmark, sandbox=config.sandbox)
    outcomes: list[Outcome] = []
    for name in benchmark.contests:
        outcomes += benchmark.contest(name, _progress(context))
    return [asdict(one) for one in outcomes], table(outcomes), {one.name: one.ratio for one in outcomes}


def _training(config: Any, context: RunContext) -> tuple[Any, str, dict[str, Any]]:
    with _bench(config, context) as bench:
        if isinstance(config.benchmark, Training):
            _announce_memory(config, context, bench)
        pairs = build(config.benchmark).measure(bench, _progress(context))
    return pairs.to_dict(), pairs.text(), {line.name: line.ratio for line in pairs.lines()}


def _announce_memory(config: Any, context: RunContext, bench: Any) -> None:
    """Report the estimated peak memory of both sides. It assumes the longest prompt of the first steps, because the
    stock trainer pads every row to it.

    Raises:
        InputError: this machine has less memory.
    """
    from rlvr_exp.core import machine
    from rlvr_exp.memory.advice import of_sides, room, sides
    from rlvr_exp.memory.reading import workload_of
    from rlvr_exp.memory.workload import GIB

    here = replace(config, parallel=replace(config.parallel, device="", device_memory_gib=0.0))
    workload = workload_of(here)
    if workload is None:
        return
    tasks = [bench.curriculum.pick(place, 1)[0] for place in range(STEPS * config.algorithm.prompts_per_step)]
    longest = max(len(bench.policy.encode_prompt(bench.domain.task_prompt(task))) for task in tasks)
    workload, free = replace(workload, prompt=longest), room(here)
    context.progress(kind="note", text=of_sides(workload, free))
    most = machine.total() / GIB if workload.cpu else free
    if (needed := max(sides(workload))) > most:
        remedy = "fewer algorithm.prompts_per_step, shorter model.max_completion_tokens, or smaller algorithm.max_tokens_per_device"
        what = "the comparison needs more memory than this machine has"
        raise InputError(InputProblem("benchmark", what, f"{needed:.1f} GiB", f"{most:.1f} GiB", "", remedy))


def _landscape(config: Any, context: RunContext) -> tuple[Any, str, dict[str, float]]:
    from rlvr_exp.benchmarks.landscape import drawings, metrics, table
    from rlvr_exp.config.model import at_checkpoint
    from rlvr_exp.models.policy import load_policy
    from rlvr_exp.stages.shared.components import build_components

    with build_components(config, context) as components:
        found = build(config.benchmark).measure(
            components.policy,
            components.domain,
            components.held_out,
            lambda: load_policy(at_checkpoint(config.model, config.benchmark.other), config.seed),
            config.seed,
            _progress(context),
        )
    for name, drawing in drawings(found).items():
        drawing.write(context.directory / name)
    return found, table(found), metrics(found)


def _progress(context: RunContext) -> Callable[[str, int, int], None]:
    return lambda name, done, total: context.progress(kind="phase", name=name, done=done, total=total)


@contextmanager
def _bench(config: Any, context: RunContext) -> Iterator[Any]:
    """The components of the configured run, and a second verifier and reward for the other side."""
    from rlvr_exp.algorithms.base import shared_arguments
    from rlvr_exp.benchmarks.sides import Bench, DrawnReward
    from rlvr_exp.config.parallel import BatchLimits
    from rlvr_exp.stages.reinforcement import collector_of
    from rlvr_exp.stages.shared.components import build_components
    from rlvr_exp.stages.shared.data_and_verifier import build_verifier
    from rlvr_exp.verifiers.guarded import NoVerdictGuard

    with (
        build_components(config, context) as components,
        NoVerdictGuard(build_verifier(config), config.verifier.max_no_verdict_rate) as other,
    ):
        model = components.policy.model
        algorithm = build(config.algorithm, max_completion_tokens=config.model.max_completion_tokens)
        drawn = config.model.random_weights or getattr(config.benchmark, "drawn_reward", False)
        rewards = [DrawnReward() if drawn else build(config.reward) for _ in range(2)]
        collector = collector_of(components, config, context, rewards[0])
        yield Bench(
            policy=components.policy,
            domain=components.domain,
            collector=collector,
            verifier=other,
            reward=rewards[1],
            curriculum=collector.curriculum,
            algorithm=algorithm,
            options=config.algorithm,
            arguments=lambda scratch: shared_arguments(config, scratch, model.dtype),
            optimizer=lambda: build(config.optimizer).make(model),
            limits=BatchLimits(config.algorithm.max_tokens_per_device, config.model.max_prompt_tokens),
        )
