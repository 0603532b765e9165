"""`benchmark=landscape`: the loss of gold answers around a policy, and on the straight line to another one.

Random slices in one and two dimensions, the line with its barrier, the plane through both, the largest eigenvalues of the
Hessian, and statistics of the gradients of batches, as a table and as drawings. The weights stay as they are; everything
depends on the seed and the tasks alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import torch

from rlvr_exp.algorithms.gradients import place_of
from rlvr_exp.algorithms.sft import Examples
from rlvr_exp.benchmarks.gradient_variance import gradient_noise
from rlvr_exp.benchmarks.landscape_loss import (
    GoldLoss,
    Weights,
    barrier,
    filter_normalised,
    fixed_weights,
    flat,
    largest_eigenvalues,
    moved,
    places,
    trained_weights,
)
from rlvr_exp.config import benchmark as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.statistics import Estimate
from rlvr_exp.models.policy import Policy
from rlvr_exp.report.plots import Curve, Drawing, curves, heat_map
from rlvr_exp.tasks.base import Domain, Task

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


DIRECTIONS = ("first", "second")
BEYOND = (-0.5, 1.5)
"""How far the plane through both policies reaches, in shares of the way between them."""
Axis = tuple[Sequence[float], Weights]
"""How many times a direction, and the direction."""
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
        """What was found, as `benchmark.json` has it.

        Args:
            other: loads the policy of `benchmark.other`; called where one is given.

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
        found |= self._line(loss, here, there, progress) if there is not None else {}
        found["slices"] = {name: self._slice(loss, here, one, name, progress) for name, one in directions.items()}
        if self.grid:
            first, second = directions.values()
            at, along = places(self.grid, -self.radius, self.radius), places(self.grid, *BEYOND)
            found["grid"] = {"at": at, "loss": _plane(loss, here, (at, first), (at, second), "grid", progress)}
            if there is not None:
                found["plane"] = {"along": along, "at": at}
                found["plane"]["loss"] = _plane(loss, here, (along, there), (at, first), "plane", progress)
        progress("gradients", 0, 1)
        found["gradients"] = gradient_statistics(loss.gradients(here))
        return found | {"eigenvalues": self._eigenvalues(loss, here, seed, progress)}

    def _line(self, loss: GoldLoss, here: Weights, there: Weights, progress: Progress) -> dict[str, Any]:
        """Losses of all tasks at each point, so that whoever has several such lines can tell tasks from seeds."""
        at, losses = places(self.points, 0.0, 1.0), []
        for place, t in enumerate(at):
            progress("line", place, len(at))
            losses.append(loss(moved(here, [(t, there)])).tolist())
        height, where = barrier(at, [*map(fmean, losses)])
        distance = float(flat(there).norm() / flat(here).norm())
        return {"line": {"at": at, "losses": losses}, "barrier": height, "barrier_at": where, "distance": distance}

    def _slice(self, loss: GoldLoss, here: Weights, along: Weights, name: str, progress: Progress) -> dict[str, Any]:
        at, losses = places(self.points, -self.radius, self.radius), []
        for place, size in enumerate(at):
            progress(f"{name} slice", place, len(at))
            losses.append(float(loss(moved(here, [(size, along)])).mean()))
        return {"at": at, "loss": losses}

    def _eigenvalues(self, loss: GoldLoss, here: Weights, seed: int, progress: Progress) -> list[float]:
        product, done = loss.hessian_product(here), 0

        def counted(vector: torch.Tensor) -> torch.Tensor:
            nonlocal done
            progress("products with the Hessian", done, done + 1)
            done += 1
            return product(vector)

        return largest_eigenvalues(counted, flat(here), self.eigenvalues, seed) if self.eigenvalues else []


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
    """From one model's trained weights to the other's. Raises InputError where they are not of one space, or one point."""
    weights, others = trained_weights(here), trained_weights(there)
    shapes = [{name: tuple(value.shape) for name, value in one.items()} for one in (weights, others)]
    if shapes[0] != shapes[1]:
        names = sorted({name for name, _ in shapes[0].items() ^ shapes[1].items()})
        raise _unlike(f"has other trained weights: {names[0]} and {len(names) - 1} more", path)
    ours, theirs = fixed_weights(here), fixed_weights(there)
    unequal = [name for name, value in ours.items() if not _equal(value, theirs.get(name))]
    if unequal:
        raise _unlike(
            f"differs in weights that training does not change: {unequal[0]} and {len(unequal) - 1} more", path
        )
    found = {name: others[name].to(value.device) - value for name, value in weights.items()}
    if not any(value.any() for value in found.values()):
        raise _unlike("has the same weights", path)
    return found


def _equal(one: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is not None and one.shape == other.shape and torch.equal(one, other.to(one.device))


def _unlike(what: str, path: str) -> InputError:
    allowed = "another state of the trained weights of the policy"
    return InputError(InputProblem("benchmark.other", what, path, allowed))


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


def points(at: list[float], losses: list[float]) -> list[tuple[float, Estimate]]:
    return [(x, Estimate(y, y, y)) for x, y in zip(at, losses, strict=True)]
