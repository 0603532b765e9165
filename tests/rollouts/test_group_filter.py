"""The group filter: a single rule, on the spread of the full group, and the kinds of zero variance."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.rollouts.groups import ERRORED, FAILED, MODES, SOLVED, ZERO_VARIANCE_KINDS, GroupFilter, spread

maybe = st.one_of(st.none(), st.floats(-2, 2))


def group(rewards, passed=False):
    """A stand-in: the filter reads only rewards and outcomes."""
    outcome = "passed" if passed else "failed"
    answers = [
        SimpleNamespace(verdict=SimpleNamespace(outcome="no_verdict" if r is None else outcome)) for r in rewards
    ]
    return SimpleNamespace(rewards=tuple(rewards), completions=answers)


@given(st.lists(maybe, min_size=2, max_size=6), st.floats(0, 1))
def test_a_group_has_zero_variance_when_its_rewards_are_within_eps(rewards, eps):
    judged = [reward for reward in rewards if reward is not None]
    dead = not judged or max(judged) - min(judged) <= eps
    assert (GroupFilter("keep", eps).zero_variance_kind(group(rewards)) in ZERO_VARIANCE_KINDS) == dead


@given(st.lists(maybe, min_size=2, max_size=6), st.sampled_from(MODES), st.randoms(use_true_random=False))
def test_the_order_of_members_and_silent_ones_change_nothing(rewards, mode, random):
    shuffled = [*rewards, None]
    random.shuffle(shuffled)
    assert GroupFilter(mode, 0.1).zero_variance_kind(group(rewards)) == GroupFilter(mode, 0.1).zero_variance_kind(
        group(shuffled)
    )


@pytest.mark.parametrize(
    ("rewards", "passed", "kind"),
    [
        ((1.0, 1.0), True, SOLVED),
        ((0.2, 0.2), False, FAILED),
        ((0.2, 0.2 + 1e-9), False, FAILED),
        ((None, None), False, ERRORED),
        ((0.3, None), False, FAILED),
        ((0.1, 0.3), False, None),
    ],
)
def test_kinds_of_zero_variance(rewards, passed, kind):
    assert GroupFilter("mask", 1e-6).zero_variance_kind(group(rewards, passed)) == kind


@pytest.mark.parametrize(("mode", "masked"), [("keep", False), ("mask", True), ("resample", True)])
def test_only_zero_variance_groups_are_masked(mode, masked):
    assert GroupFilter(mode, 1e-6).masks(group((0.0, 0.0))) == masked
    assert not GroupFilter(mode, 1e-6).masks(group((0.0, 1.0)))


def test_a_single_failed_member_gives_variance():
    """Where all members but one passed, the spread without that member is zero: it is taken over the full group."""
    assert GroupFilter("mask", 1e-6).zero_variance_kind(group((1.0, 1.0, 1.0, 0.0))) is None


def test_nothing_has_no_spread():
    assert spread([]) == 0.0


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="keep, mask, resample"):
        GroupFilter("drop", 0.0)
