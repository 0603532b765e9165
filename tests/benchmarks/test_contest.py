"""Contests: turns, disagreement, floors."""

import time

from rlvr_exp.benchmarks.contest import in_turns, table


def sleeper(seconds, answer="passed"):
    def judge(candidates):
        time.sleep(seconds)
        return [answer] * len(candidates)

    return judge


def numbers(turn):
    return [(turn, index) for index in range(3)]


def test_a_side_ten_times_slower_is_found_so():
    outcome = in_turns("a", "b", sleeper(0.01), sleeper(0.1), numbers, rounds=3, floor=5)
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

    in_turns("a", "b", side("ours"), side("theirs"), numbers, rounds=2, floor=1)
    assert [name for name, _ in seen] == ["ours", "theirs", "theirs", "ours"]
    assert seen[0][1] == seen[1][1] != seen[2][1] == seen[3][1]


def test_disagreement_fails_a_contest_however_fast():
    outcome = in_turns("a", "b", sleeper(0.0), sleeper(0.05, "failed"), numbers, rounds=2, floor=2)
    assert outcome.differing == 6
    assert not outcome.holds
    assert "NO" in table([outcome])
