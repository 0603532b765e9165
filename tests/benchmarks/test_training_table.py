"""The table of benchmark=training: speeds, ratios, shares and what binds, from laps alone."""

from dataclasses import replace

import pytest

from rlvr_exp.benchmarks.bench import merge_laps
from rlvr_exp.benchmarks.clock import Lap
from rlvr_exp.benchmarks.training_table import Pairs


def lap(generate: float, verify: float, update: float, other: float, tokens: int = 100, samples: int = 10) -> Lap:
    return Lap({"generate": generate, "verify": verify, "update": update, "other": other}, samples, tokens)


def pairs() -> Pairs:
    ours, stock = lap(1.0, 0.5, 2.0, 0.5), lap(4.0, 0.5, 10.0, 1.5, tokens=200)
    return Pairs(((ours, stock), (ours, stock)), 2e-6, 2, 1)


def test_phases_are_compared_by_what_they_turn_out():
    lines = {line.name: line for line in pairs().lines()}
    assert lines["rollouts"].ours == pytest.approx(100) and lines["rollouts"].stock == pytest.approx(50)
    assert lines["rollouts"].ratio.value == pytest.approx(2.0), "stock drew twice the tokens in four times the time"
    assert lines["update"].ratio.value == pytest.approx(5.0)
    assert lines["step"].ratio.value == pytest.approx(4.0)


def test_shares_add_up_and_the_largest_binds():
    assert sum(pairs().shares(0).values()) == pytest.approx(1.0)
    assert pairs().binds == "update"


def test_the_text_says_what_was_drawn_and_which_floors_do_not_hold():
    text = pairs().text()
    assert "200 ours, 400 stock's" in text and "update binds: 50%" in text
    held = {
        line.split("|")[1].strip(): line.split("|")[-2].strip() for line in text.splitlines() if line.count("|") > 7
    }
    assert (held["rollouts"], held["update"], held["step"]) == ("NO", "yes", "yes")


def test_the_share_of_the_machines_limit_is_printed_if_operations_were_counted():
    assert pairs().arithmetic is None and "GFLOP/s" not in pairs().text()
    ours, stock = replace(lap(1.0, 0.5, 2.0, 0.5), flops=60e9), lap(4.0, 0.5, 10.0, 1.5)
    counted = Pairs(((ours, stock), (ours, stock)), 2e-6, 2, 1, (30e9, 50e9))
    assert counted.arithmetic == pytest.approx((30e9, 40e9, 0.75))
    assert "30 GFLOP/s, 75% of a large float32 matrix product on the same threads (40 GFLOP/s)" in counted.text()
    assert counted.to_dict()["arithmetic"]["share"] == pytest.approx(0.75)


def test_laps_add_up():
    both = merge_laps([lap(1, 2, 3, 4), lap(1, 1, 1, 1)])
    assert both.total == 14 and both.steps == 2 and both.samples == 20 and both.seconds["update"] == 4
