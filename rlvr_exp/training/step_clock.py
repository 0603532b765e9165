"""How long the parts of steps take, and the end of a trial."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rlvr_exp.rollouts.distributed import any_rank

UPDATING, MEASURING, SAVING = "update", "measure", "save"
FEWEST = 2
"""Steps of a trial that count."""


class StepClock:
    """
    Args:
        limit_s: seconds of updates, after the first, which warms up, that end a trial; 0: none.
        now: a clock that never goes back, in seconds.
        after: called after each part, such as to read a meter.
    """

    def __init__(
        self,
        limit_s: float = 0.0,
        now: Callable[[], float] = time.perf_counter,
        after: Callable[[], None] = lambda: None,
    ):
        self._limit, self._now, self._after = limit_s, now, after
        self.seconds: dict[str, list[float]] = defaultdict(list)
        """Of every time that a part was done, by its name."""

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        start = self._now()
        yield
        self.seconds[part].append(self._now() - start)
        self._after()

    @property
    def counted(self) -> list[float]:
        """Seconds of the updates after the first; of a run of one step, of that."""
        updates = self.seconds[UPDATING]
        return updates[1:] or updates

    def over(self) -> bool:
        """Whether a trial has seen enough; the same on all ranks, which all ask."""
        if not self._limit:
            return False
        return any_rank(len(self.seconds[UPDATING]) > FEWEST and sum(self.counted) >= self._limit)
