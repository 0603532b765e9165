"""`benchmark=landscape`: the loss of reference answers around a policy, and on the straight line to another one.

Random slices in one and two dimensions, the line with its barrier, the plane through both, the largest eigenvalues of the
Hessian, and statistics of the gradients of batches, as a table and as drawings. The policy's own weights never change;
everything depends on the seed and the tasks alone.

A task's loss is the mean negative log-likelihood of its answer's tokens, in nats; the loss is the mean over tasks. It is
computed in 32 bits, and in attention's plain form, the one that can be differentiated twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from statistics import fmean
from typing import Any

import numpy
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils.rnn import pad_sequence

from rlvr_exp.algorithms.gradients import place_of
from rlvr_exp.algorithms.sft import IGNORED, Example, Examples, length
from rlvr_exp.benchmarks.gradient_variance import gradient_noise
from rlvr_exp.config import benchmark as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import derive
from rlvr_exp.core.statistics import Estimate
from rlvr_exp.models.policy import Policy
from rlvr_exp.report.plots import Curve, Drawing, curves, heat_map
from rlvr_exp.tasks.base import Domain, Task

Weights = Mapping[str, torch.Tensor]
"""By parameter name: a point, or a direction, in the space of the trained weights."""


def trained_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Copies of the trained weights, in 32 bits."""
    return {name: value.detach().float().clone() for name, value in model.named_parameters() if value.requires_grad}


def moved(weights: Weights, steps: Iterable[tuple[float, Weights]]) -> dict[str, torch.Tensor]:
    """The point that is `size` times each direction away."""
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
    """The weights and buffers that training does not change."""
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
"""Relative error of an eigenvalue that ends the iteration. Products are computed in 32 bits."""
RESTARTS = 1000
"""Limit of Lanczos. ARPACK's own limit grows with the weights and overflows."""


def filter_normalised(weights: Weights, seed: int, name: str) -> dict[str, torch.Tensor]:
    """A random direction, each of whose rows has the norm of the weights' own row; 0 for norms and biases (Li et al. 2018,
    arXiv:1712.09913, section 4, whose filters are rows here)."""
    draw, found = torch.Generator().manual_seed(derive(seed, "landscape", name)), {}
    for key, value in weights.items():
        if value.dim() < 2:
            found[key] = torch.zeros_like(value)
            continue
        rows = value.flatten(1)
        drawn = torch.randn(rows.shape, generator=draw).to(rows)
        found[key] = (drawn * (rows.norm(dim=1) / drawn.norm(dim=1))[:, None]).view_as(value)
    return found


def places(points: int, low: float, high: float) -> list[float]:
    """Equally far apart, both ends among them."""
    return [low + (high - low) * place / (points - 1) for place in range(points)]


def barrier(at: Sequence[float], losses: Sequence[float]) -> tuple[float, float]:
    """The largest rise of the loss on the way from 0 to 1 above the straight line between its ends, and its place (Entezari
    et al. 2022, arXiv:2110.06296, definition 2.1). At the ends the rise is 0, so it is never negative."""
    first, last = losses[0], losses[-1]
    above = [loss - ((1 - t) * first + t * last) for t, loss in zip(at, losses, strict=True)]
    where = max(range(len(above)), key=above.__getitem__)
    return above[where], at[where]


