"""The evidence of a diagnosis and its statistics: windows of a run, shares with intervals, and what the held-out tasks can show."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist, fmean, median
from typing import Any

from rlvr_exp.config.schema import imitates, trains
from rlvr_exp.core.measures import scale_of
from rlvr_exp.core.statistics import CONFIDENCE, NORMAL, POWER, difference_error, t_quantile, wilson
from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import Row
from rlvr_exp.report.data import WHENS, RunData, StepCounts, as_rollouts, count_step

OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "stop": []}
"""Neutral values of the sampling options."""
SINGLE = ("SingleTurn", "Retry", "")
"""Environments whose prompts of a task are all of one kind."""
FEW_TASKS, BLURRED = 4, 0.25
"""With fewer held-out tasks, or without the power to show a change of this size, nothing can be said about learning."""


@dataclass(frozen=True)
class Share:
    """A count of trials with Wilson's 95% interval (1927). It is valid for 0 and for all trials too."""

    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of if self.of else 0.0

    @property
    def low(self) -> float:
        return wilson(self.count, self.of).low if self.of else 0.0

    @property
    def high(self) -> float:
        return wilson(self.count, self.of).high if self.of else 1.0

    def __str__(self) -> str:
        return f"{self.count:,} of {self.of:,} ({self.value:.0%})"


PASS_RATES = ("pass_at_1", "pass_at_1_greedy")
"""The first of these that was measured decides whether success rose."""


@dataclass(frozen=True)
class Power:
    """The change of success that held-out tasks can show, from the standard error of the paired differences."""

    tasks: int
    samples: float
    width: float
    """Of the 95% interval of the change."""

    @property
    def detectable(self) -> float:
        """The smallest true change that is significant in 80% of repeated runs; infinite for a single task."""
        if self.tasks < 2:
            return math.inf
        quantile, power = (t_quantile(level, self.tasks - 1) for level in ((1 + CONFIDENCE) / 2, POWER))
        return self.width / 2 / quantile * (quantile + power)

    def tasks_for(self, change: float) -> int:
        """Tasks that can show a change of this size, at most those of the noisiest case (rlvr_exp.core.measures)."""
        noisiest = (NORMAL + NormalDist().inv_cdf(POWER)) / math.sqrt(2 * self.samples)
        return math.ceil((min(noisiest, self.detectable * math.sqrt(self.tasks)) / change) ** 2)

    @property
    def blind(self) -> bool:
        return self.tasks < FEW_TASKS or self.detectable > BLURRED


