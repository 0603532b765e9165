"""Seconds of a trainer's steps by phase, and what was sampled in them. The same clock runs on both sides."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from transformers import TrainerCallback

PHASES = ("generate", "verify", "update", "other")


@dataclass(frozen=True)
class Lap:
    """One or more steps."""

    seconds: dict[str, float]
    """By phase; they add up to the steps' wall time."""
    samples: int
    tokens: int
    """Drawn, ends of completions included."""
    steps: int = 1
    flops: float = 0.0
    """Floating-point operations that the updates need; 0: not counted."""

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def __add__(self, other: "Lap") -> "Lap":
        seconds = {phase: self.seconds[phase] + other.seconds[phase] for phase in PHASES}
        counts = {name: getattr(self, name) + getattr(other, name) for name in ("samples", "tokens", "steps", "flops")}
        return Lap(seconds, **counts)


class Clock(TrainerCallback):
    """A lap for each step, from its begin to the end of its update; as a callback, of a trainer that runs its own loop.

    Collecting is timed by who collects (`collected`), and the parts of it that have a name (`phase`, `add`); all the rest
    of a step is its update.
    """

    def __init__(self) -> None:
        self.laps: list[Lap] = []
        self.begin()

    def begin(self) -> None:
        """Start the lap of a step."""
        self._began, self._collecting = time.perf_counter(), 0.0
        self._phases = {"generate": 0.0, "verify": 0.0}
        self._samples = self._tokens = 0
        self._flops = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.add(name, time.perf_counter() - began)

    def add(self, name: str, seconds: float) -> None:
        self._phases[name] += seconds

    def collected(self, seconds: float) -> None:
        """Add the time that a step spent on its batch of rollouts, phases included."""
        self._collecting += seconds

    def count(self, samples: int, tokens: int, flops: float = 0.0) -> None:
        self._samples += samples
        self._tokens += tokens
        self._flops += flops

    def end(self) -> None:
        """End the lap of a step."""
        whole = time.perf_counter() - self._began
        other = self._collecting - sum(self._phases.values())
        seconds = {**self._phases, "other": other, "update": whole - self._collecting}
        self.laps.append(Lap(seconds, self._samples, self._tokens, flops=self._flops))

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.begin()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.end()