def largest_eigenvalues(
    product: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor, count: int, seed: int
) -> list[float]:
    """The largest eigenvalues of a symmetric matrix that is known by its products, in falling order, by the implicitly
    restarted Lanczos method of ARPACK, which orthogonalises against all vectors that it keeps.

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


ALL = "all"


def gradient_statistics(gradients: Iterable[Weights]) -> dict[str, dict[str, float | None]]:
    """For each place of the model, and for all of it: `norm` of the mean gradient, `noise_scale` in batches (None if the
    signal is lost in the noise of its estimate), and `cosine`, the mean over pairs of batches.

    Args:
        gradients: two or more.
    """
    rows: dict[str, list[torch.Tensor]] = {}
    for gradient in gradients:
        parts: dict[str, list[torch.Tensor]] = {}
        for name, value in gradient.items():
            parts.setdefault(place_of(name), []).append(value.double().flatten().cpu())
        for place, part in parts.items():
            rows.setdefault(place, []).append(torch.cat(part))
    # (batches, batches) products of all pairs.
    products = {place: (stacked := torch.stack(each)) @ stacked.T for place, each in rows.items()}
    products[ALL] = torch.stack([*products.values()]).sum(0)
    found: dict[str, dict[str, float | None]] = {}
    for place, each in sorted(products.items()):
        lengths = each.diagonal().sqrt()
        cosines = each / (lengths[:, None] * lengths).clamp(min=torch.finfo(each.dtype).tiny)
        found[place] = {
            "norm": float(each.mean().clamp(min=0).sqrt()),
            "noise_scale": gradient_noise(each).scale,
            "cosine": float(cosines[~torch.eye(len(each), dtype=torch.bool)].mean()),
        }
    return found


DIRECTIONS = ("first", "second")
BEYOND = (-0.5, 1.5)
"""Extent of the plane through both policies, in shares of the way between them."""
Axis = tuple[Sequence[float], Weights]
"""Multiples of a direction, and the direction."""
Progress = Callable[[str, int, int], None]


class Landscape(options.Landscape):
    def measure(
        self,
        policy: Policy,
        domain: Domain,
        tasks: Sequence[Task],
        other: Callable[[], Policy],
        seed: int,
        progress: Progress,
    ) -> dict[str, Any]:
        """Measure the landscape; the result is `benchmark.json`.

        Args:
            other: loads the policy of `benchmark.other`. Called only if that is set.

        Raises:
            InputError: fewer tasks with gold answers than batches, or the other policy has other weights.
        """
        examples = Examples(policy, domain, tasks, policy.max_tokens)
        if len(examples) < self.batches:
            what, allowed = "too few tasks with a gold answer", f"at least {self.batches}, or fewer benchmark.batches"
            raise InputError(InputProblem("evaluation.tasks", what, str(len(examples)), allowed))
        here = trained_weights(policy.model)
        there = _difference(policy.model, other().model, self.other) if self.other else None
        loss = GoldLoss(policy.model, [examples[place] for place in range(len(examples))], self.batches)
        directions = {name: filter_normalised(here, seed, name) for name in DIRECTIONS}
        found: dict[str, Any] = {"tasks": loss.tasks, "weights": flat(here).numel(), "losses": loss(here).tolist()}
        found["loss"] = fmean(found["losses"])
        if there is not None:
            # Losses of all tasks at each point, so that several lines separate the spread of tasks from that of seeds.
            at, losses = places(self.points, 0.0, 1.0), []
            for place, t in enumerate(at):
                progress("line", place, len(at))
                losses.append(loss(moved(here, [(t, there)])).tolist())
            found["line"] = {"at": at, "losses": losses}
            found["barrier"], found["barrier_at"] = barrier(at, [*map(fmean, losses)])
            found["distance"] = float(flat(there).norm() / flat(here).norm())
        found["slices"] = {}
        for name, one in directions.items():
            at, means = places(self.points, -self.radius, self.radius), []
            for place, size in enumerate(at):
                progress(f"{name} slice", place, len(at))
                means.append(float(loss(moved(here, [(size, one)])).mean()))
            found["slices"][name] = {"at": at, "loss": means}
        if self.grid:
            first, second = directions.values()
            at, along = places(self.grid, -self.radius, self.radius), places(self.grid, *BEYOND)
            found["grid"] = {"at": at, "loss": _plane(loss, here, (at, first), (at, second), "grid", progress)}
            if there is not None:
                found["plane"] = {"along": along, "at": at}
                found["plane"]["loss"] = _plane(loss, here, (along, there), (at, first), "plane", progress)
        progress("gradients", 0, 1)
        found["gradients"] = gradient_statistics(loss.gradients(here))
        product, done = loss.hessian_product(here), count()

        def counted(vector: torch.Tensor) -> torch.Tensor:
            number = next(done)
            progress("products with the Hessian", number, number + 1)
            return product(vector)

        values = largest_eigenvalues(counted, flat(here), self.eigenvalues, seed) if self.eigenvalues else []
        return found | {"eigenvalues": values}


def _plane(
    loss: GoldLoss, here: Weights, first: Axis, second: Axis, name: str, progress: Progress
) -> list[list[float]]:
    """`[i][j]`: the loss at place i of the first axis and place j of the second."""
    (sizes, along), (others, aside), rows = first, second, list[list[float]]()
    for place, size in enumerate(sizes):
        progress(name, place, len(sizes))
        from_here = moved(here, [(size, along)])
        rows.append([float(loss(moved(from_here, [(other, aside)])).mean()) for other in others])
    return rows


def _difference(here: torch.nn.Module, there: torch.nn.Module, path: str) -> dict[str, torch.Tensor]:
    """From one model's trained weights to the other's. Raises InputError if their spaces differ or the points are equal."""

    def refused(what: str) -> InputError:
        return InputError(
            InputProblem("benchmark.other", what, path, "another state of the trained weights of the policy")
        )

    weights, others = trained_weights(here), trained_weights(there)
    shapes = [{name: tuple(value.shape) for name, value in one.items()} for one in (weights, others)]
    if shapes[0] != shapes[1]:
        names = sorted({name for name, _ in shapes[0].items() ^ shapes[1].items()})
        raise refused(f"has other trained weights: {names[0]} and {len(names) - 1} more")
    theirs = fixed_weights(there)
    unequal = [
        name
        for name, value in fixed_weights(here).items()
        if name not in theirs or not torch.equal(value, theirs[name].to(value.device))
    ]
    if unequal:
        raise refused(f"differs in weights that training does not change: {unequal[0]} and {len(unequal) - 1} more")
    found = {name: others[name].to(value.device) - value for name, value in weights.items()}
    if not any(value.any() for value in found.values()):
        raise refused("has the same weights")
    return found


def metrics(found: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a landscape by name, for the run's summary."""
    plain = {name: found[name] for name in ("loss", "barrier", "barrier_at", "distance") if name in found}
    values = {f"eigenvalue/{rank}": value for rank, value in enumerate(found["eigenvalues"], 1)}
    gradient = {f"gradient/{name}": value for name, value in found["gradients"][ALL].items() if value is not None}
    return plain | values | gradient


