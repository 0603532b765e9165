"""Statistics of the gradients of several batches at one point, by place of the model."""

from collections.abc import Iterable, Mapping

import torch

from rlvr_exp.algorithms.gradients import place_of
from rlvr_exp.benchmarks.gradient_variance import gradient_noise
from rlvr_exp.benchmarks.landscape_loss import Weights

ALL = "all"


def gradient_statistics(gradients: Iterable[Weights]) -> dict[str, dict[str, float | None]]:
    """Of each place of the model, and of all of it: `norm` of the mean gradient, `noise_scale` in batches (None where the
    signal is lost in the noise of its estimate), and `cosine`, the mean over pairs of batches.

    Args:
        gradients: two or more.
    """
    products = _products(gradients)
    products[ALL] = torch.stack([*products.values()]).sum(0)
    return {place: _statistics(products[place]) for place in sorted(products)}


def _products(gradients: Iterable[Weights]) -> dict[str, torch.Tensor]:
    """By place, the (batches, batches) products of all pairs."""
    parts: dict[str, list[torch.Tensor]] = {}
    for gradient in gradients:
        for place, part in _by_place(gradient).items():
            parts.setdefault(place, []).append(part)
    return {place: (rows := torch.stack(each)) @ rows.T for place, each in parts.items()}


def _by_place(gradient: Weights) -> Mapping[str, torch.Tensor]:
    parts: dict[str, list[torch.Tensor]] = {}
    for name, value in gradient.items():
        parts.setdefault(place_of(name), []).append(value.double().flatten().cpu())
    return {place: torch.cat(each) for place, each in parts.items()}


def _statistics(products: torch.Tensor) -> dict[str, float | None]:
    lengths = products.diagonal().sqrt()
    cosines = products / (lengths[:, None] * lengths).clamp(min=torch.finfo(products.dtype).tiny)
    others = ~torch.eye(len(products), dtype=torch.bool)
    return {
        "norm": float(products.mean().clamp(min=0).sqrt()),
        "noise_scale": gradient_noise(products).scale,
        "cosine": float(cosines[others].mean()),
    }
