"""Resources that run out are reported early and once; noise, finished growth and sufficient resources are not."""

import random
from pathlib import Path

import pytest

from rlvr_exp.training.guards_trend import ResourceTrends, Use, measure, sustained

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
