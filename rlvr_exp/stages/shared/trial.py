"""`run.trial=true`: the configured run for half a minute on the machine that is there, and what the whole would cost."""

import math
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch

from rlvr_exp.config.run import planned
from rlvr_exp.config.schema import Config
from rlvr_exp.evaluation.evaluate_episodes import evaluate_episodes
from rlvr_exp.records.context import RunContext, StageResult
from rlvr_exp.records.tracking import Row, read_metrics
from rlvr_exp.stages.shared.components import RunComponents, device, evaluation_runner
from rlvr_exp.training.step_log import MEASURING, SAVING, UPDATING, EnergyMeter, StepClock

SECONDS = 30.0
TASKS = 8
"""Held-out tasks that are answered, to know what an answer costs."""
RATES = "tokens_per_second"
SEEN = "tokens/seen"


@dataclass(frozen=True)
class Cost:
    """Seconds of the parts of a run, by what they are; those that are done once count once."""

    steps: int
    step: float
    evaluation: float
    """Before and after training, each."""
    selection: float
    """All looks for the best step."""
    checkpoints: float
    start: float

    @property
    def seconds(self) -> float:
        return self.start + self.steps * self.step + 2 * self.evaluation + self.selection + self.checkpoints


def on_trial(
    components: RunComponents,
    config: Config,
    context: RunContext,
    train: Callable[[StepClock], tuple[int, Row]],
) -> StageResult:
    """Answer some held-out tasks, train for `SECONDS`, and tell what the configured run would cost."""
    meter = EnergyMeter()
    clock = StepClock(SECONDS, after=meter.sample)
    answer = _seconds_an_answer(components, config)
    began = time.perf_counter()
    steps, _ = train(clock)
    ready = time.perf_counter() - began - sum(map(sum, clock.seconds.values()))
    cost = cost_of(config, clock, answer, ready, len(components.held_out))
    rows = list(read_metrics(context.directory))
    lines = [*cost_lines(cost, len(clock.counted)), *token_lines(rows, clock), *memory_lines()]
    lines.append(energy_line(meter.kilowatts(), cost))
    context.progress(kind="note", text="\n".join([f"trial on {where()}, of which nothing is kept:", *lines]))
    return StageResult(before={}, after={}, metrics={"trial/seconds": cost.seconds}, steps=steps)


def _seconds_an_answer(components: RunComponents, config: Config) -> float:
    tasks, start = components.held_out[:TASKS], time.perf_counter()
    runner = evaluation_runner(components, config)
    answers = evaluate_episodes(runner, tasks, config.evaluation, config.seed, lambda *_: None)
    return (time.perf_counter() - start) / len(answers)


def cost_of(config: Config, clock: StepClock, answer: float, start: float, held_out: int) -> Cost:
    """The cost of a configured run.

    Args:
        answer: seconds of one held-out answer.
        start: seconds before the first step.
        held_out: tasks that success is measured on.
    """
    steps, select = config.algorithm.max_steps, planned(config)
    looks = math.ceil(steps / select.every_steps) if select.every_steps else 0
    measured = clock.seconds[MEASURING]
    look = max(measured) if measured else answer * (select.tasks or held_out) * _answers(select.samples, config)
    return Cost(
        steps=steps,
        step=fmean(clock.counted),
        evaluation=answer * held_out * _answers(config.evaluation.samples, config),
        selection=looks * look,
        checkpoints=math.ceil(steps / config.run.checkpoint.every_steps) * max(clock.seconds[SAVING], default=0.0),
        start=start + clock.seconds[UPDATING][0] - fmean(clock.counted),
    )


def _answers(samples: int, config: Config) -> int:
    return samples + config.evaluation.greedy


def cost_lines(cost: Cost, counted: int) -> Iterator[str]:
    yield f"  steps        {cost.step:.2f} s each, of {counted}: {3600 / cost.step:,.0f} an hour"
    yield f"  evaluation   {spell(cost.evaluation)} before and after; {spell(cost.selection)} to look for the best step"
    yield f"  checkpoints  {spell(cost.checkpoints)}"
    yield f"  the run      {cost.steps} steps: about {spell(cost.seconds)}"


def token_lines(rows: Sequence[Mapping[str, float]], clock: StepClock) -> Iterator[str]:
    """Tokens a second: of a policy those that it samples, of imitation those that it is shown."""
    for name in sorted({name for row in rows for name in row if name.endswith(RATES)}):
        role = name.removeprefix("time/").removesuffix(RATES).strip("/")
        sampled = fmean(row[name] for row in rows[1:] or rows if row.get(name) is not None)
        yield f"  tokens       {sampled:,.0f} sampled a second{role and f', {role}'}"
    if len(rows) > 1 and rows[0].get(SEEN) is not None:
        yield f"  tokens       {(rows[-1][SEEN] - rows[0][SEEN]) / sum(clock.counted):,.0f} trained on a second"


def memory_lines() -> Iterator[str]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield f"  memory       {peak:.2f} GiB of this process at its peak"
    for index in range(torch.cuda.device_count()):
        used, total = torch.cuda.max_memory_reserved(index), torch.cuda.get_device_properties(index).total_memory
        yield f"  memory       {used / 2**30:.2f} of {total / 2**30:.2f} GiB of device {index} at its peak"


def energy_line(kilowatts: Mapping[str, float], cost: Cost) -> str:
    if not kilowatts:
        return "  energy       cannot be read on this machine"
    parts = ", ".join(f"{1000 * power:.0f} W of the {part}" for part, power in kilowatts.items())
    return f"  energy       {sum(kilowatts.values()) * cost.seconds / 3600:.3g} kWh, at {parts}"


def where() -> str:
    found = device()
    return ", ".join(found["gpus"]) or f"a CPU, {found['threads']} threads"


def spell(seconds: float) -> str:
    """A duration in the unit that a person would take."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 6000 else f"{seconds / 3600:.1f} hours"
