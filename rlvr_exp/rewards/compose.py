"""Rewards: a weighted sum of named terms, then a normaliser.

If a reward is `ordered`, no wrong answer earns as much as a right answer. The ranges of the terms are checked at construction,
before anything is trained. A missing verdict earns no reward, not even zero: it is None here and stays out of every baseline.

Normalisers scale rewards across tasks, after the terms are summed. They are affine with a positive slope: order never
changes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import pstdev

from rlvr_exp.config import verifier as options
from rlvr_exp.core.errors import InputError, InputProblem, check_state
from rlvr_exp.episodes.types import Completion, RewardBreakdown
from rlvr_exp.rewards.base import Term, ValueRange

_FLOOR = 1e-4


class Normalizer(ABC):
    """Maps the totals of a batch; stateful ones are part of every checkpoint."""

    @abstractmethod
    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        """The scaled totals, in order; adds the batch to the statistics first. `tasks`: the id of each total's task."""

    @abstractmethod
    def state_dict(self) -> dict[str, float]: ...

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Raises InputError for unknown or missing keys."""

    @abstractmethod
    def metrics(self) -> dict[str, float]: ...


class Identity(Normalizer, options.Identity):
    """Totals as they are."""

    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        return list(totals)

    def state_dict(self) -> dict[str, float]:
        return {}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        check_state(self, state, self.state_dict())

    def metrics(self) -> dict[str, float]:
        return {}


class PerTask(Identity, options.PerTask):
    """(total - mean) / std with the mean and standard deviation of the totals of the same task in this batch, so that a
    task paid 0 or 10 weighs as much as one paid 0 or 1. No state; a task's level is lost, only its order stays."""

    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        """Raises ValueError unless each total has a task."""
        of: dict[str, list[float]] = {}
        for total, task in zip(totals, tasks, strict=True):
            of.setdefault(task, []).append(total)
        means = {task: math.fsum(own) / len(own) for task, own in of.items()}
        scales = {task: _divisor(pstdev(own)) for task, own in of.items()}
        return [(total - means[task]) / scales[task] for total, task in zip(totals, tasks, strict=True)]


@dataclass
class RunningScale(Normalizer, options.RunningScale):
    """(total - mean) / std with the mean and standard deviation of every total so far, including this batch.

    Welford's sums in Chan's batch form: accurate at any count, and equal batches give equal states. Where there is no
    spread the divisor is 1; `_FLOOR` keeps near-equal rewards from being amplified.
    """

    def __post_init__(self) -> None:
        self._count, self._mean, self._squares = 0.0, 0.0, 0.0

    def __call__(self, totals: Sequence[float], tasks: Sequence[str] = ()) -> list[float]:
        self._take(totals)
        scale = self._scale()
        return [(total - self._mean) / scale for total in totals]

    def state_dict(self) -> dict[str, float]:
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        check_state(self, state, self.state_dict())
        self._count, self._mean, self._squares = state["count"], state["mean"], state["squares"]

    def metrics(self) -> dict[str, float]:
        return {"count": self._count, "mean": self._mean, "scale": self._scale()}

    def _scale(self) -> float:
        return _divisor(math.sqrt(self._squares / self._count) if self._count else 0.0)

    def _take(self, totals: Sequence[float]) -> None:
        if not totals:
            return
        count = len(totals)
        mean = math.fsum(totals) / count
        squares = math.fsum((total - mean) ** 2 for total in totals)
        joint, shift = self._count + count, mean - self._mean
        self._squares += squares + shift * shift * self._count * count / joint
        self._mean += shift * count / joint
        self._count = joint


def _divisor(spread: float) -> float:
    return max(spread, _FLOOR) if spread > 0 else 1.0


