"""`benchmark=gradient_variance`: the scatter of one policy's gradients from batch to batch, by REINFORCE's baseline.

The weights stay as they are. Every baseline's gradients are of the same completions, so that they differ in nothing else.
The variance is the trace of the covariance of a batch's gradient, |g_i - mean|^2 summed over n - 1; the signal |E g|^2 is
estimated without bias by the products of different batches' gradients. Variance over signal is the number of batches
over which noise and signal are equally large (the simple noise scale of McCandlish et al. 2018, arXiv:1812.06162,
eq. 2.9, in batches).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from rlvr_exp.algorithms.base import Algorithm
from rlvr_exp.algorithms.trainer import PolicyTrainer
from rlvr_exp.benchmarks.sides import Bench
from rlvr_exp.config import benchmark as options
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.core.statistics import Estimate, jackknife
from rlvr_exp.rollouts.groups import Groups
from rlvr_exp.training.learner import Learner


class GradientNoise(NamedTuple):
    """Variance and signal of the gradients of several batches."""

    variance: float
    signal: float

    @property
    def scale(self) -> float | None:
        """Batches; None if the signal is lost in the noise of its estimate."""
        return self.variance / self.signal if self.signal > 0 else None


def gradient_noise(products: torch.Tensor) -> GradientNoise:
    """From the products of all pairs of gradients, (batches, batches)."""
    n, squares = len(products), float(products.diagonal().mean())
    signal = (float(products.sum()) - n * squares) / (n * (n - 1))
    return GradientNoise(squares - signal, signal)


def ratio(first: torch.Tensor, second: torch.Tensor) -> Estimate:
    """The variance of the second over that of the first, from products of pairs, with a jackknife interval over batches."""
    batches = range(len(first))

    def of(left_out: int | None) -> float:
        kept = [batch for batch in batches if batch != left_out]
        one, other = (gradient_noise(products[kept][:, kept]).variance for products in (first, second))
        return other / one

    return jackknife(of(None), [of(batch) for batch in batches])


class GradientVariance(options.GradientVariance):
    def measure(self, bench: Bench, progress: Callable[[str, int, int], None]) -> tuple[str, dict[str, Any]]:
        """A table, and each baseline's variance, signal and noise, and its variance over that of the first.

        Raises:
            GuardStop: no gradient scatters, since all rewards are equal.
        """
        groups: list[Groups] = []
        for batch in range(self.batches):
            progress("batches", batch, self.batches)
            groups += bench.collector.collect(batch).groups.values()
        # (batches, weights that are trained) of each baseline, on the CPU.
        gradients: dict[str, torch.Tensor] = {}
        with TemporaryDirectory() as scratch:
            trainer = bench.trainer(Path(scratch), bench.optimizer())
            Learner("policy", trainer, {}).begin()
            for baseline in self.baselines:
                node = replace(bench.options, baseline=baseline)
                algorithm = build(node, max_completion_tokens=bench.algorithm.max_completion_tokens)
                gradients[baseline] = torch.stack([_gradient(trainer, algorithm, one) for one in groups])
        products = {baseline: of @ of.T for baseline, of in gradients.items()}
        spread = {baseline: gradient_noise(of) for baseline, of in products.items()}
        if min(one.variance for one in spread.values()) <= 0:
            what = "all rewards of a batch are equal"
            raise GuardStop(f"{what}: take tasks that the policy solves at times, or larger batches")
        first, *others = products
        ratios = {baseline: ratio(products[first], products[baseline]) for baseline in others}
        metrics: dict[str, Any] = {
            f"{key}/{name}": value
            for name, one in spread.items()
            for key, value in {**one._asdict(), "noise_scale": one.scale}.items()
            if value is not None
        }
        lines = [
            f"gradients of {self.batches} batches of {bench.options.prompts_per_step} groups of "
            f"{bench.options.group_size}, weights fixed",
            f"{'baseline':<10}{'variance':>12}{'signal':>12}{'noise scale':>13}{'variance against the first [95%]':>36}",
        ]
        for name, one in spread.items():
            against = "{:.2f} [{:.2f}, {:.2f}]".format(*ratios[name]) if name in ratios else ""
            noise = "unknown" if one.scale is None else f"{one.scale:.3g}"
            lines.append(f"{name:<10}{one.variance:>12.3g}{one.signal:>12.3g}{noise:>13}{against:>36}")
        return "\n".join(lines), metrics | {f"ratio/{name}": one._asdict() for name, one in ratios.items()}


def _gradient(trainer: PolicyTrainer, algorithm: Algorithm, groups: Groups) -> torch.Tensor:
    trainer.model_wrapped.zero_grad()
    trainer.take(algorithm.experience(groups, trainer.processing_class.pad_token_id))
    trainer.gradient()
    weights = [weight for weight in trainer.model_wrapped.parameters() if weight.requires_grad]
    return torch.cat(
        [(torch.zeros_like(one) if one.grad is None else one.grad).float().flatten().cpu() for one in weights]
    )
