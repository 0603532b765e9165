"""benchmark=solutions fills a store, finds in it, and says how fast."""

from pathlib import Path

import pytest
from functions import measured

from rlvr_exp.benchmarks.solutions import SINGLE, synthetic_solutions
from rlvr_exp.solutions.store import BATCH, SolutionStore, faults


@pytest.mark.slow
def test_the_rates_are_of_a_sound_store(tmp_path: Path) -> None:
    text, metrics = measured(tmp_path, "solutions", "benchmark.rows=1000")
    assert metrics["rows"] == 1000, "what came later took the places of others"
    assert all(rate > 0 for rate in metrics.values()) and "| insert, full tasks |" in text
    with SolutionStore(tmp_path / "solutions.sqlite", read_only=True) as store:
        assert faults(store) == [] and store.count() == 1000


def test_all_that_it_adds_are_different() -> None:
    solutions = [
        *synthetic_solutions(1000),
        *synthetic_solutions(BATCH, "later", 20),
        *synthetic_solutions(SINGLE, "single", 1),
    ]
    assert len({one.key for one in solutions}) == len(solutions)
    assert {one.correct for one in solutions} == {True, False}
