"""Options of the `optimizer` and `scheduler` groups: the update rule, and the learning rate over the steps."""

from collections.abc import Iterator
from dataclasses import dataclass

from rlvr_exp.config.options import configures, option
from rlvr_exp.core.errors import InputProblem


@dataclass
class Optimizer:
    """Options of every optimizer's node, a user's own included."""

    lr: float = option(2e-4, above=0)
    """Learning rate at its highest."""
    max_grad_norm: float = option(1.0, above=0)
    """Gradients are scaled down to this norm."""
    gradient_cosine: bool = option(False, rare=True)
    """Log the cosine between the gradients of consecutive updates, by layer; keeps one of them in host memory."""


@dataclass
class Moments(Optimizer):
    """Options of the optimizers of Adam's kind."""

    beta1: float = option(0.9, low=0, below=1)
    """Decay of the mean of gradients."""
    beta2: float = option(0.999, low=0, below=1)
    """Decay of the mean of squared gradients."""
    eps: float = option(1e-8, above=0, rare=True)
    """Added to the denominator."""


@configures("rlvr_exp.algorithms.optimizers.Adam")
@dataclass
class Adam(Moments):
    """Adam with an L2 penalty, which its denominator divides like any other gradient."""

    weight_decay: float = option(0.0, low=0)
    """L2 penalty of matrices, added to their gradients."""


@configures("rlvr_exp.algorithms.optimizers.AdamW")
@dataclass
class AdamW(Moments):
    """Adam with decoupled weight decay."""

    weight_decay: float = option(0.0, low=0)
    """Decoupled weight decay of matrices."""


@configures("rlvr_exp.algorithms.optimizers.AdamW8bit")
@dataclass
class AdamW8bit(AdamW):
    """AdamW with states of 8 bits, in blocks of 256 with a scale each (bitsandbytes): a quarter of the memory."""


@configures("rlvr_exp.algorithms.optimizers.SGD")
@dataclass
class SGD(Optimizer):
    """Stochastic gradient descent."""

    momentum: float = option(0.9, low=0, below=1)
    """Share of the last update in the next; 0: none, and no state in memory."""
    weight_decay: float = option(0.0, low=0)
    """L2 penalty of matrices, added to their gradients."""


@configures("rlvr_exp.algorithms.optimizers.Adafactor")
@dataclass
class Adafactor(Optimizer):
    """Adam with a row and a column of second moments for each matrix in place of all of them, for little memory."""

    beta1: float = option(0.0, low=0, below=1)
    """Decay of the mean of updates; 0: none, and no such state in memory."""
    weight_decay: float = option(0.0, low=0)
    """Decoupled weight decay of matrices."""


@configures("rlvr_exp.algorithms.optimizers.Muon")
@dataclass
class Muon(AdamW):
    """Orthogonalised momentum for hidden matrices, for training from scratch in few steps; AdamW for the rest."""

    matrix_lr: float = option(0.02, above=0)
    """Learning rate of the hidden matrices; `lr` is that of embeddings, heads and norms."""
    momentum: float = option(0.95, low=0, below=1)
    """Decay of the momentum of the hidden matrices."""


@dataclass
class Scheduler:
    """The learning rate over the steps; what every schedule's node has, a user's own included."""

    warmup_steps: int = option(0, low=0)
    """Steps over which the rate rises to its highest."""


@configures("rlvr_exp.algorithms.optimizers.Constant")
@dataclass
class Constant(Scheduler):
    """The highest rate, after the warm-up."""


@configures("rlvr_exp.algorithms.optimizers.Linear")
@dataclass
class Linear(Scheduler):
    """A straight line to 0 at the last step."""


@configures("rlvr_exp.algorithms.optimizers.Cosine")
@dataclass
class Cosine(Scheduler):
    """Half a wave of the cosine."""

    min_ratio: float = option(0.0, low=0, below=1)
    """Where it ends, as a share of the highest rate."""


@configures("rlvr_exp.algorithms.optimizers.Polynomial")
@dataclass
class Polynomial(Scheduler):
    """A power of the share of steps that are left."""

    power: float = option(2.0, above=0)
    """The power; 1 is a straight line."""
    min_ratio: float = option(0.0, low=0, below=1)
    """Where it ends, as a share of the highest rate."""


@configures("rlvr_exp.algorithms.optimizers.WarmupStableDecay")
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
