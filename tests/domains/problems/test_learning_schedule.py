"""Who learns in which step, and from which stage of reasoning."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.domains.problems.options import Schedule

ROLES = ("tester", "solver")


def problems(*words: str) -> Sequence[InputProblem]:
    with pytest.raises(InputError) as fault:
        compose([*words])
    return fault.value.problems


def test_at_each_stage_the_tester_learns_then_the_solver_then_each_in_turn() -> None:
    schedule = Schedule(alone=2, alternating=3)
    turns = [schedule.learning(step, ROLES)[0] for step in range(14)]
    assert turns == ["tester"] * 2 + ["solver"] * 2 + ["tester", "solver", "tester"] + turns[:7]
    assert [schedule.stage(step, 2) for step in range(15)] == [0] * 7 + [1] * 7 + [0]
    assert [step for step in range(15) if schedule.ends_stage(step)] == [0, 7, 14]
    assert schedule.learning(9, ("solver",)) == ("solver",), "a role that learns alone has every step"


@given(st.integers(1, 5), st.integers(0, 5), st.integers(1, 6), st.integers(1, 6), st.integers(0, 400))
def test_a_pass_gives_every_stage_from_the_first_its_steps(alone, alternating, stages, start, step) -> None:
    schedule = Schedule(alone=alone, alternating=alternating, start_stage=start)
    whole = schedule.least_steps(stages)
    seen = [schedule.stage(at, stages) for at in range(whole)]
    first = min(start, stages) - 1
    assert seen == sorted(seen) and set(seen) == set(range(first, stages))
    assert {seen.count(stage) for stage in seen} == {schedule.steps_of_stage()}
    assert schedule.stage(step, stages) == schedule.stage(step + whole, stages), "passes follow one another"
    alone_of = [schedule.learning(at, ROLES) for at in range(schedule.steps_of_stage())]
    assert abs(sum(one == ("tester",) for one in alone_of) - sum(one == ("solver",) for one in alone_of)) <= 1


def test_jointly_all_learn_from_all_stages_in_every_step() -> None:
    schedule = Schedule(mode="joint")
    assert schedule.learning(3, ROLES) == ROLES and schedule.stage(3, 5) is None and not schedule.ends_stage(20)


@pytest.mark.parametrize(
    ("words", "where", "what"),
    [
        (["schedule.start_stage=6"], "schedule.start_stage", "there are fewer stages of reasoning"),
        (["algorithm.max_steps=69"], "schedule", "the last stages of reasoning would have no step"),
        (["schedule.mode=joint", "schedule.alone=3"], "schedule.alone", "has no effect here"),
        (["schedule.chains=1"], "schedule.chains", "programs of a problem are compared"),
        (["schedule.learn=[writer]"], "schedule.learn", "the environment has no such role"),
        (["environment.tests=0"], "schedule.learn", "without tests a tester has nothing to learn from"),
        (["environment=reasoning"], "environment", "this stage trains a solver and a tester"),
        (["environment.wanted_tests=5"], "environment.wanted_tests", "has no effect here"),
        (["environment.reward=seed", "environment.penalty=0.3"], "environment.penalty", "has no effect here"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts(words, where, what) -> None:
    assert (where, what) in [(one.where, one.what) for one in problems("+stage=adversarial", *words)]


def test_another_stage_that_trains_refuses_a_solver_and_a_tester() -> None:
    (problem,) = problems("+stage=grpo", "data=problems", "environment=adversarial")
    assert problem.where == "environment" and problem.remedy == "+stage=adversarial"
    assert compose(["+stage=evaluate", "data=problems", "environment=adversarial"])
