"""Rates of what verifiers measured: means over tasks of means over a task's completions."""

from dataclasses import replace

import pytest
from test_metrics import scored

from rlvr_exp.evaluation.measures import measure_rates


def with_measure(value, task, mode="sampled", sample=0, name="near"):
    """A sample with a measure; None: it has none."""
    one = scored(task, sample, mode=mode)
    verdict = replace(one.completion.verdict, measures={} if value is None else {name: value})
    return replace(one, completion=replace(one.completion, verdict=verdict))


def test_each_task_counts_once_and_modes_stay_apart():
    rows = [
        with_measure(1.0, "a", sample=0),
        with_measure(0.0, "a", sample=1),
        with_measure(1.0, "b", sample=0),
        with_measure(None, "c"),
        with_measure(0.25, "a", "greedy"),
    ]
    rates = measure_rates(rows)
    assert list(rates) == ["near", "near_greedy"]
    assert rates["near"].value == pytest.approx(0.75) and rates["near"].n == 2 and rates["near"].samples == 2
    assert rates["near_greedy"].value == 0.25 and rates["near_greedy"].n == 1


def test_nothing_measured_is_no_rate():
    assert measure_rates([with_measure(None, "a")]) == {}


def test_a_count_is_not_cut_at_one():
    rate = measure_rates([with_measure(value, str(value), name="rules") for value in (1.0, 2.0, 3.0)])["rules"]
    assert rate.value == 2.0 and rate.low < 2.0 < rate.high <= 3.0
    assert measure_rates([with_measure(3.0, "a", name="rules")])["rules"].high == 3.0
