"""Gradients of an update: skipped if not finite, clipped, and compared with the last one.

`NonFiniteGuard` skips an update if its loss, gradient or reward is not finite. Weights, optimizer and schedule stay
unchanged. The gradient is the signal for every parallel strategy: if a loss or a reward is not finite on some rank, its
gradient becomes NaN, and the sum over ranks carries that to all, so that all skip together without further communication.
DeepSpeed skips such a step by itself; elsewhere the gradients are dropped. Applied updates stay as they are, bit for bit.

`Clipping` is Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1, by torch: the entire gradient is scaled, its direction is
kept. It reports norms before and after, by layer, and how often it acted.

`GradientCosine` is the cosine between the gradients of consecutive updates. Near 0 they are mostly noise, below 0 steps undo
each other, near 1 a higher rate or a smaller batch would get as far in less time.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import torch
from torch import nn

from rlvr_exp.core.errors import GuardStop, check_state
from rlvr_exp.rollouts.distributed import any_rank

REWARD, LOSS, GRADIENT = CAUSES = ("reward", "loss", "gradient")
"""Possible causes; a skipped update counts for the first that applies."""
BORNE = 5


class NonFiniteGuard:
    """Counts the skipped updates of a trainer.

    Args:
        most: consecutive skipped updates that are tolerated; `check` stops the run at the next.
    """

    def __init__(self, most: int = BORNE):
        self._most = most
        self._in_a_row = self._skipped = self._first = 0
        self._description = ""
        self._row: Counter[str] = Counter()
        """Counts of the steps since the last row of metrics."""
        self._rewards: tuple[str, ...] = ()
        self._losses: list[torch.Tensor] = []
        """Losses of this update's passes; read only when it is skipped, to avoid synchronising the device."""

    def rewards(self, nonfinite: Sequence[str]) -> None:
        """Set the descriptions of the next batch's rewards that are not finite. Empty: all are finite."""
        self._rewards = tuple(nonfinite)

    def poisoned(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss of a pass; if it or a reward is not finite, its gradient is NaN."""
        self._losses.append(loss.detach())
        sound = torch.isfinite(loss.detach()) & (not self._rewards)
        # A factor, not a sum or a branch: it reaches every gradient, and a factor of 1 leaves each unchanged.
        return loss * torch.where(sound, 1.0, torch.nan).to(loss.dtype)

    def applies(self, step: int, norm: float) -> bool:
        """Whether an update is applied. All ranks call this with the same norm.

        Args:
            step: its number, counted from 1.
            norm: of its gradient, over all ranks.
        """
        finite = math.isfinite(norm)
        if finite:
            self._in_a_row = 0
        else:
            own = next((str(value) for one in self._losses if not math.isfinite(value := one.item())), "")
            elsewhere = any_rank(bool(own))  # Collective: all ranks call it, even those with a non-finite loss.
            self.skipped(step, own or ("no finite number on another process" if elsewhere else ""), norm)
        self._losses = []
        return finite

    def skipped(self, step: int, loss: str, norm: float) -> None:
        """An update was skipped.

        Args:
            step: its number, counted from 1.
            loss: the first loss that was not finite, as text; empty if all were finite, on every rank.
            norm: the gradient's norm.
        """
        cause = REWARD if self._rewards else LOSS if loss else GRADIENT
        descriptions = {REWARD: "; ".join(self._rewards[:3]), LOSS: f"the loss is {loss}"}
        self._description = descriptions.get(cause, f"the gradient's norm is {norm}")
        if not self._in_a_row:
            self._first = step
        self._in_a_row += 1
        self._skipped += 1
        self._row.update((cause, "skipped"))

    def check(self, steps: int, ended: bool = False) -> None:
        """Raises GuardStop after too many consecutive skipped updates, or at the end of a run that applied none.

        Args:
            steps: completed so far.
        """
        none = ended and 0 < steps == self._skipped
        if self._in_a_row <= self._most and not none:
            return
        count = f"none of {steps} updates was taken" if none else f"the last {self._in_a_row} updates were skipped"
        raise GuardStop(
            f"step {steps}: {count}, from step {self._first} on: {self._description}. Weights and optimizer are those of step "
            f"{self._first - 1}. Lower optimizer.lr, or look at what step {self._first} learned from (rollouts/) and "
            f"at the reward's terms; run.guards.max_skipped={self._most} skipped updates in a row are borne"
        )

    def metrics(self) -> dict[str, float]:
        """Skipped updates since the last call, in total and by cause."""
        row, self._row = self._row, Counter()
        return {f"guard/{name}": float(row[name]) for name in ("skipped", *CAUSES)}

    def state_dict(self) -> dict[str, Any]:
        counts = {"in_a_row": self._in_a_row, "skipped": self._skipped, "first": self._first}
        return {**counts, "told": self._description, "row": dict(self._row), "rewards": list(self._rewards)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises InputError for unknown or missing keys."""
        check_state(self, state, self.state_dict())
        self._in_a_row, self._skipped, self._first = state["in_a_row"], state["skipped"], state["first"]
        self._description, self._row, self._rewards = state["told"], Counter(state["row"]), tuple(state["rewards"])


class Clipping:
    """The norms of the steps since the last row of metrics."""

    def __init__(self) -> None:
        self._steps: list[tuple[float, float, bool]] = []
        self._layers: dict[str, list[float]] = {}
        """Norms before clipping, by `place_of`."""
        self.cosine: GradientCosine | None = None
        """Between updates; None: not measured."""

    def clip(
        self, model: nn.Module, clip: Callable[[nn.Module], torch.Tensor], limit: float, under_deepspeed: bool
    ) -> float:
        """Clip the gradient to the norm `limit`; returns its norm before, over all ranks.

        Args:
            clip: the trainer's own clipping, which returns the norm before. DeepSpeed clips inside its step, on gradients
                that are sharded over the processes.
        """
        layers = {} if under_deepspeed else layer_norms(model)
        before = float(clip(model))
        if math.isfinite(before):  # Otherwise the guard skips the update.
            after = min(before, limit) if under_deepspeed else float(grad_norm(model))
            self._steps.append((before, after, before > limit))
            for place, norm in layers.items():
                self._layers.setdefault(place, []).append(norm)
            if self.cosine is not None:
                self.cosine.update(model)
        return before

    def state_dict(self) -> dict[str, object]:
        layers = {place: list(norms) for place, norms in self._layers.items()}
        cosine = {} if self.cosine is None else {"cosine": self.cosine.state_dict()}
        return {"steps": list(self._steps), "layers": layers, **cosine}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._steps = [tuple(step) for step in state["steps"]]
        layers = state.get("layers", {})  # Older checkpoints of this format have the global norm alone.
        self._layers = {place: list(norms) for place, norms in layers.items()}
        if self.cosine is not None and "cosine" in state:
            self.cosine.load_state_dict(state["cosine"])

    def metrics(self) -> Mapping[str, float]:
        """Means over the steps since the last call, and the share of them that were clipped; nothing without steps."""
        if not self._steps:
            return {}
        before, after, clipped = zip(*self._steps, strict=True)
        layers = {f"grad_norm/{place}": fmean(norms) for place, norms in sorted(self._layers.items())}
        self._steps, self._layers = [], {}
        return {
            "grad_norm": fmean(before),
            "grad_norm/max": max(before),
            "grad_norm/after": fmean(after),
            "grad_norm/clipped": sum(clipped) / len(clipped),
            **layers,
            **({} if self.cosine is None else self.cosine.metrics()),
        }


def grad_norm(model: nn.Module) -> torch.Tensor:
    """The current L2 norm of all gradients."""
    return torch.nn.utils.get_total_norm([value.grad for value in model.parameters() if value.grad is not None])


def layer_norms(model: nn.Module) -> dict[str, float]:
    """The current L2 norm of the gradients of each place of the model; parameters that ZeRO shards have none here."""
    places: dict[str, list[torch.Tensor]] = {}
    for name, value in model.named_parameters():
        if value.grad is not None:
            places.setdefault(place_of(name), []).append(value.grad)
    if not places:
        return {}
    norms = torch.stack([torch.nn.utils.get_total_norm(each).float().cpu() for each in places.values()])
    return dict(zip(places, norms.tolist(), strict=True))


MODEL = ""


class GradientCosine:
    """Cosines of the steps since the last row of metrics, of the whole gradient and by `place_of`. The gradient of the last
    update is kept in host memory."""

    def __init__(self) -> None:
        self._last: dict[str, torch.Tensor] = {}
        self._cosines: dict[str, list[float]] = {}

    def update(self, model: nn.Module) -> None:
        """Take the current gradients; parameters without a gradient now or in the last update do not count."""
        own = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
        now = {name: gradient.detach().to("cpu", copy=True) for name, gradient in own.items()}
        products: dict[str, torch.Tensor] = {}
        for name in (one for one in now if one in self._last):  # In one order, in which sums are rounded alike.
            here, there = now[name].double().flatten(), self._last[name].double().flatten()
            found = torch.stack([here @ there, here @ here, there @ there])
            for place in (MODEL, place_of(name)):
                products[place] = products.get(place, 0) + found
        for place, (both, ours, theirs) in products.items():
            if ours and theirs:
                self._cosines.setdefault(place, []).append(float(both / (ours * theirs).sqrt()))
        self._last = now

    def metrics(self) -> dict[str, float]:
        """Means over the steps since the last call."""
        found = {f"grad_cosine/{place}".rstrip("/"): fmean(of) for place, of in sorted(self._cosines.items())}
        self._cosines = {}
        return found

    def state_dict(self) -> dict[str, Any]:
        return {"last": dict(self._last), "cosines": {place: list(of) for place, of in self._cosines.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._last = {name: value.cpu() for name, value in state["last"].items()}
        self._cosines = {place: list(of) for place, of in state["cosines"].items()}


_LAYER = re.compile(r"\.(?:layers|layer|h|blocks)\.(\d+)\.")
_OTHERS = (
    ("embeddings", re.compile(r"embed_(?!out)|\.(?:wte|wpe)\.")),
    ("head", re.compile(r"lm_head|embed_out|score\.")),
)


def place_of(name: str) -> str:
    """The place of a parameter, from its name: `layer_003`, `embeddings`, `head` or `other`."""
    if found := _LAYER.search(f".{name}"):
        return f"layer_{int(found[1]):03d}"
    return next((place for place, pattern in _OTHERS if pattern.search(f".{name}")), "other")
