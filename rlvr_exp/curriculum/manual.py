"""Difficulty bands and the steps at which they open, both by hand. `override` holds a band whatever the step."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from rlvr_exp.config import curriculum as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.curriculum.bands import Banded, in_bands, quantile_cuts
from rlvr_exp.tasks.base import Task


class Manual(Banded, options.Manual):
    """Bands are cut at `cuts`, or into one quantile more than there are `steps`."""

    def __init__(self, tasks: Sequence[Task], seed: int, **given: Any):
        super().__init__(**given)
        cuts = self.cuts or (quantile_cuts(tasks, len(self.steps) + 1) if tasks else [])
        bands = in_bands(tasks, cuts)
        empty = [number for number, band in enumerate(bands) if not band]
        if tasks and empty:
            low, high = (pick(task.difficulty for task in tasks) for pick in (min, max))
            what, remedy = f"band {empty[0]} has no task", "other curriculum.cuts, or fewer bands"
            allowed = f"cuts between the tasks' difficulties, {low:g} to {high:g}"
            raise InputError(InputProblem("curriculum.cuts", what, str(cuts), allowed, remedy=remedy))
        self._set_up(tasks, bands, seed)
        self._step = 0

    def begin(self, step: int) -> None:
        self._step = step

    @property
    def band(self) -> int:
        return bisect_right(self.steps, self._step) if self.override < 0 else self.override
