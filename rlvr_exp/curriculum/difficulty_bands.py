"""Curricula of difficulty bands: tasks are cut into bands, and bands open by success (`Staged`) or by step (`Manual`).

Each pick has a share of easier tasks, and success is measured by band.
"""

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import data as options
from rlvr_exp.core.errors import InputError, InputProblem, check_state
from rlvr_exp.curriculum.base import Curriculum, Dealer, Observation, part_of
from rlvr_exp.tasks.base import Task


def quantile_cuts(tasks: Sequence[Task], bands: int) -> list[float]:
    """Difficulties that cut the tasks into bands of equal size, as far as equal difficulties, which stay together, allow."""
    ordered = sorted(task.difficulty for task in tasks)
    return [ordered[-(-len(ordered) * band // bands) - 1] for band in range(1, bands)]


def in_bands(tasks: Sequence[Task], cuts: Sequence[float]) -> list[list[Task]]:
    """The tasks by band, from the easiest; a task as difficult as a cut is below it. A band may be empty."""
    found: list[list[Task]] = [[] for _ in range(len(cuts) + 1)]
    for task in tasks:
        found[bisect_left(cuts, task.difficulty)].append(task)
    return found


class Banded(Curriculum, options.Bands):
    """Picks come from the current band, but for a share of earlier ones.

    Args:
        tasks: of the run.
        bands: the tasks by band, from the easiest.
    """

    def _set_up(self, tasks: Sequence[Task], bands: Sequence[list[Task]], seed: int) -> None:
        if not tasks:
            raise ValueError(f"{type(self).__name__}: no tasks to choose from")
        self._tasks, self._bands, self._dealer = tasks, bands, Dealer(seed)
        if self.override >= len(bands):
            where, allowed = "curriculum.override", f"-1 to {len(bands) - 1}"
            raise InputError(InputProblem(where, "the tasks have no such band", str(self.override), allowed))
        self._band_of = {task.id: number for number, band in enumerate(bands) for task in band}
        self._windows = [deque[tuple[int, int]](maxlen=self.window) for _ in bands]
        """(successes, samples) of the last groups of each band."""

    @property
    @abstractmethod
    def band(self) -> int:
        """The current band, counted from 0."""

    def pick(self, offset: int, count: int) -> list[Task]:
        dealer, current = self._dealer, self._bands[self.band]
        earlier = [task for band in self._bands[: self.band] for task in band]
        again = min(part_of(offset, count, self.earlier), len(dealer.left(earlier)))
        new = min(count - again, len(dealer.left(current)))
        picked = dealer.deal(earlier, again) + dealer.deal(current, new)
        return picked + dealer.deal([*current, *earlier], count - len(picked))

    def observe(self, rollouts: Sequence[Observation]) -> None:
        self._dealer.end_step()
        for one in rollouts:
            if one.samples and one.task in self._band_of:
                self._windows[self._band_of[one.task]].append((one.successes, one.samples))

    def success(self, band: int) -> float | None:
        """Share of successes in the last groups of a band; None without groups."""
        samples = sum(samples for _, samples in self._windows[band])
        return sum(successes for successes, _ in self._windows[band]) / samples if samples else None

    def state_dict(self) -> dict[str, Any]:
        windows = [[list(one) for one in window] for window in self._windows]
        return {**self._dealer.state_dict(), "windows": windows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state(self, state, self.state_dict())
        self._dealer.load_state_dict(state)
        for window, saved in zip(self._windows, state["windows"], strict=True):
            window.clear()
            window.extend((successes, samples) for successes, samples in saved)

    def metrics(self) -> dict[str, float]:
        """The current band, success in the last groups of each band, and the share of the tasks that picks come from."""
        open_tasks = sum(len(band) for band in self._bands[: self.band + 1])
        found = {"band": float(self.band), "pool": open_tasks / len(self._tasks)}
        rates = {f"success_band_{band}": self.success(band) for band in range(len(self._bands))}
        return found | {name: rate for name, rate in rates.items() if rate is not None}


class Staged(Banded, options.Staged):
    """The next band opens when success over a window passes a threshold. It never goes back, unless `override` names a band.

    Bands are cut at `cuts`, or at quantiles of the tasks' difficulty; one without tasks is left out.
    """

    def __init__(self, tasks: Sequence[Task], seed: int, **given: Any):
        super().__init__(**given)
        cuts = self.cuts or (quantile_cuts(tasks, self.bands) if tasks else [])
        self._set_up(tasks, [band for band in in_bands(tasks, cuts) if band], seed)
        self._band = max(0, self.override)

    @property
    def band(self) -> int:
        return self._band

    def observe(self, rollouts: Sequence[Observation]) -> None:
        super().observe(rollouts)
        rate, full = self.success(self._band), len(self._windows[self._band]) == self.window
        if full and rate is not None and rate > self.threshold and self._band + 1 < len(self._bands):
            self._move(self._band + 1)

    def _move(self, band: int) -> None:
        """Begin a band; earlier groups of it do not count, so that no band is left without groups of its own."""
        self._band = band
        self._windows[band].clear()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "band": self._band, "overridden": self.override}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """An override that the saved run did not have is carried out; one that it had stays carried out."""
        super().load_state_dict(state)
        self._band = state["band"]
        if self.override not in (-1, state["overridden"]):
            self._move(self.override)


class Manual(Banded, options.Manual):
    """Bands and the steps at which they open are given by hand. `override` keeps a band at every step.

    Bands are cut at `cuts`, or into one quantile more than there are `steps`.
    """

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
