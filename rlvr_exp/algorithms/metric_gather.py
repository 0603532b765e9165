"""TRL gathers some metrics sample by sample, which needs equally many samples on every rank. We split by tokens."""

from collections.abc import Iterator
from contextlib import contextmanager

from accelerate import Accelerator


@contextmanager
def skip_metric_gather(accelerator: Accelerator) -> Iterator[None]:
    """Inside the block `gather` returns its argument.

    TRL's loss gathers only the least and the largest clipped share of a sample, which no row of metrics logs; means are
    reduced, which still works across ranks.
    """
    accelerator.gather = lambda value: value  # type: ignore[method-assign]
    try:
        yield
    finally:
        del accelerator.gather
