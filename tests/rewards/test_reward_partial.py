"""Partial credit keeps the order of how far a program came: parse < resolve < verify by its share < passed."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from verified_samples import TOTAL, answer, failed, passed, rejected, unknown

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed, Obligations, Parses, Resolves
from rlvr_exp.verifiers.base import BUCKETS, Verdict

WEIGHT = st.floats(1e-3, 1.0)
SHARES = st.lists(st.integers(0, TOTAL - 1), min_size=2, max_size=2, unique=True).map(sorted)
WEIGHTS = st.tuples(WEIGHT, WEIGHT, WEIGHT)


def reward(parses: float, resolves: float, obligations: float) -> Reward:
    parts = {"parses": Parses(parses), "resolves": Resolves(resolves), "obligations": Obligations(obligations)}
    return Reward({"all_passed": AllPassed(1.0), **parts})


def totals(paid_by: Reward, *answers) -> list[float]:
    return [one.total for one in paid_by(answers)]


@given(WEIGHTS, SHARES)
def test_the_further_an_answer_came_the_more_it_is_paid(weights: tuple[float, ...], shares: list[int]) -> None:
    ladder = [failed("parse"), failed("resolve"), *(failed("verify", share) for share in shares), passed()]
    found = totals(reward(*weights), *ladder)
    assert all(one < other for one, other in pairwise(found)), found


@given(WEIGHTS)
def test_a_cheat_is_paid_no_more_than_what_does_not_parse(weights: tuple[float, ...]) -> None:
    assert totals(reward(*weights), rejected(), failed("parse")) == [0.0, 0.0]


@given(WEIGHTS, st.sampled_from(BUCKETS), st.integers(0, TOTAL))
def test_every_failure_is_paid_less_than_a_proof(weights: tuple[float, ...], bucket: str, share: int) -> None:
    wrong, right = totals(reward(*weights), failed(bucket, share), passed())
    assert wrong < right


@given(WEIGHTS)
def test_a_missing_verdict_pays_nothing(weights: tuple[float, ...]) -> None:
    (paid,) = reward(*weights)([unknown()])
    assert paid.total is None and paid.terms == {}


def test_a_proof_that_ran_out_of_time_had_been_resolved() -> None:
    slow, unproved, cut = totals(reward(0.1, 0.2, 0.3), failed("timeout"), failed("verify"), failed("truncated"))
    assert slow == unproved > cut == 0.0


def test_all_obligations_and_still_no_proof_is_no_full_share() -> None:
    assert Obligations(1.0)(failed("verify", TOTAL)) < 1.0
    assert Obligations(1.0)(answer(Verdict("failed", "verify"))) == 0.0


def test_the_shipped_rewards_are_binary_with_and_without_partial_credit() -> None:
    answers = [failed("parse"), failed("resolve"), failed("verify", 10), passed()]
    binary, partial = (
        build(compose(["+stage=grpo", f"reward={name}"]).config.reward) for name in ("binary", "dafny_partial")
    )
    assert totals(binary, *answers) == [0.0, 0.0, 0.0, 1.0]
    found = totals(partial, *answers)
    assert found == sorted(set(found)) and found[-1] - found[-2] > 1.0
