"""Compare this project with common alternatives on this machine, and its estimates with measurements.

Speed is measured in pairs and reported as a table of ratios. Every other benchmark is a function of
rlvr_exp.benchmarks. It takes the configuration and the context, and returns its report and its metrics. It raises
GuardStop for a difference that must not occur.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hydra.utils import get_method

from rlvr_exp.benchmarks.contest import Outcome, table
from rlvr_exp.config.benchmark import GradientVariance, Landscape, NewProblems, Paired, TestTimeTraining, Training
from rlvr_exp.config.load import build
from rlvr_exp.config.schema import reads
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.files import write_json, write_text
from rlvr_exp.launch.preflight import no_shown_cases
from rlvr_exp.records.context import BENCHMARK, RunContext, StageResult
from rlvr_exp.tasks.base import ShowsCases

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
    elif isinstance(config.benchmark, NewProblems):
        text, metrics = _new_problems(config, context)
        data = metrics
    elif isinstance(config.benchmark, TestTimeTraining):
        text, metrics = _adaptation(config, context)
        data = metrics
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


def _adaptation(config: Any, context: RunContext) -> tuple[str, dict[str, float]]:
    from rlvr_exp.models.policy import load_policy
    from rlvr_exp.stages.shared.components import build_components

    with build_components(config, context) as components:
        if not isinstance(components.domain, ShowsCases):
            raise InputError(no_shown_cases(components.domain))
        given = (components.verifier, components.domain, components.held_out, config.seed, _progress(context))
        return build(config.benchmark).measure(lambda: load_policy(config.model, config.seed), config.model, *given)


def _new_problems(config: Any, context: RunContext) -> tuple[str, dict[str, Any]]:
    from rlvr_exp.benchmarks.new_problems import Attempts
    from rlvr_exp.config.model import OF_PROMPTS, at_checkpoint
    from rlvr_exp.episodes.episode import POLICY, Draws
    from rlvr_exp.episodes.types import Completion
    from rlvr_exp.models.policy import load_policy
    from rlvr_exp.stages.shared.components import RunComponents, build_components, evaluation_runner
    from rlvr_exp.stages.shared.data_and_verifier import decides, description
    from rlvr_exp.stages.shared.held_out import weights_of
    from rlvr_exp.tasks.base import Task

    bench, options = build(config.benchmark), config.evaluation
    few, folder = options.samples, Path(config.benchmark.state or context.directory / "attempts")
    seen: dict[str, str] = {}

    def attempts(components: RunComponents, name: str = "the base") -> Attempts:
        runner, weights = evaluation_runner(components, config), weights_of(components)
        if (other := seen.setdefault(weights, name)) != name:
            raise InputError(InputProblem("benchmark.trained", f"has the weights of {other}", name, "", "", "drop it"))
        environment = runner.environment

        def answer(asked: Sequence[tuple[Task, int]]) -> list[Completion]:
            draws = Draws(config.seed, "evaluate")
            episodes = runner.run([environment.reset(task, draws, (index,)) for task, index in asked])
            return [environment.result(one) for one in episodes]

        provenance = {
            "weights": weights,
            "data": components.domain.fingerprint(options.split),
            "seed": config.seed,
            "decoding": {name: getattr(options, name) for name in ("temperature", "top_k", "top_p", "min_p", "stop")},
            "model": {name: getattr(config.model, name) for name in OF_PROMPTS},
            "environment": config.environment._target_,
            "verifier": decides(config, description(components.verifier)),
        }
        return Attempts(folder / f"{weights[:16]}.jsonl", provenance, answer, options.batch_size)

    def progress(name: str) -> Callable[[str, int, int], None]:
        return lambda part, done, total: _progress(context)(f"{name} {part}", done, total)

    with build_components(config, context) as components, attempts(components) as base:
        tasks, compared, found = components.held_out, config.benchmark.trained, dict[str, dict[str, int]]()
        wanted = set[str]() if compared else {task.id for task in tasks}
        base.sample(tasks, few, progress("base"))
        with ExitStack() as stack:
            owns: dict[str, Attempts] = {}
            for path in compared:
                policy = load_policy(at_checkpoint(config.model, path), config.seed)
                owns[path] = stack.enter_context(attempts(replace(components, policies={POLICY: policy}), path))
                owns[path].sample(tasks, few, progress(path))
                wanted |= {task.id for task in tasks if owns[path].solved(task, few)}
            base.sample([task for task in tasks if task.id in wanted], bench.base_samples, progress("base"))
            found = {path: bench.counts(tasks, base, own, few) for path, own in owns.items()}
        within = few if compared else bench.base_samples
        solved = sum(base.solved(task, within) for task in tasks)
        text = bench.page(len(tasks), solved, few, found)
        metrics: dict[str, Any] = {"tasks": len(tasks), "base/solved": solved, "base/completions": base.completions}
        metrics["no_verdict"] = base.no_verdict + sum(own.no_verdict for own in owns.values())
        metrics |= {f"{path}/{name}": count for path, one in found.items() for name, count in one.items()}
    return text, metrics


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
