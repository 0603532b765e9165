"""The surroundings of a point in the space of weights: directions, slices, the line to another point, the Hessian."""

from collections.abc import Callable, Sequence

import numpy
import torch
from scipy.sparse.linalg import LinearOperator, eigsh

from rlvr_exp.benchmarks.landscape_loss import Weights
from rlvr_exp.core.seeds import derive

TOLERANCE = 1e-3
"""Relative error of an eigenvalue at which the iteration ends; products are computed in 32 bits."""
RESTARTS = 1000
"""Of Lanczos at most; ARPACK's own limit grows with the weights, past what it can count."""


def filter_normalised(weights: Weights, seed: int, name: str) -> dict[str, torch.Tensor]:
    """A random direction, each of whose rows has the norm of the weights' own row; 0 for norms and biases (Li et al. 2018,
    arXiv:1712.09913, section 4, where a row is a filter)."""
    draw = torch.Generator().manual_seed(derive(seed, "landscape", name))
    return {key: _normalised(value, draw) for key, value in weights.items()}


def _normalised(value: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    if value.dim() < 2:
        return torch.zeros_like(value)
    rows = value.flatten(1)
    drawn = torch.randn(rows.shape, generator=draw).to(rows)
    return (drawn * (rows.norm(dim=1) / drawn.norm(dim=1))[:, None]).view_as(value)


def places(points: int, low: float, high: float) -> list[float]:
    """Equally far apart, both ends among them."""
    return [low + (high - low) * place / (points - 1) for place in range(points)]


def barrier(at: Sequence[float], losses: Sequence[float]) -> tuple[float, float]:
    """How far the loss on the way from 0 to 1 rises above the straight line between its ends, at most, and where (Entezari et
    al. 2022, arXiv:2110.06296, definition 2.1). Never below 0, which it is at the ends."""
    first, last = losses[0], losses[-1]
    above = [loss - ((1 - t) * first + t * last) for t, loss in zip(at, losses, strict=True)]
    where = max(range(len(above)), key=above.__getitem__)
    return above[where], at[where]


def largest_eigenvalues(
    product: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor, count: int, seed: int
) -> list[float]:
    """Of a symmetric matrix that is known by its products, in falling order, by the implicitly restarted Lanczos method of
    ARPACK, which orthogonalises against all vectors that it keeps.

    Args:
        like: a vector as the products take it; more than `count` numbers.

    Raises:
        ArpackNoConvergence: not found within RESTARTS.
    """

    def of(vector: numpy.ndarray) -> numpy.ndarray:
        return product(torch.from_numpy(vector.ravel()).to(like)).double().cpu().numpy()

    size = like.numel()
    start = torch.randn(size, generator=torch.Generator().manual_seed(derive(seed, "landscape", "lanczos")))
    operator = LinearOperator((size, size), matvec=of, dtype=numpy.float64)
    found = eigsh(
        operator,
        count,
        which="LA",
        v0=start.double().numpy(),
        maxiter=RESTARTS,
        tol=TOLERANCE,
        return_eigenvectors=False,
    )
    return sorted((float(value) for value in found), reverse=True)
