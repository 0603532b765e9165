"""Rates of answers that were chosen among samples: of the chosen one, of a sample at random, and of the best there was."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.metrics import Rate
from rlvr_exp.evaluation.paired import difference, in_words
from rlvr_exp.inference.summary import Summary


class Choices(Summary):
    """A `Summary` of rows with `samples`, whose verdicts are those of the hidden tests. A task with a sample or an answer that has no
    verdict is in no rate.

    Args:
        by_tests: what chooses are not the hidden tests themselves, so that the choice can be wrong.
    """

    def __init__(self, by_tests: bool) -> None:
        super().__init__()
        self._by_tests = by_tests
        self._chosen: dict[str, float] = {}
        """Whether a task's answer is right, by id."""
        self._chance: dict[str, float] = {}
        """The share of its samples that are."""
        self._samples, self._drawn = 1, dict[str, int]()

    def add(self, row: Mapping[str, Any]) -> None:
        super().add(row)
        outcomes = [one["outcome"] for one in row["samples"]]
        for role, tokens in row["drawn"].items():
            self._drawn[role] = self._drawn.get(role, 0) + tokens
        if outcomes and not {None, "no_verdict"} & {*outcomes, row["outcome"]}:
            self._samples = len(outcomes)
            self._chosen[str(row["id"])] = float(row["outcome"] == "passed")
            self._chance[str(row["id"])] = fmean(one == "passed" for one in outcomes)

    def rates(self, attempts: int, samples: int, voted: Sequence[str] = ()) -> dict[str, Rate]:
        """`chosen_at_N`: of the answers that tests chose among N samples; `pass_at_1`: of a sample at random, which is chance;
        `pass_at_N`: of tasks with a right sample, which is the most that a choice can reach. One sample: the answer's alone."""
        if not self._chosen:
            return {}
        of = {"pass_at_1": self._chance}
        if samples > 1:
            chosen = {f"chosen_at_{samples}": self._chosen} if self._by_tests else {}
            reached = {task: float(share > 0) for task, share in self._chance.items()}
            of = {**chosen, **of, f"pass_at_{samples}": reached}
        return {name: _rate([*values.values()], samples) for name, values in of.items()}

    def metrics(self) -> dict[str, Any]:
        drawn = {f"tokens/{role}": tokens for role, tokens in sorted(self._drawn.items())}
        return super().metrics() | drawn | self._over_chance()

    def text(self) -> str:
        """With what the choice is worth."""
        told = [f"; chosen against a sample at random: {in_words(one)}" for one in self._over_chance().values()]
        return super().text() + "".join(told)

    def _over_chance(self) -> dict[str, dict[str, float]]:
        """Chosen minus a sample at random, paired by task; nothing where nothing was chosen."""
        if self._samples == 1 or not self._by_tests:
            return {}
        return {f"difference/chosen_at_{self._samples}": difference(self._chance, self._chosen).to_dict()}


def _rate(values: Sequence[float], samples: int) -> Rate:
    return Rate(*mean_interval(values), n=len(values), samples=samples)
