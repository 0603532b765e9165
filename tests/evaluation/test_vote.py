"""A vote by hand, and what no order of the ballots changes."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.evaluation.vote import Ballot, VotedAnswer, solved_with, vote


def ballot(output, shown_right=0, program="", *more):
    return Ballot(program or f"{output}:{shown_right}", (output, *more), shown_right)


def outputs(voted):
    return [[one.output for one in answers] for answers in voted]


def test_equal_outputs_add_up_and_shown_cases_weigh_a_thousand_times_more():
    ballots = [ballot("a", 3), ballot("b", 3), ballot("b", 3), ballot("c"), ballot("c"), ballot("c"), ballot("c")]
    (found,) = vote(ballots, 1, 3, 3)
    assert [(one.output, one.votes, one.shown_right, one.weight) for one in found] == [
        ("b", 2, 1.0, 1002), ("a", 1, 1.0, 1001), ("c", 4, 0.0, 4)
    ]  # fmt: skip


def test_the_share_of_an_output_is_the_mean_of_its_programs():
    """One that has all of the shown cases right does not carry three that have none."""
    ballots = [ballot("a", 4), *[ballot("a", 0, "other")] * 3, ballot("b", 2)]
    (found,) = vote(ballots, 1, 4, 2)
    assert [(one.output, one.weight) for one in found] == [("b", 501), ("a", 254)]


def test_the_program_that_stands_for_an_output_is_the_one_most_right_then_the_shortest():
    ballots = [ballot("a", 1, "x"), ballot("a", 2, "longer"), ballot("a", 2, "short"), ballot("a", 2, "shoos")]
    assert vote(ballots, 1, 2, 1)[0][0].program == "shoos"


def test_a_tie_goes_to_the_shorter_program():
    ballots = [ballot("a", 1, "return long"), ballot("b", 1, "return b")]
    assert outputs(vote(ballots, 1, 2, 2)) == outputs(vote(ballots[::-1], 1, 2, 2)) == [["b", "a"]]


def test_each_input_has_a_vote_of_its_own_and_no_output_is_no_vote():
    ballots = [ballot("a", 2, "p", None), ballot(None, 0, "q", "y"), ballot("b", 1, "r", None)]
    assert outputs(vote(ballots, 2, 2, 2)) == [["a", "b"], ["y"]]
    assert vote([], 2, 2, 2) == ((), ())


@pytest.mark.parametrize(
    ("voted", "fewest"),
    [
        ([["a", "b"], ["x", "y"]], 1),
        ([["b", "a"], ["x", "y"]], 2),
        ([["b", "a"], ["y", "x"]], 2),
        ([["a", "b"], ["y", "z"]], 0),
        ([["a"], []], 0),
    ],
)
def test_every_input_needs_a_right_answer(voted, fewest):
    answers = [[VotedAnswer(one, 1, 0.0, "") for one in of_input] for of_input in voted]
    assert solved_with(answers, ["a", "x"]) == fewest


@st.composite
def polls(draw):
    """Ballots on two inputs of a task that shows 3; a program says the same each time."""
    said = st.tuples(*[st.sampled_from("abc") | st.none()] * 2)
    programs = draw(st.dictionaries(st.text("pqr", min_size=1, max_size=3), st.tuples(said, st.integers(0, 3))))
    names = draw(st.lists(st.sampled_from(sorted(programs)), max_size=12)) if programs else []
    return [Ballot(name, *programs[name]) for name in names]


@given(polls(), st.randoms(), st.integers(1, 4))
def test_the_order_of_the_ballots_decides_nothing(ballots, rng, answers):
    shuffled = rng.sample(ballots, len(ballots))
    assert vote(shuffled, 2, 3, answers) == vote(ballots, 2, 3, answers)


@given(polls(), st.integers(1, 4))
def test_the_answers_are_those_of_most_weight(ballots, answers):
    for place, found in enumerate(vote(ballots, 2, 3, answers)):
        said = sorted((one.outputs[place], one.shown_right) for one in ballots if one.outputs[place] is not None)
        weights = {}
        for output, own in groupby(said, key=lambda pair: pair[0]):
            right = [share for _, share in own]
            weights[output] = len(right) + 1000 * sum(right) / (3 * len(right))
        assert len(found) == min(answers, len(weights))
        assert [one.weight for one in found] == pytest.approx(sorted(weights.values(), reverse=True)[:answers])
        assert {one.output: one.weight for one in found}.items() <= {
            one: pytest.approx(weight) for one, weight in weights.items()
        }.items()
        assert sum(one.votes for one in found) <= len(said)


@given(polls())
def test_fewer_answers_are_the_first_of_more(ballots):
    many = vote(ballots, 2, 3, 4)
    assert vote(ballots, 2, 3, 2) == tuple(answers[:2] for answers in many)
