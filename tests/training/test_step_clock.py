"""What a trial measures, and when it has seen enough."""

from itertools import accumulate, chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.training.step_clock import FEWEST, SAVING, UPDATING, StepClock


def clocked(seconds: list[float], limit: float) -> tuple[StepClock, list[bool]]:
    """A clock after steps of these lengths, and whether it was over after each."""
    ticks = iter(chain.from_iterable(zip(accumulate([0.0, *seconds]), accumulate(seconds), strict=False)))
    clock, over = StepClock(limit, lambda: next(ticks)), []
    for _ in seconds:
        with clock.timed(UPDATING):
            pass
        over.append(clock.over())
    return clock, over


@given(st.lists(st.integers(1, 20).map(float), min_size=1, max_size=12), st.integers(1, 60))
def test_a_trial_ends_once_its_steps_after_the_first_took_long_enough(seconds: list[float], limit: int) -> None:
    clock, over = clocked(seconds, limit)
    assert clock.seconds[UPDATING] == pytest.approx(seconds)
    assert over == [n >= FEWEST and sum(seconds[1 : n + 1]) >= limit for n in range(len(seconds))]
    assert clock.counted == pytest.approx(seconds[1:] or seconds)


def test_a_meter_is_read_after_each_part_while_its_machine_is_warm() -> None:
    read: list[str] = []
    clock = StepClock(after=lambda: read.append("read"))
    for part in (UPDATING, SAVING):
        with clock.timed(part):
            read.append(part)
    assert read == [UPDATING, "read", SAVING, "read"]


def test_a_run_has_no_limit() -> None:
    assert not any(clocked([1e6] * 5, 0.0)[1])


def test_a_part_that_fails_is_not_counted() -> None:
    clock = StepClock()
    with pytest.raises(RuntimeError), clock.timed(UPDATING):
        raise RuntimeError
    assert clock.seconds[UPDATING] == []
