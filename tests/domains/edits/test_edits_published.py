"""Published test sets as tasks of edits: their tests judge actions and edited texts."""

import json

import pytest
from code_samples import write_set

from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.edits.verifier import AstGrep
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request

SETS = ("canitedit", "edit_eval", "humanevalpack")
ACTIONS = {
    "canitedit": [
        {
            "pattern": "class $C:\n    $$$B",
            "rewrite": "class $C:\n    $$$B\n\n    def up(self):\n        self.count += 1",
        },
        {"pattern": "class $C:\n    $$$B", "rewrite": "import math\n\n\nclass $C:\n    $$$B\n\n\n_hidden = math.floor"},
    ],
    "edit_eval": {"pattern": "return x", "rewrite": "global total\ntotal += x\nreturn total"},
    "humanevalpack": {"pattern": "3 * x", "rewrite": "2 * x"},
}


def edits(tmp_path, name: str, **options) -> Edits:
    return Edits(path=str(write_set(tmp_path, name)), set=name, **options)


def passes(verifier: AstGrep, task, text: str) -> bool:
    verdict = verifier.submit(Request(task.problem, Candidate(text))).result(timeout=120)
    assert verdict.outcome in ("passed", "failed"), verdict
    return verdict.outcome == "passed"


@pytest.mark.parametrize("name", SETS)
def test_the_tests_of_a_set_judge_both_kinds_of_answer(name, tmp_path, exact):
    ((task,),) = edits(tmp_path, name).splits().values()
    assert passes(exact, task, json.dumps(ACTIONS[name]))
    assert not passes(exact, task, json.dumps({"pattern": "nothing_here", "rewrite": "x"}))
    ((task,),) = edits(tmp_path, name, target="text").splits().values()
    row = task.inputs.row
    assert passes(exact, task, row.after) and not passes(exact, task, row.before)


@pytest.mark.parametrize("name", SETS)
def test_every_task_is_held_out_and_canitedit_trains_nobody(name, tmp_path):
    domain = edits(tmp_path, name)
    assert list(domain.splits()) == ["test"]
    assert bool(domain.no_training()) == (name == "canitedit")


def test_both_instructions_are_two_tasks_of_two_strata(tmp_path):
    domain = edits(tmp_path, "canitedit", instruction="both")
    (tasks,) = domain.splits().values()
    assert [task.id for task in tasks] == ["CanItEdit/7_counter/descriptive", "CanItEdit/7_counter/lazy"]
    assert [domain.strata(task)["instruction"] for task in tasks] == ["descriptive", "lazy"]
    assert "Count up." in domain.task_prompt(tasks[1]) and "Add a method" in domain.task_prompt(tasks[0])
    (single,) = edits(tmp_path, "edit_eval", instruction="both").splits()["test"]
    assert domain.strata(single) == {}
