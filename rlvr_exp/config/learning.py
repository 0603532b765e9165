"""Options of the small groups around an update: `curriculum`, `optimizer`, `scheduler`, `parallel`."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures, option


@configures("rlvr_exp.curriculum.uniform.Uniform")
@dataclass
class Uniform:
    """Every task equally often, in a seeded order."""


@dataclass
class Optimizer:
    """AdamW."""

    lr: float = option(2e-4, above=0)
    """Learning rate at its highest."""
    beta1: float = option(0.9, low=0, high=1)
    """Decay of the mean of gradients."""
    beta2: float = option(0.999, low=0, high=1)
    """Decay of the mean of squared gradients."""
    eps: float = option(1e-8, above=0)
    """Added to the denominator."""
    weight_decay: float = option(0.0, low=0)
    """Decoupled weight decay."""
    max_grad_norm: float = option(1.0, above=0)
    """Gradients are scaled down to this norm."""


@dataclass
class Scheduler:
    """The learning rate over the steps."""

    name: str = option("constant", choices=("constant", "cosine", "linear"))
    """Shape after the warm-up."""
    warmup_steps: int = option(0, low=0)
    """Steps over which the rate rises from 0."""


@dataclass
class Parallel:
    """Processes and threads of the training itself."""

    processes: int = option(1, choices=(1,))
    """Training processes."""
    threads: int = option(0, low=0)
    """Compute threads of one process; 0: chosen for the machine."""
