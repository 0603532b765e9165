"""Difficulty bands from the easiest on: the next one opens when success over a window passes a threshold. Never back, unless
`override` names a band."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_exp.config import curriculum as options
from rlvr_exp.curriculum.bands import Banded, in_bands, quantile_cuts
from rlvr_exp.curriculum.base import Observation
from rlvr_exp.tasks.base import Task


class Staged(Banded, options.Staged):
    """Bands are cut at `cuts`, or at quantiles of the tasks' difficulty; one without tasks is left out."""

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
        """Begin a band; what was seen of it before does not count, so that no band is left without groups of its own."""
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
