"""`benchmark=training`: rollouts, verdicts, updates and full steps a second, paired with a plain `trl.GRPOTrainer`.

Both sides train the same model on the same tasks with the same verifier, reward, batch, seed, lengths and optimizer, in
turns of a few steps from the same weights; each is first in every other round. Stock runs with the number of threads
that makes its step faster. Before anything is timed both losses take the same rollouts: sides whose gradients differ
are not compared.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Any

import torch

from rlvr_exp.benchmarks.contest import Progress, Ratio, aligned, of_rounds
from rlvr_exp.benchmarks.machine_limit import matrix_flops
from rlvr_exp.benchmarks.sides import PHASES, Bench, Lap, Sides
from rlvr_exp.config import benchmark as options
from rlvr_exp.core.errors import GuardStop
from rlvr_exp.sandbox.pool import usable

FLOORS = {"rollouts": 3.0, "update": 4.0, "step": 3.0}
"""Ratios that the project promises for its embedded model on two cores."""


@dataclass(frozen=True)
class TableRow:
    """One line of the table."""

    name: str
    unit: str
    ours: float
    stock: float
    ratio: Ratio
    floor: float | None


@dataclass(frozen=True)
class PairedRounds:
    """The rounds, (ours, stock's) each."""

    rounds: tuple[tuple[Lap, Lap], ...]
    apart: float
    """Relative difference of the gradients on the same rollouts."""
    threads: int
    stock_threads: int
    limits: tuple[float, ...] = ()
    """Floating-point operations a second of a large matrix product on our threads, before each round."""

    def lines(self) -> list[TableRow]:
        """Speed of each phase and of full steps, by output: tokens drawn, completions verified or learned from."""
        return [
            self._row("rollouts", "tokens/s", lambda lap: lap.seconds["generate"] / lap.tokens),
            self._row("verdicts", "verdicts/s", lambda lap: lap.seconds["verify"] / lap.samples),
            self._row("update", "samples/s", lambda lap: lap.seconds["update"] / lap.samples),
            self._row("step", "samples/s", lambda lap: lap.total / lap.samples),
        ]

    def _row(self, name: str, unit: str, cost: Callable[[Lap], float]) -> TableRow:
        """`cost`: seconds of one unit. Speeds are harmonic means over rounds: units over seconds."""
        ours, stock = ([cost(pair[side]) for pair in self.rounds] for side in (0, 1))
        speeds = (len(ours) / sum(ours), len(stock) / sum(stock))
        return TableRow(name, unit, *speeds, of_rounds(ours, stock), FLOORS.get(name))

    def shares(self, side: int) -> dict[str, float]:
        """Share of each phase in the steps of a side: 0 ours, 1 stock's."""
        whole = sum(pair[side].total for pair in self.rounds)
        return {phase: sum(pair[side].seconds[phase] for pair in self.rounds) / whole for phase in PHASES}

    @property
    def binds(self) -> str:
        """The phase that takes most of our step."""
        shares = self.shares(0)
        return max(shares, key=shares.__getitem__)

    @property
    def arithmetic(self) -> tuple[float, float, float] | None:
        """(floating-point operations a second of our updates, those of a large product, the first as a share of the second);
        None if they were not counted."""
        seconds = sum(one.seconds["update"] for one, _ in self.rounds)
        flops = sum(one.flops for one, _ in self.rounds)
        if not flops or not self.limits:
            return None
        limit = sum(self.limits) / len(self.limits)
        return flops / seconds, limit, flops / seconds / limit

    def text(self) -> str:
        """Markdown that reads well as text."""
        heads = ("phase", "unit", "ours", "stock", "ratio [95%]", "floor", "holds")
        body = []
        for line in self.lines():
            held = "yes" if line.floor is None or line.ratio.value >= line.floor else "NO"
            floor = ("", "") if line.floor is None else (f"{line.floor:g}", held)
            body.append((line.name, line.unit, f"{line.ours:.4g}", f"{line.stock:.4g}", str(line.ratio), *floor))
        sides = []
        for side, name in enumerate(("ours", "stock")):
            seconds = sum(pair[side].total for pair in self.rounds) / sum(pair[side].steps for pair in self.rounds)
            sides.append((name, *(f"{self.shares(side)[phase]:.0%}" for phase in PHASES), f"{seconds:.3g}"))
        shares = [("side", *PHASES, "s/step"), *sides]
        return "\n".join([*aligned([heads, *body]), "", *aligned(shares), "", *self._notes()])

    def _notes(self) -> list[str]:
        sampled = [sum(pair[side].tokens for pair in self.rounds) for side in (0, 1)]
        completions = sum(pair[0].samples for pair in self.rounds)
        arithmetic = []
        if self.arithmetic is not None:
            own, limit, share = self.arithmetic
            arithmetic.append(
                f"Our update computes {own / 1e9:.3g} GFLOP/s, {share:.0%} of a large float32 matrix product on the same "
                f"threads ({limit / 1e9:.3g} GFLOP/s). Only operations that the loss needs are counted."
            )
        return [
            f"{self.binds} binds: {self.shares(0)[self.binds]:.0%} of our step.",
            f"Tokens drawn in {completions} completions of each side: {sampled[0]} ours, {sampled[1]} stock's.",
            f"Gradients on the same rollouts differ by {self.apart:.1e} of their norm.",
            f"Threads: {self.threads} ours, {self.stock_threads} stock's, at which its step is faster; {len(self.rounds)} rounds.",
            "Ours are judged while others are drawn: verdicts/s counts the waiting that is left at the end.",
            *arithmetic,
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "lines": [asdict(line) for line in self.lines()],
            "shares": {"ours": self.shares(0), "stock": self.shares(1)},
            "binds": self.binds,
            "gradient_difference": self.apart,
            "arithmetic": self.arithmetic and dict(zip(("flops", "limit", "share"), self.arithmetic, strict=True)),
            "threads": {"ours": self.threads, "stock": self.stock_threads},
            "rounds": [{"ours": asdict(ours), "stock": asdict(stock)} for ours, stock in self.rounds],
        }


ALIKE = 1e-4
"""Largest norm of the gradients' difference, over that of stock's, of two equal computations."""
ALIKE_IN_16_BITS = 0.03
"""The same for weights of 16 bits: each side rounds in its own order."""
LONG = 20.0
"""Seconds. If a step of stock takes longer, the one-time work of its first step is negligible."""


class Training(options.Training):
    def measure(self, bench: Bench, progress: Progress) -> PairedRounds:
        """Both sides, timed.

        Raises:
            GuardStop: their gradients differ on the same rollouts.
        """
        sides, own = Sides(bench), torch.get_num_threads()
        try:
            apart = difference(*sides.gradients(own))
            allowed = ALIKE if bench.policy.model.dtype.itemsize > 2 else ALIKE_IN_16_BITS
            if apart > allowed:
                raise GuardStop(
                    f"gradients of this trainer and of trl.GRPOTrainer differ by {apart:.2g} of their norm on the same rollouts, "
                    f"allowed {allowed:g}: what they compute is not the same, and their speed is not compared"
                )
            threads, warm = self._fastest(sides, own, progress)
            rounds, limits = [], []
            for number in range(self.rounds):
                torch.set_num_threads(own)
                limits.append(matrix_flops())
                rounds.append(self._round(sides, number, own, threads, warm, progress))
        finally:
            torch.set_num_threads(own)
        return PairedRounds(tuple(rounds), apart, own, threads, tuple(limits))

    def _fastest(self, sides: Sides, own: int, progress: Progress) -> tuple[int, int]:
        """Return the number of threads with which stock is faster, and the number of warm-up steps in a turn.

        If a step on all threads is long, one thread is not tried and turns have no warm-up steps.
        """
        progress("warm up", 0, 2)
        _, places = sides.ours(1, own)
        if sides.stock(places, 1, usable())[-1].total > LONG:
            return usable(), 0
        seconds = {}
        for threads in sorted({1, usable()}):
            progress("warm up", 1, 2)
            _, places = sides.ours(2, own)
            seconds[threads] = sides.stock(places, 2, threads)[-1].total
        return min(seconds, key=seconds.__getitem__), 1

    def _round(
        self, sides: Sides, number: int, own: int, threads: int, warm: int, progress: Progress
    ) -> tuple[Lap, Lap]:
        """(ours, stock's) of one round. The first `warm` steps of a turn are not counted."""
        steps, turns = warm + self.steps, 2 * self.rounds
        places = sides.next_tasks(steps)
        laps: dict[str, list[Lap]] = {}
        for turn, side in enumerate(("ours", "stock") if number % 2 == 0 else ("stock", "ours")):
            progress("turn", 2 * number + turn, turns)
            laps[side] = sides.ours(steps, own)[0] if side == "ours" else sides.stock(places, steps, threads)
        return reduce(add, laps["ours"][warm:]), reduce(add, laps["stock"][warm:])


def difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """||ours - theirs|| / ||theirs||; infinite if there is nothing to compare."""
    if ours.shape != theirs.shape or theirs.norm() == 0:
        return float("inf")
    return float((ours - theirs).norm() / theirs.norm())
