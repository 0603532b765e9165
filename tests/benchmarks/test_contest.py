"""Contests: turns, disagreement, floors."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.benchmarks.contest import in_turns, of_rounds, one_by_one, remembered, table


def quiet(name, done, total):
    assert 0 <= done < total


def sleeper(seconds, answer="passed"):
    def judge(candidates):
        time.sleep(seconds)
        return [answer] * len(candidates)

    return judge


def numbers(turn):
    return [(turn, index) for index in range(3)]


def test_a_side_ten_times_slower_is_found_so():
    outcome = in_turns("a", "b", sleeper(0.01), sleeper(0.1), numbers, rounds=3, floor=5, progress=quiet)
    assert 5 < outcome.ratio.value < 12
    assert outcome.holds
    assert outcome.differing == 0


def test_sides_take_turns_in_going_first_and_see_the_same_candidates():
    seen = []

    def side(name):
        def judge(candidates):
            seen.append((name, list(candidates)))
            return ["passed"] * len(candidates)

        return judge

    in_turns("a", "b", side("ours"), side("theirs"), numbers, rounds=2, floor=1, progress=quiet)
    assert [name for name, _ in seen] == ["ours", "theirs", "theirs", "ours"]
    assert seen[0][1] == seen[1][1] != seen[2][1] == seen[3][1]


def test_disagreement_fails_a_contest_however_fast():
    outcome = in_turns("a", "b", sleeper(0.0), sleeper(0.05, "failed"), numbers, rounds=2, floor=2, progress=quiet)
    assert outcome.differing == 6
    assert not outcome.holds
    assert "NO" in table([outcome])


def test_one_by_one_compares_core_seconds_leaves_timeouts_out_and_counts_who_disagrees():
    spent = []

    def ours(number):
        spent.append(0.1)
        return {1: "timeout", 2: "verify"}.get(number, "passed")

    def theirs(number):
        time.sleep(0.02)
        spent.append(0.3)
        return "passed"

    outcome = one_by_one("a", "b", ours, theirs, range(20), 2, floor=2, progress=quiet, used=lambda: sum(spent))
    assert (outcome.ratio.value, outcome.ours_per_s, outcome.theirs_per_s) == pytest.approx((3, 10, 10 / 3))
    assert outcome.differing == 1
    assert outcome.note.startswith("18 passed, 1 timeout, 1 verify; seconds of the clock: p50 ")
    theirs_p50 = float(outcome.note.partition("theirs p50 ")[2].partition(",")[0])
    assert 0.02 <= theirs_p50 < 0.2 and "1 with a timeout" in outcome.note


def test_a_side_that_remembers_is_found_faster_the_second_time():
    seen = set()

    def side(candidates):
        fresh = [candidate for candidate in candidates if candidate not in seen]
        seen.update(fresh)
        time.sleep(0.02 * len(fresh) + 0.001)
        return ["passed"] * len(candidates)

    outcome = remembered("a", side, numbers, rounds=2, floor=10, progress=quiet)
    assert outcome.ratio.value > 10
    assert outcome.against == "the first pass"


def test_each_turn_is_told_and_may_be_refused():
    told = []

    def stop(*event):
        told.append(event)
        if event[1] == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        in_turns("a", "b", sleeper(0.0), sleeper(0.0), numbers, rounds=5, floor=1, progress=stop)
    assert told == [("a", 0, 5), ("a", 1, 5), ("a", 2, 5)]


SECONDS = st.floats(1e-4, 1e3)
PAIRS = st.lists(st.tuples(SECONDS, SECONDS), min_size=2, max_size=30)


@given(PAIRS)
def test_intervals_hold_their_value(pairs):
    ours, theirs = zip(*pairs, strict=True)
    ratio = of_rounds(ours, theirs)
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


@pytest.mark.parametrize("pairs", [[], [(1.0, 1.0)]])
def test_too_few_pairs_have_no_interval(pairs):
    with pytest.raises(ValueError, match="at least two"):
        of_rounds([own for own, _ in pairs], [other for _, other in pairs])
