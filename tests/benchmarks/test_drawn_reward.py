"""The reward of a policy that solves nothing."""

from completions import completion

from rlvr_exp.benchmarks.drawn_reward import DrawnReward


def test_a_text_is_paid_alike_on_both_sides_and_texts_differ() -> None:
    drawn = [completion(completion=f"text {number}") for number in range(40)]
    ours, theirs = DrawnReward()(drawn), DrawnReward()(drawn[::-1])[::-1]
    assert ours == theirs
    assert {one.total for one in ours} == {0.0, 1.0}
