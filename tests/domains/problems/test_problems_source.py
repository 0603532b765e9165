"""The public sets that `data=code` reads, as problems: what each is asked, judged by and split like."""

from pathlib import Path

import pytest
from code_samples import HUMAN_EVAL, MBPP, write, write_set
from own_problems import ROW, STAGES, written

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.problems.rows import NO_FUNCTION, NO_REFERENCE
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.tasks.calls import CallsProblem
from rlvr_exp.tasks.cases import taken
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem


def tasks(path: object, **options: object) -> dict:
    domain = Problems(path=str(path), reasoning=STAGES, **options)
    return {task.id: task for found in domain.splits().values() for task in found}


@pytest.mark.parametrize("name", ["human_eval", "human_eval_plus", "mbpp", "mbpp_plus", "humanevalpack"])
def test_a_set_is_read_in_its_own_format(name: str, tmp_path: Path) -> None:
    (task,) = tasks(write_set(tmp_path, name)).values()
    assert task.inputs.row.entry_point == "double" and "def double" in task.gold
    assert "one code block" not in task.inputs.row.text, "stages say themselves what form an answer has"


def test_quixbugs_has_cases_where_it_gives_them_and_test_files_elsewhere(tmp_path: Path) -> None:
    found = tasks(write_set(tmp_path, "quixbugs"))
    cases, driver = found["QuixBugs/double"], found["QuixBugs/last"]
    assert cases.problem == PythonProblem("double", (Case((1,), 2), Case((5,), 10)))
    assert isinstance(driver.problem, PytestProblem) and driver.problem.reference == driver.gold
    assert driver.problem.files[0][0] == "node.py" and driver.inputs.row.entry_point == "last"
    assert cases.negatives == ("def double(x):\n    return 3 * x\n",) and "return 3 * x" in cases.inputs.row.text
    wanted = tasks(tmp_path, role="tester")["QuixBugs/last"].problem
    assert isinstance(wanted, CallsProblem) and wanted.entry_point == "last"


def test_what_is_no_problem_is_left_out_with_the_reason(tmp_path: Path) -> None:
    fit = {
        "id": "a",
        "prompt": "Write f(x).",
        "tests": ["assert f(1) == 2"],
        "solution": "def f(x):\n    return 2 * x\n",
    }
    bare = {key: value for key, value in fit.items() if key != "solution"} | {"id": "b"}
    runs = {"id": "c", "prompt": "p", "cases": [{"stdin": "", "expected_stdout": "1"}], "solution": "print(1)\n"}
    domain = Problems(path=written(tmp_path, fit, bare, runs), reasoning=STAGES)
    assert [task.id for found in domain.splits().values() for task in found] == ["a"]
    assert domain.left_out() == {"b": NO_REFERENCE, "c": NO_FUNCTION}


def test_splits_are_those_of_the_set_or_drawn(tmp_path: Path) -> None:
    rows = [MBPP | {"task_id": number, "text": f"Task {number}."} for number in (5, 100, 550, 700)]
    write(tmp_path / "mbpp.jsonl", rows)
    sizes = Problems(path=str(tmp_path), reasoning=STAGES).sizes()
    assert sizes == {"train": 1, "dev": 1, "test": 1, "prompt": 1}
    many = [
        HUMAN_EVAL
        | {"task_id": f"HumanEval/{n}", "prompt": HUMAN_EVAL["prompt"].replace("Twice", f"{n}: twice")}
        | {
            "canonical_solution": f"    return {n} * x\n",
            "test": f"def check(candidate):\n    assert candidate(3) == {3 * n}\n",
        }
        for n in range(2, 32)
    ]
    file = write(tmp_path / "other" / "HumanEval.jsonl", many)
    whole = Problems(path=str(file), test_fraction=1.0, dev_fraction=0.0, reasoning=STAGES)
    assert whole.sizes() == {"test": 30}
    held = Problems(path=str(file), held_out=str(tmp_path / "mbpp.jsonl"), reasoning=STAGES)
    assert held.sizes() == {"train": 30, "test": 4}


def test_a_set_that_must_not_be_trained_on_stays_whole(tmp_path: Path) -> None:
    domain = Problems(path=str(write_set(tmp_path, "canitedit")), reasoning=STAGES)
    assert "canitedit" in domain.no_training() and not Problems(reasoning=STAGES).no_training()


def test_problems_beside_a_set_have_to_be_told_apart(tmp_path: Path) -> None:
    write_set(tmp_path, "mbpp")
    path = Path(written(tmp_path, ROW)).parent
    with pytest.raises(InputError, match="several sets are here(.|\n)*mbpp, rows"):
        Problems(path=str(path), reasoning=STAGES).splits()


@pytest.mark.parametrize(
    ("suite", "gold", "name"),
    [
        ("from solution import f", "def f(): ...\ndef g(): ...", "f"),
        ("from solution import g, f", "def f(): ...\ndef g(): ...", "g"),
        ("import solution\nsolution.f()", "def f(): ...\ndef g(): ...", "f"),
        ("from solution import C", "class C: ...\ndef f(): ...\ndef g(): ...", "g"),
        ("", "x = 1", ""),
    ],
)
def test_an_entry_point_that_nobody_says_is_what_the_suite_takes(suite: str, gold: str, name: str) -> None:
    assert taken(suite, gold) == name