@dataclass(frozen=True)
class Evidence:
    """A run, as far as it has been written. Everything may be empty."""

    metrics: Sequence[Row] = ()
    step_counts: Sequence[StepCounts] = ()
    """Counts of the training steps, in order; all of them, or equally spaced ones of very many."""
    rollouts: Sequence[RolloutRow] = ()
    """Completions of some of these steps, complete groups, including the first and the last step."""
    before: StepCounts | None = None
    """The held-out tasks, evaluated before training, likewise `after`."""
    after: StepCounts | None = None
    measured: Sequence[RolloutRow] = ()
    """The completions of both evaluations."""
    changed: Share = Share(0, 0)
    """Answers whose text differs before and after, of those generated both times."""
    change: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Paired differences of held-out rates from before to after by metric, if more is better."""
    golds: Mapping[str, str] = field(default_factory=dict)
    """The known reference answers, by task."""
    config: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def series(self) -> Sequence[StepCounts]:
        """The completions over time: those of training, else those of the evaluations."""
        return self.step_counts or [one for one in (self.before, self.after) if one is not None]

    @property
    def samples(self) -> Sequence[RolloutRow]:
        return self.rollouts or self.measured

    @property
    def trains(self) -> bool:
        return trains(str(self.config.get("stage")))

    @property
    def imitates(self) -> bool:
        """Answers are learned, and no rewards."""
        return imitates(str(self.config.get("stage")))

    @property
    def steps(self) -> int:
        """Steps done, as far as known."""
        last = [int(self.metrics[-1]["step"] or 0)] if self.metrics else []
        return max([int(self.summary.get("steps") or 0), *last, *(one.step for one in self.step_counts[-1:])])

    @property
    def reason(self) -> str:
        """Why the run ended, in its own words."""
        return str(self.summary.get("reason") or "")

    def option(self, path: str, default: Any = None) -> Any:
        """An option of the run by its dotted path."""
        node: Any = self.config
        for part in path.split("."):
            if not isinstance(node, Mapping) or part not in node:
                return default
            node = node[part]
        return node

    def number(self, path: str, default: float = 0.0) -> float:
        """An option that is a number, or `default` if it is empty."""
        return float(self.option(path, default) or default)

    def class_of(self, node: str) -> str:
        """The name of a node's class."""
        return str(self.option(f"{node}._target_", "")).rsplit(".", 1)[-1]

    def of_model(self, name: str) -> Any:
        """A count of the model in the manifest."""
        return (self.manifest.get("model") or {}).get(name)

    @property
    def by_adam(self) -> bool:
        """Whether the optimizer divides gradients by their size, so that its rate is the size of a step."""
        return self.class_of("optimizer") in ("Adam", "AdamW", "AdamW8bit", "Muon")

    @property
    def adapts(self) -> bool:
        """Whether an adapter is trained."""
        return any("lora" in part for part in self.of_model("trained_by_part") or ())

    @property
    def comparable(self) -> bool:
        """Whether the tasks and prompts of all training steps are drawn alike, so that their success can be compared."""
        return (
            self.class_of("curriculum") in ("Uniform", "")
            and self.class_of("environment") in SINGLE
            and not self.config.get("reasoning")
        )

    @cached_property
    def success(self) -> "Trend | None":
        """Verified success over the run, in training if the run trains. None if its tasks change."""
        if self.step_counts and not self.comparable:
            return None
        return trend(self.series, lambda one: one.group_success)

    @cached_property
    def power(self) -> "Power | None":
        """The power of the held-out comparison. None if success was not measured twice."""
        name = next((name for name in PASS_RATES if name in self.change), "")
        found = self.change.get(name)
        if not found or "n" not in found:
            return None
        samples = self.number("evaluation.samples", 1) if name == "pass_at_1" else 1
        return Power(int(found["n"]), samples, found["high"] - found["low"])

    @property
    def blind(self) -> bool:
        """Whether the held-out tasks are too few to say anything about learning."""
        return self.power is not None and self.power.blind

    @cached_property
    def outcome(self) -> tuple[str, str]:
        """(rose, fell, level or unknown, the change in words) of verified success, held out if it was measured, else in training."""
        for metric in PASS_RATES:
            if metric in self.change:
                change = self.change[metric]
                moved = "rose" if change["low"] > 0 else "fell" if change["high"] < 0 else "level"
                moved = "unknown" if self.blind else moved
                return moved, f"Held-out success changed by {in_points(change)}"
        moved_in = self.success if self.step_counts else None
        if moved_in is None:
            return "unknown", "Success was not measured twice"
        words = f"Success in training went from {moved_in.first:.1%} to {moved_in.last:.1%}"
        return ("rose" if moved_in.rose else "fell" if moved_in.fell else "level"), words

    @property
    def rose(self) -> bool:
        return self.outcome[0] == "rose"

    @property
    def losses(self) -> list[str]:
        """In words: held-out rates whose interval is below 0, and success in training that fell by the end or halfway."""
        fell = [f"{name} changed by {in_points(change)}" for name, change in self.change.items() if change["high"] < 0]
        for steps, when in ((self.series, ""), (self.series[: 2 * len(self.series) // 3], " halfway")):
            # Each step has other tasks, so a few groups say nothing.
            moved = trend(steps, lambda one: one.group_success, LEAST["groups"])
            if moved is not None and moved.fell and not self.rose:
                fell.append(f"success went from {moved.first:.1%} to {moved.last:.1%}{when}")
        return fell

    @property
    def entropies(self) -> str:
        """First and last entropy in words; empty without entropies."""
        first, last = self.ends("entropy")
        return "" if math.isnan(last) else f"Entropy of a token: {first:.3g} nats at first, {last:.3g} at last."

    def ends(self, name: str) -> tuple[float, float]:
        """The first value of a metric and the median of its last third; NaN without values."""
        points = self.column(name)
        return middle(points[:1]), middle(late(points))

    def failed(self, since: int = 0) -> list[RolloutRow]:
        """Completions that failed, the last ones first."""
        rows = reversed((*self.rollouts, *self.measured))
        return [row for row in rows if row.step >= since and row.verdict.outcome == "failed"]

    @property
    def drawn_otherwise(self) -> list[str]:
        """Sampling options that differ between training and evaluation."""
        return [
            name for name, off in OFF.items()
            if self.option(f"algorithm.{name}", off) != self.option(f"evaluation.{name}", off)
        ]  # fmt: skip

    def column(self, name: str) -> list[tuple[int, float]]:
        """(step, value) of a metric if it is a number. The estimate stands in for an entropy that was not computed."""
        if name == "entropy" and not any(row.get(name) is not None for row in self.metrics):
            name = "entropy/estimate"
        return [(int(row["step"] or 0), value) for row in self.metrics if (value := row.get(name)) is not None]


def evidence(run: RunData, golds: Mapping[str, str]) -> Evidence:
    """The evidence for the diagnosis. `golds`: the known reference answers by task."""
    last = int(run.metrics[-1]["step"] or 0) if run.metrics else 0
    rows = {when: as_rollouts(0 if when == "before" else last, answers) for when, answers in run.answers.items()}
    taught = imitates(str(run.config.get("stage")))  # No reward compares the rollouts of a group.
    measured = {when: count_step(found[0].step, found) for when, found in rows.items() if found}
    changes: Mapping[str, Mapping[str, float]] = run.numbers.get("after", {}).get("change", {})
    return Evidence(
        metrics=[_of_last_role(row) for row in run.metrics],
        step_counts=() if taught else run.step_counts,
        rollouts=() if taught else run.rollouts,
        before=measured.get("before"),
        after=measured.get("after"),
        measured=[row for found in rows.values() for row in found],
        changed=_changed(run),
        change={name: one for name, one in changes.items() if not scale_of(name).less_is_better},
        golds=golds,
        config=run.config,
        summary=run.summary,
        manifest=run.manifest,
    )


def _of_last_role(row: Row) -> Row:
    """With the metrics of the last role, as the annotator of a cascade, whose completions are counted, under their bare
    names; unchanged if roles have no metrics of their own."""
    role = next((name.removesuffix("learning_rate") for name in reversed(row) if name.endswith("/learning_rate")), None)
    return row if role is None else {name.removeprefix(role): value for name, value in row.items()}


def _changed(run: RunData) -> Share:
    """Answers whose text differs after training, of those generated both times."""
    texts = [
        {
            (one.completion.task.id, one.mode, one.completion.sample): one.completion.text
            for one in run.answers.get(when, ())
        }
        for when in WHENS
    ]
    both = texts[0].keys() & texts[1].keys()
    return Share(sum(texts[0][key] != texts[1][key] for key in both), len(both))


def in_points(change: Mapping[str, float]) -> str:
    """A difference of rates with its interval."""
    value, low, high = (100 * change[key] for key in ("value", "low", "high"))
    return f"{value:+.1f} points (95% CI {low:+.1f} to {high:+.1f})"


def early(values: Sequence[Any]) -> Sequence[Any]:
    """The first tenth, at least one."""
    return values[: max(1, len(values) // 10)]


def late(values: Sequence[Any]) -> Sequence[Any]:
    """The last third, at least one."""
    return values[-max(1, len(values) // 3) :]


LEAST = {"samples": 64, "groups": 24}
"""The least size of the last part of a short run for a meaningful share."""


def recent(step_counts: Sequence[StepCounts], of: str = "samples") -> Sequence[StepCounts]:
    """The last third, or as many more of the last steps as it takes to have enough."""
    part = late(step_counts)
    while len(part) < len(step_counts) and sum(getattr(one, of) for one in part) < LEAST[of]:
        part = step_counts[-len(part) - 1 :]
    return part


def share(step_counts: Sequence[StepCounts], count: Callable[[StepCounts], int], of: str = "samples") -> Share:
    """Pooled over steps."""
    return Share(sum(map(count, step_counts)), sum(getattr(one, of) for one in step_counts))


def beginning(step_counts: Sequence[StepCounts], of: str = "samples") -> Sequence[StepCounts]:
    """The first step, whose samples precede every update, or as many steps as hold two dozen samples, or groups."""
    part = step_counts[:1]
    while len(part) < len(step_counts) and sum(getattr(one, of) for one in part) < LEAST["groups"]:
        part = step_counts[: len(part) + 1]
    return part


def onset(
    step_counts: Sequence[StepCounts], count: Callable[[StepCounts], int], least: float, of: str = "samples"
) -> int:
    """The first step with a share of at least `least`; 0: from the start."""
    if share(beginning(step_counts), count, of).value >= least:
        return 0
    reached = (one.step for one in step_counts if getattr(one, of) and count(one) / getattr(one, of) >= least)
    return next(reached, step_counts[-1].step if step_counts else 0)


def halfway(step_counts: Sequence[StepCounts], read: Callable[[StepCounts], Sequence[float]]) -> int:
    """The first step whose mean over groups has made half of the whole move; 0 without any."""
    means = [(one.step, fmean(values)) for one in step_counts if (values := read(one))]
    if not means:
        return 0
    (_, first), (last, end) = means[0], means[-1]
    return next((step for step, mean in means if abs(mean - first) * 2 >= abs(end - first)), last)


@dataclass(frozen=True)
class Trend:
    """How a mean over groups moved from the start of a run to its end."""

    first: float
    last: float
    error: float
    """Standard error of the difference."""

    @property
    def rise(self) -> float:
        return self.last - self.first

    @property
    def low(self) -> float:
        """The low end of the rise's normal 95% interval."""
        return self.rise - NORMAL * self.error

    @property
    def rose(self) -> bool:
        return self.rise > 3 * self.error

    @property
    def fell(self) -> bool:
        return -self.rise > 3 * self.error


def trend(
    step_counts: Sequence[StepCounts], read: Callable[[StepCounts], Sequence[float]], least: int = 2
) -> Trend | None:
    """The trend over groups of the early and the late steps; None if one of them has fewer than `least`."""
    if len(step_counts) < 2:
        return None
    first, last = ([value for one in part for value in read(one)] for part in (early(step_counts), late(step_counts)))
    if min(len(first), len(last)) < least:
        return None
    return Trend(fmean(first), fmean(last), difference_error(first, last))


def middle(points: Sequence[tuple[int, float]]) -> float:
    """The median value; not a number for an empty sequence."""
    return median(value for _, value in points) if points else math.nan


def some(rows: Iterator[RolloutRow] | Sequence[RolloutRow], count: int = 3) -> tuple[RolloutRow, ...]:
    """A few rows, of different tasks and texts if possible."""
    rows = list(rows)
    chosen: list[RolloutRow] = []
    for key in (lambda row: row.completion.task.id, lambda row: row.completion.text, lambda row: id(row)):
        for row in rows:
            if len(chosen) < count and key(row) not in {key(one) for one in chosen} and row not in chosen:
                chosen.append(row)
    return tuple(chosen)
