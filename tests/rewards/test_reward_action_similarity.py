"""The reward of supervised reinforcement learning, from what the verifier measured."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified_samples import failed, passed

from rlvr_exp.config.compose import compose
from rlvr_exp.config.load import build
from rlvr_exp.core.errors import InputError

SHARES = st.floats(0, 1)


def measured(completion, **measures: float):
    return replace(completion, verdict=replace(completion.verdict, measures=measures))


@cache
def reward(name: str = "srl"):
    return build(compose(["+stage=srl", f"reward={name}"]).config.reward)


@given(fields=SHARES, characters=SHARES, right=st.booleans())
def test_a_valid_action_earns_its_likeness_whether_or_not_it_is_right(fields, characters, right: bool) -> None:
    one = passed() if right else failed("wrong_answer")
    given_one = measured(one, valid=1.0, field_similarity=fields, string_similarity=characters)
    (own,), (paper,) = reward()([given_one]), reward("srl_paper")([given_one])
    assert own.total == pytest.approx(0.7 * fields + 0.3 * characters) and -0.2 <= own.total <= 1
    assert paper.total == pytest.approx(characters)


@pytest.mark.parametrize(
    "measures", [{}, {"valid": 0.0}, {"valid": 0.0, "field_similarity": 0.9, "string_similarity": 0.9}]
)
def test_an_answer_that_is_no_valid_action_loses(measures) -> None:
    one = measured(failed("parse"), **measures)
    assert reward()([one])[0].total == pytest.approx(-0.2)
    assert reward("srl_paper")([one])[0].total == pytest.approx(-1.0)


def test_a_task_without_a_teacher_is_told() -> None:
    with pytest.raises(InputError, match="no action of a teacher|has no action"):
        reward()([measured(passed(), valid=1.0)])
