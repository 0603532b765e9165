"""Options of the small groups around an update: `curriculum`, `optimizer`, `scheduler`, `parallel`."""

from dataclasses import dataclass

from rlvr_exp.config.options import configures, option


@configures("rlvr_exp.curriculum.uniform.Uniform")
@dataclass
class Uniform:
    """Every task equally often, in a seeded order."""


@configures("rlvr_exp.curriculum.ordered.Ordered")
@dataclass
class Ordered:
    """From the easiest task to the hardest."""


@dataclass
class Optimizer:
    """What every optimizer's node has, a user's own included."""

    lr: float = option(2e-4, above=0)
    """Learning rate at its highest."""
    max_grad_norm: float = option(1.0, above=0, outside=True)
    """Gradients are scaled down to this norm."""


@configures("rlvr_exp.algorithms.optimizers.AdamW")
@dataclass
class AdamW(Optimizer):
    """Adam with decoupled weight decay."""

    beta1: float = option(0.9, low=0, high=1)
    """Decay of the mean of gradients."""
    beta2: float = option(0.999, low=0, high=1)
    """Decay of the mean of squared gradients."""
    eps: float = option(1e-8, above=0)
    """Added to the denominator."""
    weight_decay: float = option(0.0, low=0)
    """Decoupled weight decay of matrices."""


@configures("rlvr_exp.algorithms.optimizers.Muon")
@dataclass
class Muon(AdamW):
    """Orthogonalised momentum for hidden matrices, for training from scratch in few steps; AdamW for the rest."""

    matrix_lr: float = option(0.02, above=0)
    """Learning rate of the hidden matrices; `lr` is that of embeddings, heads and norms."""
    momentum: float = option(0.95, low=0, high=1)
    """Decay of the momentum of the hidden matrices."""


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
