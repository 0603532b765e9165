"""Held-out tasks are rejected when a policy trained on them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.leakage import check_leakage
from rlvr_exp.tasks.base import Task

IDS = st.sets(st.text("abc", min_size=1, max_size=3), max_size=12)


def tasks(ids):
    return [Task(name, "rotate", 1.0, inputs=[name], problem=None) for name in ids]


@pytest.mark.property(36)
@given(IDS, IDS)
def test_training_and_held_out_tasks_are_disjoint_or_refused(trained, held_out):
    if not trained & held_out:
        check_leakage(tasks(trained), tasks(held_out))
        return
    with pytest.raises(InputError) as refusal:
        check_leakage(tasks(trained), tasks(held_out), "data.split")
    problem = refusal.value.problems[0]
    assert problem.where == "data.split" and problem.remedy
    assert problem.got.startswith(f"{len(trained & held_out)} shared: {min(trained & held_out)}")
