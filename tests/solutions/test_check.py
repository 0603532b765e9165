"""A store that is not what it says is found out."""

import sqlite3
from pathlib import Path

import pytest
from solution_samples import solution

from rlvr_exp.solutions.store import Keeping, SolutionStore, faults

TWICE = "INSERT INTO solutions SELECT number + 100, 'other', task, family, difficulty, program, outcome, bucket, rule, "
TWICE += "passed, total, seconds, outputs, behaviour, syntax, size, operator, parent, run, step, policy FROM solutions"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("UPDATE solutions SET program = 'x = 1 + 1' WHERE number = 1", "task t: key and syntax and size of "),
        ("UPDATE solutions SET behaviour = 'x' WHERE number = 1", "task t: behaviour of "),
        ("UPDATE solutions SET outputs = 'x'", "a row is no solution: Solution.outputs: a hash each"),
        ("UPDATE solutions SET passed = 9", "a row is no solution: Solution.verdict: 9 of 2 pairs right"),
        ('UPDATE keeping SET json = \'{"per_task": 1, "quality": []}\'', "task t: 2 solutions, at most 1 are kept"),
        (f"{TWICE} WHERE number = 1", "task t: 2 solutions of one behaviour and one syntax tree"),
    ],
)
def test_faults_are_named(tmp_path: Path, words: str, fault: str) -> None:
    with SolutionStore(tmp_path / "s", Keeping(5)) as store:
        store.add_many([solution(number=1), solution(number=2)])
        assert faults(store) == []
        with sqlite3.connect(tmp_path / "s") as connection:
            connection.execute(words)
    with SolutionStore(tmp_path / "s") as store:
        found = faults(store)
        assert found and any(one.startswith(fault) for one in found), found


def test_a_damaged_page_is_a_fault(tmp_path: Path) -> None:
    with SolutionStore(tmp_path / "s", Keeping(1000)) as store:
        store.add_many(solution(number=n) for n in range(300))
    content = bytearray((tmp_path / "s").read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    (tmp_path / "s").write_bytes(content)
    with SolutionStore(tmp_path / "s") as store:
        assert faults(store)[0].startswith(("file: ", "a row is no solution: "))