LOSS = "loss, nats a token"
OFFSET = "norms of rows"


def table(found: Mapping[str, Any]) -> str:
    lines = [
        f"gold answers of {found['tasks']} tasks, {found['weights']:,} weights: loss {found['loss']:.4f} nats a token"
    ]
    if "line" in found:
        last = fmean(found["line"]["losses"][-1])
        lines.append(f"to the other policy, {found['distance']:.3g} of the weights' norm away: loss {last:.4f}")
        lines.append(f"barrier {found['barrier']:.3g} above the straight line, at {found['barrier_at']:.0%} of the way")
    if found["eigenvalues"]:
        lines.append(
            "largest eigenvalues of the Hessian: " + ", ".join(f"{value:.4g}" for value in found["eigenvalues"])
        )
    lines.append(f"{'gradient of':<12}{'norm':>10}{'noise scale':>13}{'cosine':>9}")
    for place, one in found["gradients"].items():
        noise = "unknown" if one["noise_scale"] is None else f"{one['noise_scale']:.3g}"
        lines.append(f"{place:<12}{one['norm']:>10.3g}{noise:>13}{one['cosine']:>9.3f}")
    return "\n".join(lines)


def drawings(found: Mapping[str, Any]) -> dict[str, Drawing]:
    """By the name of their file."""

    def points(at: Sequence[float], losses: Sequence[float]) -> list[tuple[float, Estimate]]:
        return [(x, Estimate(y, y, y)) for x, y in zip(at, losses, strict=True)]

    slices = [Curve(f"{name} direction", points(one["at"], one["loss"])) for name, one in found["slices"].items()]
    drawn = {"slices": curves("Random directions", slices, OFFSET, LOSS)}
    if "line" in found:
        means = [fmean(losses) for losses in found["line"]["losses"]]
        way = [Curve("line", points(found["line"]["at"], means))]
        drawn["line"] = curves("Straight line to the other policy", way, "share of the way", LOSS)
    if "grid" in found:
        at, losses = found["grid"]["at"], found["grid"]["loss"]
        drawn["grid"] = heat_map(f"{LOSS}, in {OFFSET}", at, at, losses, "first direction", "second")
    if "plane" in found:
        plane, title, aside = found["plane"], f"{LOSS}, through both policies", f"{OFFSET} at random"
        drawn["plane"] = heat_map(title, plane["along"], plane["at"], plane["loss"], "share of the way", aside)
    return drawn
