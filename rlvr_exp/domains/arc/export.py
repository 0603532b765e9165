"""Correct programs of ARC tasks as a data set for imitation: a folder that `data.path` names.

`train.jsonl` has a row a program, of tasks of the split `train` alone; the other splits are the data's own, so that what
is measured on is what it was. No solution of a held-out task is ever written.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr_exp.core.files import replacing
from rlvr_exp.domains.arc.grid import to_lists
from rlvr_exp.domains.arc.load import SPLITS
from rlvr_exp.solutions.record import Solution
from rlvr_exp.tasks.base import Task

TRAIN = "train"


def write_folder(folder: Path, splits: Mapping[str, Sequence[Task]], solutions: Iterable[Solution]) -> dict[str, int]:
    """Write the splits; returns rows, tasks with a program, and solutions left out since they did not pass or are of no
    train task."""
    tasks = {task.id: task for task in splits.get(TRAIN, ())}
    numbers: dict[str, int] = {}
    rows, left_out = [], 0
    for one in solutions:
        if not one.correct or one.task not in tasks:
            left_out += 1
            continue
        number = numbers[one.task] = numbers.get(one.task, 0) + 1
        rows.append(row_of(tasks[one.task], f"{one.task}#{number}", one.program))
    for name in SPLITS:
        if name != TRAIN and name in splits:
            _write(folder / f"{name}.jsonl", (row_of(task, task.id, task.gold) for task in splits[name]))
    _write(folder / f"{TRAIN}.jsonl", rows)
    return {"rows": len(rows), "tasks": len(numbers), "left_out": left_out}


def row_of(task: Task, name: str, program: str | None) -> dict[str, Any]:
    """A task as a row of ARC data."""
    train = [{"input": to_lists(given), "output": to_lists(wanted)} for given, wanted in task.inputs.train]
    tests = [{"input": case.args[0], "output": case.expected} for case in task.problem.cases[len(train) :]]
    row = {"id": name, "family": task.family, "train": train, "test": tests}
    return row if program is None else {**row, "program": program}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with replacing(path) as temporary, open(temporary, "w", encoding="ascii") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
