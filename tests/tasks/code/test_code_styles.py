"""CanItEdit's two instructions: tasks, ids and families apart, and nothing else that differs."""

from pathlib import Path

import pytest
from code_samples import CANITEDIT, ROWS, write_set

from rlvr_exp.core.errors import InputError
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.code.domain import Code

NAME = "CanItEdit/7_counter"


def tasks(folder: Path, instruction: str) -> tuple[Task, ...]:
    return tuple(Code(str(folder), instruction=instruction).splits()["test"])


def test_the_descriptive_one_alone_keeps_the_sets_names(tmp_path: Path) -> None:
    write_set(tmp_path, "canitedit")
    (task,) = tasks(tmp_path, "descriptive")
    assert (task.id, task.family) == (NAME, "canitedit/adaptive") and "Add a method `up`." in task.inputs.instruction


def test_both_give_two_tasks_that_differ_in_their_words_alone(tmp_path: Path) -> None:
    write_set(tmp_path, "canitedit")
    domain = Code(str(tmp_path), instruction="both")
    found = domain.splits()["test"]
    assert [task.id for task in found] == [f"{NAME}/descriptive", f"{NAME}/lazy"]
    assert [task.family for task in found] == ["canitedit/descriptive/adaptive", "canitedit/lazy/adaptive"]
    assert [domain.strata(task) for task in found] == [{"instruction": "descriptive"}, {"instruction": "lazy"}]
    first, second = map(domain.task_prompt, found)
    assert first.replace("Add a method `up`.", "Count up.") == second != first
    assert found[0].problem == found[1].problem and found[0].gold == found[1].gold


def test_the_lazy_one_alone_has_the_name_that_it_has_among_both(tmp_path: Path) -> None:
    write_set(tmp_path, "canitedit")
    assert tasks(tmp_path, "lazy") == tasks(tmp_path, "both")[1:]
    assert Code(str(tmp_path)).strata(tasks(tmp_path, "descriptive")[0]) == {}


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"canitedit"}))
def test_sets_with_one_instruction_refuse_another(tmp_path: Path, name: str) -> None:
    write_set(tmp_path, name)
    with pytest.raises(InputError, match="data.instruction"):
        tasks(tmp_path, "lazy")


def test_an_edit_is_followed_by_the_sets_own_tests(tmp_path: Path) -> None:
    domain = Code(str(write_set(tmp_path, "canitedit")))
    (task,) = domain.splits()["test"]
    for program in ("x = 1", "x = 1\n"):
        edit = domain.edit_with_tests(task, program)
        assert edit is not None and edit.script == "x = 1\n" + CANITEDIT["tests"] and edit.after == "x = 1"
        assert edit.before.rstrip() == CANITEDIT["before"]


def test_other_tasks_are_no_edits_with_tests(tmp_path: Path) -> None:
    domain = Code(str(write_set(tmp_path, "human_eval")), draw_splits=False)
    assert domain.edit_with_tests(domain.splits()["test"][0], "x = 1") is None
