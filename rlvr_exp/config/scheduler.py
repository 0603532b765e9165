"""Options of the `scheduler` group: the learning rate over the steps. Each schedule has a schema of its own."""

from collections.abc import Iterator
from dataclasses import dataclass

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Scheduler:
    """The learning rate over the steps; what every schedule's node has, a user's own included."""

    warmup_steps: int = option(0, low=0)
    """Steps over which the rate rises to its highest."""


@configures("rlvr_exp.algorithms.schedules.Constant")
@dataclass
class Constant(Scheduler):
    """The highest rate, after the warm-up."""


@configures("rlvr_exp.algorithms.schedules.Linear")
@dataclass
class Linear(Scheduler):
    """A straight line to 0 at the last step."""


@configures("rlvr_exp.algorithms.schedules.Cosine")
@dataclass
class Cosine(Scheduler):
    """Half a wave of the cosine."""

    min_ratio: float = option(0.0, low=0, below=1)
    """Where it ends, as a share of the highest rate."""


@configures("rlvr_exp.algorithms.schedules.Polynomial")
@dataclass
class Polynomial(Scheduler):
    """A power of the share of steps that are left."""

    power: float = option(2.0, above=0)
    """The power; 1 is a straight line."""
    min_ratio: float = option(0.0, low=0, below=1)
    """Where it ends, as a share of the highest rate."""


@configures("rlvr_exp.algorithms.schedules.WarmupStableDecay")
@dataclass
class WarmupStableDecay(Scheduler):
    """The highest rate for most of the run, then a short decay: the stable part can be resumed from any step."""

    decay_steps: int = option(0, low=0)
    """Steps of the decay, the last ones; 0: a fifth of all."""
    decay: str = option("linear", choices=("linear", "cosine", "1-sqrt"))
    """Shape of the decay."""
    min_ratio: float = option(0.0, low=0, below=1)
    """Where the warm-up begins and the decay ends, as a share of the highest rate."""


def last_steps(steps: int) -> int:
    """Steps of a decay whose length is not given: a fifth of a run's, rounded up."""
    return -(-steps // 5)


def schedule_problems(scheduler: Scheduler, steps: int) -> Iterator[InputProblem]:
    """What a schedule cannot do in a run of that many steps."""
    if not (steps and isinstance(scheduler, WarmupStableDecay)):
        return
    decay = scheduler.decay_steps or last_steps(steps)
    if scheduler.warmup_steps + decay > steps:
        got = f"{scheduler.warmup_steps} + {decay} of {steps} steps"
        remedy = "a shorter scheduler.warmup_steps or scheduler.decay_steps, or a larger algorithm.max_steps"
        yield InputProblem("scheduler", "warm-up and decay are longer than the run", got, "", "", remedy)
