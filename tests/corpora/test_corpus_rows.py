"""Rows for +stage=verify: parsed, they are the problems and candidates that a validation judges."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from code_samples import MBPP, MBPP_PLUS_FLOATS, ROWS, write, write_set
from makers import made
from thinning import thinned

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case
from rlvr_exp.tasks.formats.rows import CandidateRow, read_row


def converted(data: Path, run: Path, *words: str, judge: str = "pytest") -> list[CandidateRow]:
    made(run, "rows", "data=code", f"data.path={data}", f"verifier={judge}", *words)
    found = [read_row(line, judge) for line in (run / "rows.jsonl").read_bytes().splitlines()]
    assert all(isinstance(row, CandidateRow) for row in found), found
    return [row for row in found if isinstance(row, CandidateRow)]


def as_json(problem: Any) -> Any:
    """Where types are not strict a tuple may be expected as a list: both are judged alike."""
    if isinstance(problem, PytestProblem) or problem.strict:
        return problem
    cases = tuple(Case(case.args, json.loads(json.dumps(case.expected))) for case in problem.cases)
    return replace(problem, cases=cases)


PROGRAMS = ("human_eval", "human_eval_plus", "canitedit", "edit_eval")
"""Sets whose samples have tests that are programs, not arguments and values."""
SETS = [*ROWS, "quixbugs"]


@pytest.mark.parametrize(
    ("judge", "name"),
    [*(("pytest", name) for name in SETS), *(("python_io", name) for name in SETS if name not in PROGRAMS)],
)
def test_rows_are_the_tasks(judge: str, name: str, tmp_path: Path) -> None:
    write_set(tmp_path / "set", name)
    domain = Code(str(tmp_path / "set"), judge=judge)
    tasks = [task for found in domain.splits().values() for task in found]
    rows = converted(tmp_path / "set", tmp_path, "prepare.candidates=[gold,wrong]", judge=judge)
    wanted = [(f"{task.id}#gold", as_json(task.problem), domain.parse(task.gold or "", task)) for task in tasks]
    wanted += [
        (f"{task.id}#wrong-{n}", as_json(task.problem), domain.parse(text, task))
        for task in tasks
        for n, text in enumerate(task.negatives)
    ]
    assert sorted(((row.id, row.problem, row.candidate) for row in rows), key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("name", thinned(PROGRAMS))
def test_a_set_without_cases_is_refused_for_a_verifier_that_judges_by_them(name: str, tmp_path: Path) -> None:
    write_set(tmp_path / "set", name)
    with pytest.raises(InputError, match="verifier=pytest"):
        converted(tmp_path / "set", tmp_path, judge="python_io")
    assert not (tmp_path / "rows.jsonl").exists()


def test_values_that_json_has_not_are_python_literals(tmp_path: Path) -> None:
    tests = ["assert double((1, [2])) == {1, 2}", "assert double({3: float}) == 1"]
    write(tmp_path / "mbpp.jsonl", [MBPP | {"task_id": n, "test_list": [text]} for n, text in enumerate(tests)])
    (row,) = converted(tmp_path / "mbpp.jsonl", tmp_path / "out", judge="python_io")
    assert row.problem.cases[0].args == ((1, [2]),) and row.problem.cases[0].expected == {1, 2} and row.problem.strict


def test_tolerances_are_written_and_read_again(tmp_path: Path) -> None:
    write(tmp_path / "mbpp_plus.jsonl", [MBPP_PLUS_FLOATS])
    (row,) = converted(tmp_path / "mbpp_plus.jsonl", tmp_path / "out", "prepare.candidates=[gold]", judge="python_io")
    assert row.problem.comparison == (False, 1e-6, 1e-7)


def test_one_row_a_candidate_of_each_kind(tmp_path: Path) -> None:
    write_set(tmp_path / "set", "mbpp")
    words = ("prepare.candidates=[gold,hollow,mutants]", "prepare.mutants=2")
    found = [str(row.id) for row in converted(tmp_path / "set", tmp_path, *words)]
    assert found[0] == "Mbpp/700#gold" and len(found) == len(set(found)) == 1 + 8 + 2
    assert [name.split("#")[1].split("-")[0] for name in found] == ["gold", *["hollow"] * 8, *["mutant"] * 2]


def test_bad_data_write_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"a": 1}))
    with pytest.raises(InputError, match="no code set is here"):
        converted(tmp_path, tmp_path)
    with pytest.raises(InputError, match="rows are made of tasks in Python"):
        made(tmp_path, "rows", "data=dafny")
    assert not (tmp_path / "rows.jsonl").exists()
