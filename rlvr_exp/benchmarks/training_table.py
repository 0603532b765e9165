"""The results of `benchmark=training`: the table of ratios, the shares of the phases, and the notes. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlvr_exp.benchmarks.clock import PHASES, Lap
from rlvr_exp.benchmarks.ratios import Ratio, of_rounds

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
class Pairs:
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
        body = [
            (line.name, line.unit, f"{line.ours:.4g}", f"{line.stock:.4g}", str(line.ratio), *_held(line))
            for line in self.lines()
        ]
        shares = [("side", *PHASES, "s/step"), *(self._shared(side) for side in (0, 1))]
        return "\n".join([*_table([heads, *body]), "", *_table(shares), "", *self.notes()])

    def _shared(self, side: int) -> tuple[str, ...]:
        steps = sum(pair[side].steps for pair in self.rounds)
        seconds = sum(pair[side].total for pair in self.rounds) / steps
        shares = self.shares(side)
        return (("ours", "stock")[side], *(f"{shares[phase]:.0%}" for phase in PHASES), f"{seconds:.3g}")

    def notes(self) -> list[str]:
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


def _held(line: TableRow) -> tuple[str, str]:
    if line.floor is None:
        return "", ""
    return f"{line.floor:g}", "yes" if line.ratio.value >= line.floor else "NO"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
