"""Names and scales of what verifiers and evaluations measure, and the smallest difference that held-out tasks can show.

Two rates are measured on the same `tasks`, with `samples` answers for each task, and compared by a paired t-test at the 5%
level. The smallest true difference that is found in 80 of 100 repetitions is

    (t(0.975) + t(0.8)) * sqrt(1 / (2 * samples * tasks)),   both quantiles with tasks - 1 degrees of freedom.

The only assumed error is that of the draws, in the noisiest case: every task is solved half of the time, and all tasks
change by the same amount. Tasks that are always or never solved make the error smaller; changes that differ between tasks
make it larger.
"""

import math
import re
from dataclasses import dataclass

from rlvr_exp.core.statistics import CONFIDENCE, POWER, t_quantile

COUNTS = frozenset({"rules", "dropped_annotations", "environment_reward", "pruning_runs", "pruning_seconds"})
"""Measures that are counts or have other ends; the others are shares."""
GREEDY = "_greedy"
"""Ends the name of a measure of greedy answers."""


def is_count(name: str) -> bool:
    return name.removesuffix(GREEDY) in COUNTS


SUCCESS = ("pass_at_1", "pass_at_1_greedy", "pass_at_8")
"""Rates that every evaluation reports where it drew enough samples; `_greedy` is the argmax completion."""
BITS = "bits_per_character"
"""Of `evaluation.bits`: the cost of a gold completion and its end under the policy."""
HELD_OUT_LOSS, HELD_OUT_BITS = "held_out/loss", "held_out/bits_per_character"
"""Metrics of imitation on the golds of `dev`: nats per token, and bits per character, which compare policies with
different tokenizers."""


class Share(float):
    """A rate. Pages show it in percent, files as a number."""


class Gain(float):
    """A difference of rates. Pages show it in points, files as a number."""


@dataclass(frozen=True)
class Scale:
    """Of a metric whose values are 0 at least."""

    high: float = 1.0
    """The most that a value can be; infinite: there is no such end."""
    less_is_better: bool = False

    @property
    def bounded(self) -> bool:
        """Whether it is a rate. Rates are shown in percent and cannot exceed their ends."""
        return math.isfinite(self.high)

    @property
    def unit(self) -> str:
        """Of a difference."""
        return "points" if self.bounded else "bits a character"

    def number(self, value: float, sign: str = "") -> str:
        """A value or a difference without its unit; `sign`: "+" shows that of a positive one too."""
        return f"{100 * value:{sign}.1f}" if self.bounded else f"{value:{sign}.3f}"

    def share(self, value: float) -> float:
        """A value that pages show with its unit."""
        return Share(value) if self.bounded else value

    def gain(self, value: float) -> float:
        """A difference that pages show with its unit."""
        return Gain(value) if self.bounded else value

    def shown(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.number(value)}%" if self.bounded else self.number(value)


RATE = Scale()


def scale_of(metric: str) -> Scale:
    if metric == BITS:
        return Scale(math.inf, less_is_better=True)
    return Scale(less_is_better=True) if metric in EXCESS_CODE else RATE


def counted(count: int, what: str = "task") -> str:
    """A number of things in words: 1 task, 2 tasks."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


EXCESS_CODE = ("excess_code", "excess_code_strict")
"""As CanItEdit counts it, over all lines of the diff; and of the statements on added lines."""


_NAME = re.compile(r"voted_at_([1-9]\d*)(?:_top_([2-9]|[1-9]\d+))?")


def voted_metrics(samples: int, answers: int) -> tuple[str, ...]:
    """The rates of a vote of so many samples: of its first answer, and of up to `answers`; none if that is 0."""
    first = f"voted_at_{samples}"
    return (first, f"{first}_top_{answers}")[: min(answers, 2)]


def read_voted(metric: str) -> tuple[int, int] | None:
    """Samples and answers of such a name; None: it is another metric's."""
    match = _NAME.fullmatch(metric)
    return (int(match[1]), int(match[2] or 1)) if match else None


FEW = 30
"""Below so many tasks a run warns: an interval over them covers most of the scale."""


def smallest_planned(tasks: int, samples: int) -> float | None:
    """The smallest difference that is found; None for a single task, since it has no spread."""
    if tasks < 2:
        return None
    needed = t_quantile((1 + CONFIDENCE) / 2, tasks - 1) + t_quantile(POWER, tasks - 1)
    return needed * math.sqrt(1 / (2 * samples * tasks))


def detectable(tasks: int, samples: int, greedy: bool) -> str:
    """The smallest differences of sampled and of greedy answers, in words."""
    if tasks < 2:
        return "no difference: a single task has no spread to compare a difference with"
    kinds = {counted(samples, "sample"): samples, **({"the greedy answer": 1} if greedy else {})}
    found = {kind: smallest_planned(tasks, count) or 1.0 for kind, count in kinds.items()}
    parts = [f"{100 * value:.1f} points by {kind}" if value < 1 else f"none by {kind}" for kind, value in found.items()]
    return f"{', '.join(parts)} of each of {counted(tasks)} (smallest paired difference, 80% power at the 5% level)"
