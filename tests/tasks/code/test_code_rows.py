"""Rows for +stage=verify: parsed, they are the problems and candidates that a validation judges."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from code_samples import MBPP, ROWS, write, write_set

from rlvr_exp.tasks.code.domain import Code
from rlvr_exp.tasks.code.rows import main
from rlvr_exp.tasks.problems import Case, PytestProblem
from rlvr_exp.tasks.row_formats import Row, read_row


def converted(data: Path, out: Path, *words: str) -> list[Row]:
    judge = words[words.index("--judge") + 1] if "--judge" in words else "pytest"
    assert main([str(data), str(out), *words]) == 0
    found = [read_row(line, judge) for line in out.read_bytes().splitlines()]
    assert all(isinstance(row, Row) for row in found), found
    return [row for row in found if isinstance(row, Row)]


def as_json(problem: Any) -> Any:
    """Where types are not strict a tuple may be expected as a list: both are judged alike."""
    if isinstance(problem, PytestProblem) or problem.strict:
        return problem
    cases = tuple(Case(case.args, json.loads(json.dumps(case.expected))) for case in problem.cases)
    return replace(problem, cases=cases)


@pytest.mark.parametrize("name", [*ROWS, "quixbugs"])
@pytest.mark.parametrize("judge", ["pytest", "python_io"])
def test_rows_are_the_tasks(name: str, judge: str, tmp_path: Path) -> None:
    write_set(tmp_path / "set", name)
    domain = Code(str(tmp_path / "set"), judge=judge)
    tasks = [task for found in domain.splits().values() for task in found]
    rows = converted(
        tmp_path / "set", tmp_path / "out.jsonl", "--judge", judge, "--candidates", "gold", "--candidates", "wrong"
    )
    wanted = [(f"{task.id}#gold", as_json(task.problem), domain.parse(task.gold or "", task)) for task in tasks]
    wanted += [
        (f"{task.id}#wrong-{n}", as_json(task.problem), domain.parse(text, task))
        for task in tasks
        for n, text in enumerate(task.negatives)
    ]
    assert sorted(((row.id, row.problem, row.candidate) for row in rows), key=str) == sorted(wanted, key=str)


def test_values_that_json_has_not_are_python_literals(tmp_path: Path) -> None:
    tests = ["assert double((1, [2])) == {1, 2}", "assert double({3: float}) == 1"]
    write(tmp_path / "mbpp.jsonl", [MBPP | {"task_id": n, "test_list": [text]} for n, text in enumerate(tests)])
    (row,) = converted(tmp_path, tmp_path / "out" / "rows.jsonl", "--judge", "python_io")
    assert row.problem.cases[0].args == ((1, [2]),) and row.problem.cases[0].expected == {1, 2} and row.problem.strict


def test_one_row_a_candidate_of_each_kind(tmp_path: Path) -> None:
    write_set(tmp_path / "set", "mbpp")
    words = [word for kind in ("gold", "hollow", "mutants") for word in ("--candidates", kind)]
    found = [str(row.id) for row in converted(tmp_path / "set", tmp_path / "o.jsonl", *words, "--mutants", "2")]
    assert found[0] == "Mbpp/700#gold" and len(found) == len(set(found)) == 1 + 8 + 2
    assert [name.split("#")[1].split("-")[0] for name in found] == ["gold", *["hollow"] * 8, *["mutant"] * 2]


def test_bad_data_end_with_2_and_write_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"a": 1}))
    assert main([str(tmp_path), str(tmp_path / "out.jsonl")]) == 2
    assert "no code set is here" in capsys.readouterr().err and not (tmp_path / "out.jsonl").exists()
