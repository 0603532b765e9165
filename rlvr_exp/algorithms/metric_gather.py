"""TRL gathers some figures sample by sample, which takes equally many samples on every rank. Ours are cut by tokens."""

from collections.abc import Iterator
from contextlib import contextmanager

from accelerate import Accelerator


@contextmanager
def skip_metric_gather(accelerator: Accelerator) -> Iterator[None]:
    """Inside the block `gather` returns what it is given.

    What TRL's loss gathers are the least and the largest clipped share of a sample, which no row of metrics has; means
    are reduced, which goes on across ranks.
    """
    accelerator.gather = lambda value: value  # type: ignore[method-assign]
    try:
        yield
    finally:
        del accelerator.gather
