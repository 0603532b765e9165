"""The public sets that `data=code` reads, in their own formats, as problems."""

from pathlib import Path

from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.code.domain import Code
from rlvr_exp.tasks.code.files import first_row
from rlvr_exp.tasks.code.load import sets_at
from rlvr_exp.tasks.code.own_rows import OWN_ROWS, of_problems
from rlvr_exp.tasks.code.prompt import statement
from rlvr_exp.tasks.code.record import EITHER
from rlvr_exp.tasks.problems.rows import ProblemRow

NO_REFERENCE = "no solution to be the reference, without which data=code can train"
NO_FUNCTION = "no function that its tests call"


def set_at(path: Path, fractions: tuple[float, float], seed: int) -> Code | None:
    """The set at a path, with its splits; None where problems are there, or nothing that can be read.

    Args:
        fractions: shares of test and dev, where splits are drawn.
    """
    found = sets_at(path)
    if not found or (set(found) == {OWN_ROWS.name} and any(map(_is_problem, found[OWN_ROWS.name]))):
        return None
    test, dev = fractions
    return Code(path=str(path), judge=EITHER, test_fraction=test, dev_fraction=dev, seed=seed)


def _is_problem(file: Path) -> bool:
    return of_problems(first_row(file).values)


def rows_of(code: Code) -> tuple[dict[str, list[ProblemRow]], dict[str, str]]:
    """The problems of a set by split, and the tasks that are none, by id, each with the reason.

    Raises:
        InputError: as the set's own reading.
    """
    placed: dict[str, list[ProblemRow]] = {}
    left_out = dict(code.left_out())
    for split, tasks in code.splits().items():
        for task in tasks:
            if why := _why_not(code, task):
                left_out[task.id] = why
            else:
                placed.setdefault(split, []).append(_row(code, task, split))
    return placed, left_out


def _why_not(code: Code, task: Task) -> str:
    if not task.gold:
        return NO_REFERENCE
    return "" if code.entry_point(task).isidentifier() else NO_FUNCTION


def _row(code: Code, task: Task, split: str) -> ProblemRow:
    return ProblemRow(
        task.id,
        task.inputs if isinstance(task.inputs, str) else statement(task.inputs),
        code.entry_point(task),
        task.gold or "",
        task.problem,
        family=task.family,
        difficulty=task.difficulty,
        split=split,
        wrong=task.negatives,
    )
