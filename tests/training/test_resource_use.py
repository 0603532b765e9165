"""Forecasts of resources that run out, the clock of a trial, and the energy that counters report."""

import random
from itertools import accumulate, chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.training.step_log import (
    FEWEST,
    SAVING,
    UPDATING,
    EnergyMeter,
    ResourceTrends,
    StepClock,
    Use,
    measure,
    sustained,
)

TOTAL = 1000


def told(uses: list[float], left: float, window: int = 40, name: str = "memory") -> tuple[list[str], dict[str, float]]:
    """Every line, and the last metrics, of steps with these uses, with `left` remaining at the last."""
    trends, lines = ResourceTrends(Path("/"), window), []
    for step, used in enumerate(uses, 1):
        lines += trends.take({name: Use(used, left + uses[-1] - used)}, step, TOTAL)
    return lines, trends.metrics()


@pytest.mark.parametrize("name", ["memory", "files", "disk"])
def test_a_leak_that_would_end_the_run_is_told_once_with_its_remedy(name: str) -> None:
    draw = random.Random(0)
    uses = [500 + 3 * step + draw.uniform(-5, 5) for step in range(60)]
    lines, metrics = told(uses, left=900, name=name)
    (line,) = lines
    assert line.startswith(f"warning: {name} will be used up in about") and "Remedy:" in line
    assert metrics[f"system/steps_left/{name}"] == pytest.approx(300, rel=0.1)


@pytest.mark.parametrize(
    ("uses", "left"),
    [
        ([500 + 3 * step for step in range(60)], 1e5),  # it lasts to the end
        ([500 + random.Random(step).uniform(-50, 50) for step in range(60)], 1000),  # noise
        ([min(500 + 30 * step, 1100) for step in range(60)], 1000),  # caches that fill
        ([500 + 500 * (step >= 40) for step in range(60)], 1000),  # one jump
        ([500 - 3 * step for step in range(60)], 10),  # less and less
        ([500 + 100 * step for step in range(8)], 1000),  # too few steps to say
    ],
)
def test_what_does_not_run_out_is_not_told(uses: list[float], left: float) -> None:
    lines, metrics = told(uses, left)
    assert lines == [] and not [name for name in metrics if "steps_left" in name]


def test_switched_off_it_still_measures() -> None:
    lines, metrics = told([500.0 + 9 * step for step in range(60)], left=10, window=0)
    assert lines == [] and metrics["system/rss_mb"] == 500 + 9 * 59


def test_growth_counts_as_the_smaller_of_all_and_lately() -> None:
    assert sustained([0, 10, 20, 30, 40, 40, 40, 40]) == 0
    assert sustained([0, 0, 0, 0, 0, 10, 20, 30]) < 10


def test_real_figures_are_this_process_s(tmp_path: Path) -> None:
    before = measure(tmp_path)
    held, files = bytearray(64 << 20), [open("/dev/null") for _ in range(20)]
    held[::4096] = b"x" * len(held[::4096])
    after = measure(tmp_path)
    for file in files:
        file.close()
    assert after["memory"].used - before["memory"].used == pytest.approx(64, abs=16)
    assert after["files"].used - before["files"].used == 20 and after["files"].left == before["files"].left - 20
    assert before["disk"].left > 0 and before["memory"].left > 0


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


def zone(folder: Path, name: str, microjoules: int) -> Path:
    (folder / name).mkdir(exist_ok=True)
    counter = folder / name / "energy_uj"
    counter.write_text(f"{microjoules}\n")
    return counter


def test_power_is_the_packages_energy_over_the_time(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", 1_000_000)
    zone(tmp_path, "intel-rapl:1", 5_000_000)
    zone(tmp_path, "intel-rapl:0:0", 7)  # of a part of a package
    ticks = iter([10.0, 14.0])
    meter = EnergyMeter(tmp_path, lambda: next(ticks))
    zone(tmp_path, "intel-rapl:0", 101_000_000)
    zone(tmp_path, "intel-rapl:1", 105_000_000)
    zone(tmp_path, "intel-rapl:0:0", 900_000_000)
    assert meter.kilowatts() == {"processor": pytest.approx(200 / 4 / 1e3)}


@pytest.mark.parametrize("last", ["3", "no number"])
def test_a_counter_that_started_over_or_cannot_be_read_says_nothing(tmp_path: Path, last: str) -> None:
    counter = zone(tmp_path, "intel-rapl:0", 1_000)
    meter = EnergyMeter(tmp_path)
    counter.write_text(last)
    assert meter.kilowatts() == {}


def test_without_counters_nothing_is_said(tmp_path: Path) -> None:
    assert EnergyMeter(tmp_path / "none").kilowatts() == {}
