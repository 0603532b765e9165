"""What curricula of difficulty bands share: how tasks are cut into bands, a share of easier tasks in every pick, success
by band. Which band is the current one is the subclass's."""

from abc import abstractmethod
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import curriculum as options
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.curriculum.base import Curriculum, Observation, check_keys, part_of
from rlvr_exp.curriculum.dealer import Dealer
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
        check_keys(self, state)
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