@dataclass
class Reward(options.Reward):
    """Rewards verified completions.

    Raises:
        InputError: a term does not declare its weight and ranges, no term is on, a weight is not a number, or some wrong
            answer could earn as much as a right answer.
    """

    def __post_init__(self) -> None:
        remedy = "derive the class from rlvr_exp.rewards.base.Term, and declare both ranges by ValueRange(low, high)"
        problems = [
            InputProblem(f"reward.terms.{name}", f"declares no {word}", type(term).__name__, kind.__name__, "", remedy)
            for name, term in self.terms.items()
            for word, kind in (("weight", float), ("when_correct", ValueRange), ("when_wrong", ValueRange))
            if not isinstance(getattr(term, word, None), kind if kind is ValueRange else int | float)
        ]
        problems = problems or [
            InputProblem(
                f"reward.terms.{name}.weight", "is not a finite number", str(term.weight), "", "", "give a number"
            )
            for name, term in self.terms.items()
            if not math.isfinite(term.weight)
        ]
        if not problems and not any(term.weight for term in self.terms.values()):
            problems = [
                InputProblem("reward.terms", "no term has a weight", remedy="give at least one a weight above 0")
            ]
        if problems:
            raise InputError(*problems)
        self.terms = {name: term for name, term in self.terms.items() if term.weight != 0}
        self.normalizer = self.normalizer or Identity()
        self._nonfinite: list[str] = []
        if self.ordered:
            _check_order(self.terms)

    def __call__(self, completions: Sequence[Completion]) -> list[RewardBreakdown]:
        """A breakdown for each verified completion, in order. Adds the batch to the normaliser's statistics."""
        shares = [self._shares(one) for one in completions]
        sums = [math.fsum(terms.values()) if terms else None for terms in shares]
        scored = [(value, one.task.id) for value, one in zip(sums, completions, strict=True) if value is not None]
        totals = iter(self.normalizer([value for value, _ in scored], [task for _, task in scored]))
        paid = zip(shares, sums, strict=True)
        return [RewardBreakdown(None if value is None else next(totals), value, terms) for terms, value in paid]

    def _shares(self, completion: Completion) -> dict[str, float]:
        if completion.verdict.outcome == "no_verdict":
            return {}
        terms = {name: term.weight * term(completion) for name, term in self.terms.items()}
        nonfinite = [f"{name}={value}" for name, value in terms.items() if not math.isfinite(value)]
        if nonfinite:  # It would spoil every baseline, and the normaliser permanently.
            self._nonfinite.append(f"reward of a completion of {completion.task.id}: {', '.join(nonfinite)}")
            return {}
        return terms

    def pop_nonfinite(self) -> list[str]:
        """Descriptions of the completions since the last call for which a term was not finite."""
        found, self._nonfinite = self._nonfinite, []
        return found

    def state_dict(self) -> dict[str, float]:
        return self.normalizer.state_dict()

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Raises InputError for unknown or missing keys."""
        self.normalizer.load_state_dict(state)

    def metrics(self) -> dict[str, float]:
        return self.normalizer.metrics()


def _check_order(terms: Mapping[str, Term]) -> None:
    right = _sum([_weighted(term.when_correct, term.weight) for term in terms.values()])
    wrong = _sum([_weighted(term.when_wrong, term.weight) for term in terms.values()])
    weights = ", ".join(f"{name}={term.weight:g}" for name, term in terms.items())
    if wrong.high > right.low or (wrong.high == right.low and not wrong.open_top):
        raise InputError(
            InputProblem(
                "reward.terms",
                f"a wrong answer can earn {wrong.high:g}, a correct one as little as {right.low:g}",
                got=weights,
                allowed="every wrong answer earns less than every correct one",
                remedy="raise the weight of all_passed, or lower the others",
            )
        )
    if right.high - right.low > right.low - wrong.low:
        raise InputError(
            InputProblem(
                "reward.terms",
                f"correct answers differ by up to {right.high - right.low:g}, more than being correct gains",
                got=weights,
                allowed=f"at most {right.low - wrong.low:g}",
                remedy="lower the weight of length",
            )
        )


def _weighted(span: ValueRange, weight: float) -> ValueRange:
    if weight < 0:  # The top then comes from the low end, which is always reached.
        return ValueRange(weight * span.high, weight * span.low)
    return ValueRange(weight * span.low, weight * span.high, span.open_top)


def _sum(spans: Sequence[ValueRange]) -> ValueRange:
    """A sum misses its top when any part misses its own."""
    low, high = math.fsum(span.low for span in spans), math.fsum(span.high for span in spans)
    return ValueRange(low, high, any(span.open_top for span in spans))
