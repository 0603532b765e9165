"""What a comparison found, in words that the numbers bear."""

import pytest

from rlvr_exp.evaluation.finding import finding


def change(value, low, high, p, seeds=5, **more):
    return {"value": value, "low": low, "high": high, "p": p, "seeds": seeds, "smallest": 0.034, **more}


GAIN = change(0.041, 0.012, 0.07, 0.01)
NONE = change(0.01, -0.014, 0.034, 0.4)


def test_a_difference_is_said_with_its_interval():
    assert finding("B", "A", GAIN, (0.4, 0.5)) == "A is better than B: +4.1 points [1.2, 7.0]"
    assert finding("B", "A", change(-0.041, -0.07, -0.012, 0.01), (0.4, 0.5)).startswith("A is worse than B: -4.1")
    assert finding("B", "A", GAIN, (0.4, 0.5), "excess_code").startswith("A is worse than B")


def test_no_difference_comes_with_the_one_that_would_have_been_found():
    assert finding("B", "A", NONE, (0.4, 0.5)) == (
        "no difference between A and B was found: +1.0 points [-1.4, 3.4]; one of 3.4 points would have been found in 80 of"
        " 100 such studies"
    )


def test_what_many_arms_find_by_chance_is_no_difference():
    text = finding("B", "A", {**GAIN, "p_holm": 0.06, "arms": 6}, (0.4, 0.5))
    assert text.startswith("no difference between A and B was found after Holm's correction for 6 arms")


@pytest.mark.parametrize(
    ("levels", "end"), [((0.0, 0.04), "under 5%"), ((0.96, 1.0), "over 95%"), ((0.04, 0.06), ""), ((0.01, 0.99), "")]
)
def test_arms_at_an_end_of_the_scale_cannot_tell(levels, end):
    text = finding("B", "A", GAIN, levels)
    assert text == f"cannot tell: all arms lie {end}" if end else text.startswith("A is better")


def test_few_seeds_say_what_they_cannot_bear():
    assert finding("B", "A", {**NONE, "seeds": 3}, (0.4, 0.5)).endswith(
        "of 3 seeds is too small where seeds differ much"
    )
    assert finding("B", "A", {**GAIN, "seeds": 1}, (0.4, 0.5)).endswith(
        "of one seed, so that nothing is known of others"
    )
