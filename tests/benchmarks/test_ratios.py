"""Ratios of paired measurements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.benchmarks.ratios import of_programs, of_rounds

SECONDS = st.floats(1e-4, 1e3)
PAIRS = st.lists(st.tuples(SECONDS, SECONDS), min_size=2, max_size=30)


@given(PAIRS)
def test_intervals_hold_their_value(pairs):
    ours, theirs = zip(*pairs, strict=True)
    for ratio in (of_rounds(ours, theirs), of_programs(ours, theirs)):
        assert ratio.low <= ratio.value * (1 + 1e-9)
        assert ratio.value <= ratio.high * (1 + 1e-9)
        assert ratio.n == len(pairs)


@given(PAIRS)
def test_swapping_the_sides_inverts_the_mean_ratio(pairs):
    ours, theirs = zip(*pairs, strict=True)
    assert of_rounds(ours, theirs).value * of_rounds(theirs, ours).value == pytest.approx(1)


def test_a_constant_ratio_is_known_exactly():
    ratio = of_rounds([1.0, 2.0, 4.0], [5.0, 10.0, 20.0])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((5, 5, 5))


def test_one_slow_program_does_not_move_the_median():
    assert of_programs([1.0] * 9 + [1000.0], [3.0] * 10).value == 3


def test_the_median_of_six_is_bounded_by_its_extremes():
    ratio = of_programs([1.0] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (ratio.low, ratio.high) == (1.0, 6.0)


@pytest.mark.parametrize("pairs", [[], [(1.0, 1.0)]])
def test_too_few_pairs_have_no_interval(pairs):
    with pytest.raises(ValueError, match="at least two"):
        of_rounds([own for own, _ in pairs], [other for _, other in pairs])
