"""The energy that the kernel's counters report."""

from pathlib import Path

import pytest

from rlvr_exp.training.energy import EnergyMeter


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
