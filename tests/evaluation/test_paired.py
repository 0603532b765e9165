"""Paired comparisons of evaluations, and what they found in words."""

import pytest
from completions import completion
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlvr_exp.core.crossed import crossed_mean, differences, p_value, smallest_found
from rlvr_exp.core.errors import InputError
from rlvr_exp.core.measures import Scale
from rlvr_exp.evaluation.paired import difference, difference_over_seeds, finding, paired
from rlvr_exp.records.rollout_files import EvalSample

VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20)


def greedy(task, outcome):
    return EvalSample(completion(task, outcome, "parse" if outcome == "failed" else None), "greedy", "prompt")


@settings(deadline=None)
@given(VALUES)
def test_swapping_the_sides_flips_the_sign(pairs):
    first = {f"t{i}": left for i, (left, _) in enumerate(pairs)}
    second = {f"t{i}": right for i, (_, right) in enumerate(pairs)}
    there, back = difference(first, second), difference(second, first)
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))
    assert (there.won, there.lost, there.tied) == (back.lost, back.won, back.tied)
    assert there.won + there.lost + there.tied == there.n == len(pairs)


def test_the_interval_is_the_paired_t_interval():
    first, second = [0.0, 0.25, 0.5, 0.75, 0.0], [0.5, 0.25, 1.0, 0.5, 0.25]
    result = difference(dict(enumerate(first)), dict(enumerate(second)))
    expected = stats.ttest_rel(second, first).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx(tuple(expected))
    assert (result.won, result.lost, result.tied) == (3, 1, 1)


def test_pairing_sees_what_two_separate_intervals_do_not():
    """Easy and hard tasks differ by far more than the gain; every task gains a little."""
    first = {f"t{i}": i / 40 for i in range(20)}
    second = {task: value + 0.05 + 0.001 * (i % 2) for i, (task, value) in enumerate(first.items())}
    assert difference(first, second).low > 0.04


def test_other_tasks_are_refused_with_the_counts():
    first, second = [greedy(f"t{i}", "passed") for i in range(5)], [greedy(f"t{i}", "passed") for i in range(2, 9)]
    with pytest.raises(InputError, match="2 tasks only in the first, 4 only in the second, 3 in both"):
        paired(first, second, "pass_at_1_greedy")


def test_a_task_without_a_verdict_on_one_side_leaves_both():
    first = [greedy("a", "passed"), greedy("b", "failed"), greedy("c", "failed")]
    second = [greedy("a", "no_verdict"), greedy("b", "passed"), greedy("c", "failed")]
    result = paired(first, second, "pass_at_1_greedy")
    assert (result.n, result.value, result.won, result.lost, result.tied) == (2, 0.5, 1, 0, 1)


def test_nothing_judged_on_both_sides_is_refused():
    with pytest.raises(InputError, match="0 in both"):
        paired([greedy("a", "no_verdict")], [greedy("a", "passed")], "pass_at_1_greedy")


def test_several_seeds_count_a_task_once_and_bring_their_own_spread():
    first, second = [[0.0, 0.0, 1.0, 0.0]] * 2, [[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    found = difference_over_seeds(first, second)
    assert (found.n, found.seeds, found.value) == (4, 2, 0.25)
    assert (found.won, found.lost, found.tied) == (2, 1, 1)
    assert difference_over_seeds(first, second, Scale(less_is_better=True)).won == 1
    changes = differences(first, second)
    assert (found.value, found.low, found.high) == crossed_mean(changes, -1.0, 1.0)
    assert (found.p, found.smallest) == (p_value(changes), smallest_found(changes))


@settings(deadline=None)
@given(VALUES)
def test_one_seed_is_compared_as_two_runs_are(pairs):
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    found = difference_over_seeds([left], [right]).to_dict()
    wanted = difference(dict(enumerate(left)), dict(enumerate(right))).to_dict()
    assert {key: found[key] for key in wanted} == pytest.approx(wanted, abs=1e-9)


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
