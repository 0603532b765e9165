"""Tasks from rows and files: recognised by their keys, all faults reported with their lines, unique ids."""

import gzip
import json

import pytest
from input_rows import ADD, BY_FORMAT, EDITED, NEXT, PROVED, TESTED, puzzle

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.prompt import Wording
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.dafny.problem import DafnyProblem
from rlvr_exp.domains.edits.problem import AstGrepProblem
from rlvr_exp.launch.inference_inputs import from_file, from_row, select_tasks
from rlvr_exp.tasks.formats.fields import Fault
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import PythonProblem

ARC = Arc()
PROBLEMS = {"python_io": PythonProblem, "pytest": PytestProblem, "dafny": DafnyProblem, "ast_grep": AstGrepProblem}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("form", BY_FORMAT)
def test_a_row_is_told_by_its_keys(form):
    item = from_row(BY_FORMAT[form], ARC)
    assert isinstance(item.task.problem, PROBLEMS.get(form, PythonProblem))
    assert item.domain.name == form and item.domain.task_prompt(item.task)


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (ADD, "add(2, 3) == 5"),
        (NEXT, "it prints\n\n```\n5"),
        (TESTED, "def test_add"),
        (PROVED, "ensures x > 0"),
        (PROVED | {"keep": "method M() { print 1; }"}, "specification and its code as they stand"),
        (PROVED | {"keep": "method M() { print 1; }"}, "print 1;"),
        (EDITED, "log(a)"),
    ],
)
def test_a_row_without_a_prompt_is_worded_from_its_problem(row, shown):
    item = from_row(row, ARC)
    assert shown in item.domain.task_prompt(item.task)


@pytest.mark.parametrize("row", [ADD, NEXT, TESTED, PROVED, EDITED], ids=lambda row: row["id"])
def test_a_rows_own_prompt_stands_as_it_is(row):
    item = from_row(row | {"prompt": "Do it.\n"}, ARC)
    assert item.domain.task_prompt(item.task) == "Do it.\n"


def test_a_candidate_in_the_row_is_left_aside():
    assert from_row(ADD | {"code": 7}, ARC).task == from_row(ADD, ARC).task


def test_a_puzzle_is_worded_by_the_data_node():
    bare, words = from_row(puzzle("a"), ARC), from_row(puzzle("a"), Arc(prompt=Wording("instruct")))
    assert bare.domain.task_prompt(bare.task).startswith("I\n") and words.domain.task_prompt(words.task).startswith(
        "One rule"
    )


def test_a_puzzle_whose_test_output_is_hidden_is_judged_on_its_pairs():
    hidden = puzzle("a")
    hidden["test"] = [{"input": hidden["test"][0]["input"]}]
    assert len(from_row(hidden, ARC).task.problem.cases) == 2


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"train": [], "test": []}, "id: missing"),
        ({"id": 1}, "of no known format: it has id"),
        ({"id": 1, "cases": [], "entry_point": "f"}, "cases: got [], allowed a list of at least one case"),
        (ADD | {"prompt": 7}, "prompt: got 7, allowed text"),
        ({"id": 1, "train": [{"input": [[1]], "output": [[12]]}], "test": [{"input": [[1]]}]}, "not a colour"),
    ],
)
def test_a_row_that_is_none_names_key_and_value(row, told):
    with pytest.raises(Fault) as fault:
        from_row(row, ARC)
    assert told in str(fault.value)


def test_a_file_keeps_its_order_and_its_ids(tmp_path):
    items, rows = from_file(write(tmp_path / "in.jsonl", [ADD, puzzle(7), PROVED]), ARC)
    assert [item.id for item in items] == ["add", 7, "proved"] == [row["id"] for row in rows]


def test_packing_changes_nothing(tmp_path):
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress((json.dumps(ADD) + "\n\n").encode()))
    assert from_file(tmp_path / "in.jsonl.gz", ARC)[1] == [ADD]


def test_a_json_file_is_one_task_named_by_it_or_a_list(tmp_path):
    task = {key: value for key, value in puzzle("x").items() if key != "id"}
    (tmp_path / "0a1b.json").write_text(json.dumps(task, indent=2))
    (tmp_path / "many.json").write_text(json.dumps([ADD, NEXT], indent=2))
    assert [item.id for item in from_file(tmp_path / "0a1b.json", ARC)[0]] == ["0a1b"]
    assert [item.id for item in from_file(tmp_path / "many.json", ARC)[0]] == ["add", "next"]


def test_every_fault_of_a_file_is_told_with_its_line(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(f"{json.dumps(ADD)}\n[1]\n\nnot json\n{json.dumps({'id': 3})}\n")
    with pytest.raises(InputError) as fault:
        from_file(path, ARC)
    assert [problem.where.rpartition(" ")[2] for problem in fault.value.problems] == ["2", "4", "5"]


def test_of_many_faults_the_rest_is_counted(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("1\n" * 25)
    with pytest.raises(InputError) as fault:
        from_file(path, ARC)
    assert len(fault.value.problems) == 21 and "5 further faults" in str(fault.value)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "holds no task"),
        ([ADD, ADD], "ids that stand twice"),
        ([puzzle(1), puzzle("1")], "ids that stand twice"),
    ],
)
def test_a_file_that_cannot_be_asked_is_refused(rows, told, tmp_path):
    with pytest.raises(InputError, match=told):
        from_file(write(tmp_path / "in.jsonl", rows), ARC)


def test_tasks_are_chosen_by_id_and_by_number(tmp_path):
    items, _ = from_file(write(tmp_path / "in.jsonl", [puzzle(name) for name in ("a", "b", 3)]), ARC)
    assert [item.id for item in select_tasks(items, [], 2)] == ["a", "b"]
    assert [item.id for item in select_tasks(items, ["3", "a"], 0)] == ["a", 3]


def test_an_unknown_id_names_the_nearest(tmp_path):
    items, _ = from_file(write(tmp_path / "in.jsonl", [puzzle("rotate_17")]), ARC)
    with pytest.raises(InputError, match="did you mean: rotate_17"):
        select_tasks(items, ["rotate_71"], 0)
