"""Credit between roles: a body's credit depends neither on the annotator's luck nor on the difficulty of its task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.dafny.cascade import counterfactual, mean, shared

rewards = st.floats(-1, 1) | st.none()
tasks = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(rewards, min_size=width, max_size=width), min_size=2, max_size=5)
)


@given(tasks)
def test_the_shared_credit_is_the_mean_of_a_bodys_cascades(task) -> None:
    for credit, own in zip(shared(task), task, strict=True):
        judged = [one for one in own if one is not None]
        assert credit == (pytest.approx(sum(judged) / len(judged)) if judged else None)


@given(tasks, st.floats(-2, 2))
def test_a_task_that_is_easier_for_all_credits_nobody(task, ease: float) -> None:
    easier = [[None if one is None else one + ease for one in own] for own in task]
    if sum(mean(own) is not None for own in task) < 2:
        return  # A single body has no other body to differ from.
    for before, after in zip(counterfactual(task), counterfactual(easier), strict=True):
        assert (before is None) == (after is None)
        assert before is None or after == pytest.approx(before, abs=1e-9)


@given(tasks)
def test_differences_are_those_from_the_other_bodies(task) -> None:
    values = [value for own in task if (value := mean(own)) is not None]
    credits = [credit for credit in counterfactual(task) if credit is not None]
    assert len(credits) == len(values)
    if len(values) > 1:
        scale = len(values) / (len(values) - 1)
        centred = [scale * (value - sum(values) / len(values)) for value in values]
        assert credits == pytest.approx(centred, abs=1e-9)


def test_missing_verdicts_enter_nothing() -> None:
    assert shared([[None, 1.0], [None, None]]) == [1.0, None]
    assert counterfactual([[1.0], [None], [0.0]]) == [1.0, None, -1.0]
