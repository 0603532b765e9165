"""A reward term that is a plain function, its range declared beside it."""

import pickle

import pytest
from verified_samples import answer, failed, passed

from rlvr_exp.config.options import NoSchema, find_schema
from rlvr_exp.core.errors import InputError
from rlvr_exp.rewards.base import ValueRange, term
from rlvr_exp.rewards.compose import Reward
from rlvr_exp.rewards.terms import AllPassed
from rlvr_exp.verifiers.base import Verdict


@term(when_correct=(0.0, 1.0), when_wrong=(0.0, 0.5))
def brevity(completion, task, verdict, scale: float = 100.0) -> float:
    """Falls with the tokens; half for a wrong answer of the family f."""
    return scale / (scale + completion.tokens) / (1 if verdict.outcome == "passed" else 1 + (task.family == "f"))


@term(when_correct=(0.0, 1.0), when_wrong=(0.0, 0.0))
def boastful(completion, task, verdict) -> float:
    return 2.0


def plain(completion, task, verdict) -> float:
    return 0.0


def test_the_function_is_given_completion_task_verdict_and_its_options() -> None:
    paid = Reward({"all_passed": AllPassed(1.0), "brevity": brevity(weight=0.5, scale=10.0)})
    terms = [each.terms["brevity"] for each in paid([passed(10), failed(tokens=10)])]
    assert terms == pytest.approx([0.25, 0.125])
    assert (brevity.when_correct, brevity.when_wrong) == (ValueRange(0.0, 1.0), ValueRange(0.0, 0.5))
    assert pickle.loads(pickle.dumps(brevity(scale=3.0))) == brevity(scale=3.0)


def test_its_range_is_checked_with_the_others_before_training() -> None:
    with pytest.raises(InputError, match="a wrong answer can earn"):
        Reward({"all_passed": AllPassed(1.0), "brevity": brevity(weight=3.0)})


def test_a_value_outside_the_declared_range_stops_the_run() -> None:
    with pytest.raises(InputError, match="boastful: a value outside its declared range"):
        boastful()(answer(Verdict("passed", total=1, passed=1)))


def test_a_function_without_a_range_is_refused_with_the_way_to_declare_it() -> None:
    with pytest.raises(NoSchema, match="@term"):
        find_schema(f"{__name__}.plain", None)


def test_parameters_that_no_term_has_are_refused() -> None:
    with pytest.raises(TypeError, match="takes \\(completion, task, verdict\\)"):
        term(when_correct=(0, 1), when_wrong=(0, 0))(lambda completion: 0.0)
    with pytest.raises(TypeError, match="weight is an option of every term"):
        term(when_correct=(0, 1), when_wrong=(0, 0))(lambda completion, task, verdict, weight=1.0: 0.0)
