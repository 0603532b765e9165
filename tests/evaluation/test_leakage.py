"""Held-out tasks are rejected when a policy trained on them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.evaluation.leakage import apart, check_leakage
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


class Keyed:
    """A domain whose tasks' inputs are the keys of their content."""

    splits_apart = False

    @staticmethod
    def contents(task):
        return task.inputs


def keyed(prefix, keys):
    return [Task(f"{prefix}{n}", "f", 1.0, inputs=sorted(own), problem=None) for n, own in enumerate(keys)]


@pytest.mark.property(36)
@given(st.lists(st.sets(st.integers(0, 9), max_size=3)), st.lists(st.sets(st.integers(0, 9), max_size=3)))
def test_tasks_that_share_content_with_held_out_ones_are_left_out_and_no_others(trained, held_out):
    tasks_, held = keyed("train", trained), keyed("test", held_out)
    known = set().union(*held_out)
    kept = [task.id for task, own in zip(tasks_, trained, strict=True) if not own & known]
    if tasks_ and not kept:
        with pytest.raises(InputError, match="every task shares its content"):
            apart(Keyed, tasks_, held)
        return
    found = apart(Keyed, tasks_, held)
    assert [task.id for task in found.tasks] == kept
    assert found.left_out.keys() == {task.id for task in tasks_} - set(kept)
    assert all(set(held[int(of[4:])].inputs) & set(tasks_[int(one[5:])].inputs) for one, of in found.left_out.items())
