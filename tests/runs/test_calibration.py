"""The calibration of docs/statistics.md in small: what its command measures, and that an interval over tasks alone fails it."""

import math

import numpy as np
import pytest
from calibration_figures import measured, studies

from rlvr_exp.core.crossed import layout
from rlvr_exp.core.statistics import NORMAL


@pytest.mark.parametrize("deviation", [0.0, 0.03])
def test_five_seeds_say_no_difference_and_find_one_as_often_as_is_stated(deviation) -> None:
    found = measured(5, deviation, samples=1, repeats=200)
    assert 0.90 <= found.none_found <= 0.99 and 0.70 <= found.smallest_is_found <= 0.88
    assert 0.03 < found.smallest < 0.10


def test_an_interval_over_tasks_alone_takes_seeds_for_a_difference() -> None:
    found = [layout(one) for one in studies(5, 0.03, 8, 200, np.random.default_rng(1))]
    held = sum(abs(one.mean) <= NORMAL * math.sqrt(one.between_tasks / (one.seeds * one.tasks)) for one in found)
    assert held / len(found) < 0.9
