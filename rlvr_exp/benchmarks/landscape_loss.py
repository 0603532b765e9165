"""The loss of gold answers as a function of a policy's trained weights, and the surroundings of a point in the space of weights:
directions, slices, the line to another point, the Hessian. Never writes to the policy's own weights.

A task's loss is the mean negative log-likelihood of its answer's tokens, in nats; the loss is the mean over tasks. Computed in
32 bits, and in attention's plain form, the one that can be differentiated twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pad_sequence

from rlvr_exp.algorithms.sft import IGNORED, Example, length
from rlvr_exp.core.seeds import derive

Weights = Mapping[str, torch.Tensor]
"""By parameter name: a point, or a direction, in the space of the trained weights."""


def trained_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Copies of those that training would change, in 32 bits."""
    return {name: value.detach().float().clone() for name, value in model.named_parameters() if value.requires_grad}


def moved(weights: Weights, steps: Iterable[tuple[float, Weights]]) -> dict[str, torch.Tensor]:
    """The point that is that many times each direction away."""
    found = dict(weights)
    for size, direction in steps:
        found = {name: value + size * direction[name] for name, value in found.items()}
    return found


def flat(weights: Weights) -> torch.Tensor:
    """(size,)"""
    return torch.cat([value.flatten() for value in weights.values()])


def shaped(vector: torch.Tensor, like: Weights) -> dict[str, torch.Tensor]:
    """The inverse of `flat`."""
    parts = vector.split([value.numel() for value in like.values()])
    return {name: part.view_as(value) for (name, value), part in zip(like.items(), parts, strict=True)}


class GoldLoss:
    """
    Args:
        examples: one a task, at least as many as there are batches.
        batches: each has nearly equally many tasks, of all lengths.
    """

    def __init__(self, model: torch.nn.Module, examples: Sequence[Example], batches: int):
        self._model = model.eval()
        self._fixed = {name: value.float() for name, value in fixed_weights(model).items() if value.is_floating_point()}
        device = next(model.parameters()).device
        ordered = sorted(range(len(examples)), key=lambda place: length(examples[place]))
        self._places = [ordered[start::batches] for start in range(batches)]
        self._batches = [_batch([examples[place] for place in places], device) for places in self._places]
        self.tasks = len(examples)

    def __call__(self, weights: Weights) -> torch.Tensor:
        """(tasks,) losses in the order of the examples, on the CPU."""
        found = torch.zeros(self.tasks)
        with torch.no_grad(), _twice_differentiable():
            for places, batch in zip(self._places, self._batches, strict=True):
                found[places] = self._losses(weights, batch).cpu()
        return found

    def gradients(self, weights: Weights) -> Iterator[dict[str, torch.Tensor]]:
        """Of each batch's mean loss."""
        for batch in self._batches:
            leaves = _leaves(weights)
            with _twice_differentiable():
                loss = self._losses(leaves, batch).mean()
                found = torch.autograd.grad(loss, [*leaves.values()], materialize_grads=True)
            yield dict(zip(leaves, found, strict=True))

    def hessian_product(self, weights: Weights) -> Callable[[torch.Tensor], torch.Tensor]:
        """From a vector of the size of all weights to the Hessian's product with it, by differentiating the gradient's product
        with it (Pearlmutter 1994)."""

        def product(vector: torch.Tensor) -> torch.Tensor:
            direction, total = shaped(vector, weights), torch.zeros_like(vector)
            for batch in self._batches:
                leaves = _leaves(weights)
                inputs = [*leaves.values()]
                with _twice_differentiable():
                    loss = self._losses(leaves, batch).sum() / self.tasks
                    slopes = torch.autograd.grad(loss, inputs, create_graph=True, materialize_grads=True)
                    along = sum((slope * direction[name]).sum() for name, slope in zip(leaves, slopes, strict=True))
                    found = torch.autograd.grad(along, inputs, materialize_grads=True)
                total += torch.cat([part.flatten() for part in found])
            return total

        return product

    def _losses(self, weights: Weights, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(tasks of the batch,)"""
        given = {"attention_mask": batch["attention_mask"], "use_cache": False}
        logits = functional_call(self._model, {**self._fixed, **weights}, (batch["input_ids"],), given).logits
        labels = batch["labels"][:, 1:]
        each = torch.nn.functional.cross_entropy(
            logits[:, :-1].float().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
        )
        return each.sum(1) / (labels != IGNORED).sum(1)


def fixed_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What training would not change."""
    frozen = {name: value.detach() for name, value in model.named_parameters() if not value.requires_grad}
    return frozen | dict(model.named_buffers())


def _leaves(weights: Weights) -> dict[str, torch.Tensor]:
    return {name: value.detach().requires_grad_() for name, value in weights.items()}


@contextmanager
def _twice_differentiable() -> Iterator[None]:
    with sdpa_kernel(SDPBackend.MATH):
        yield


def _batch(examples: Sequence[Example], device: torch.device) -> dict[str, torch.Tensor]:
    def padded(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value).to(device)

    ids = [one["input_ids"] for one in examples]
    return {
        "input_ids": padded(ids, 0),
        "attention_mask": padded([[1] * len(row) for row in ids], 0),
        "labels": padded([one["labels"] for one in examples], IGNORED),
    }


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
