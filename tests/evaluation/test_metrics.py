"""Rates of an evaluation with their intervals, and rates of measures."""

import math
from dataclasses import replace
from statistics import fmean

import pytest
from completions import completion
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_exp.evaluation.metrics import (
    family_rates,
    latency,
    measure_rates,
    rates_from,
    task_counts,
    task_values,
    verdict_counts,
)
from rlvr_exp.records.rollout_files import EvalSample

OUTCOMES = [
    ("passed", None),
    ("failed", "wrong_answer"),
    ("failed", "timeout"),
    ("rejected", None),
    ("no_verdict", None),
]


def scored(task, sample=0, outcome="passed", bucket=None, mode="sampled", family="rotate", seconds=1.0):
    return EvalSample(completion(task, outcome, bucket, sample=sample, family=family, seconds=seconds), mode, "prompt")


@st.composite
def evaluations(draw):
    """Up to 6 tasks of 2 families, 1 to 9 samples each (unequal on purpose), any outcomes."""
    results = []
    for task in range(draw(st.integers(1, 6))):
        for sample, (outcome, bucket) in enumerate(draw(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=9))):
            results.append(scored(f"t{task}", sample, outcome, bucket, family=f"f{task % 2}"))
    return results


@pytest.mark.property(34)
@settings(deadline=None)
@given(evaluations())
def test_every_task_is_tracked_on_its_own(results):
    counts = task_counts(results, "sampled")
    assert set(counts) == {result.completion.task.id for result in results}
    for task, count in counts.items():
        alone = [result for result in results if result.completion.task.id == task]
        assert count == task_counts(alone, "sampled")[task]
        assert count.judged + count.no_verdict == len(alone)
        assert count.passed == sum(result.completion.correct for result in alone)


@pytest.mark.property(35)
@settings(deadline=None)
@given(evaluations())
def test_aggregates_are_means_over_tasks_of_judged_completions(results):
    shares = []
    for task in {result.completion.task.id for result in results}:
        of_task = [one.completion for one in results if one.completion.task.id == task]
        judged = [one.correct for one in of_task if one.verdict.outcome != "no_verdict"]
        shares += [fmean(judged)] if judged else []
    rates = rates_from(results)
    assert ("pass_at_1" in rates) == bool(shares)
    if shares:
        assert rates["pass_at_1"].value == pytest.approx(fmean(shares))
        assert rates["pass_at_1"].n == len(shares)
    assert sum(verdict_counts(results).values()) == len(results)


@settings(deadline=None)
@given(evaluations())
def test_no_verdict_moves_no_rate(results):
    judged = [result for result in results if result.verdict.outcome != "no_verdict"]
    assert {name: rate.value for name, rate in rates_from(results).items()} == {
        name: rate.value for name, rate in rates_from(judged).items()
    }


def test_pass_at_8_needs_eight_judged_samples_of_a_task():
    seven = [scored("a", i) for i in range(7)] + [scored("a", 7, "no_verdict")]
    assert "pass_at_8" not in rates_from(seven)
    both = seven + [scored("b", i, "failed", "parse") for i in range(8)]
    rate = rates_from(both)["pass_at_8"]
    assert (rate.value, rate.n, rate.samples) == (0.0, 1, 8)


def test_greedy_and_sampled_never_mix():
    results = [scored("a", 0, mode="greedy"), scored("a", 0, "failed", "parse"), scored("a", 1, "rejected")]
    rates = rates_from(results)
    assert rates["pass_at_1_greedy"].value == 1.0 and rates["pass_at_1_greedy"].samples == 1
    assert rates["pass_at_1"].value == 0.0 and rates["pass_at_1"].samples == 2


def test_a_sample_that_stands_twice_is_refused():
    with pytest.raises(ValueError, match="a: sampled sample 0 stands twice"):
        task_counts([scored("a"), scored("a")], "sampled")


@pytest.mark.parametrize("name", ["pass_at_0", "pass_at_8_greedy", "pass@1", "success"])
def test_an_unknown_metric_is_refused_by_name(name):
    with pytest.raises(ValueError, match=name):
        task_values([scored("a")], name)


def test_families_are_rated_apart():
    results = [scored("a", family="flip"), scored("b", 0, "failed", "verify", family="rotate")]
    rates = family_rates(results)
    assert list(rates) == ["flip", "rotate"]
    assert rates["flip"]["pass_at_1"].value == 1.0 and rates["rotate"]["pass_at_1"].value == 0.0


def test_verdicts_are_counted_by_bucket_and_outcome():
    counts = verdict_counts([scored("a", i, *outcome) for i, outcome in enumerate(OUTCOMES)])
    assert {name for name, count in counts.items() if count} == {
        "passed", "wrong_answer", "timeout", "rejected", "no_verdict"
    }  # fmt: skip


def test_latency_is_the_median_and_the_95th_percentile():
    assert latency([scored("a", i, seconds=float(i)) for i in range(21)]) == {"p50": 10.0, "p95": 19.0}
    assert latency([]) == {}


def test_a_rate_writes_itself_as_the_summary_holds_it():
    rate = rates_from([scored("a"), scored("b", 0, "failed", "parse")])["pass_at_1"].to_dict()
    assert list(rate) == ["value", "low", "high", "n", "samples"]
    assert rate["value"] == 0.5 and rate["n"] == 2 and rate["samples"] == 1
    assert all(math.isfinite(number) for number in rate.values())


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
