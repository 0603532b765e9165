"""Problems given from Python, in the form of a file's row."""

from typing import Any

from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.code.files import Row
from rlvr_exp.tasks.formats.fields import Fields
from rlvr_exp.tasks.problems.domain import Problems
from rlvr_exp.tasks.problems.rows import problem_of

NEVER_RUN: Fields = {"solution": "", "tests": [{"args": [], "expected": None}]}
"""Stands in for the keys that only running a program needs."""


def task_of(values: Fields, domain: Problems, runs: bool = True) -> Task:
    """The task of a row.

    Args:
        runs: something is run; else `text` and `entry_point` are all that a row needs.

    Raises:
        InputError: a key is missing, or holds what is not allowed.
    """
    given: dict[str, Any] = {**({} if runs else NEVER_RUN), **values}
    return domain.task(problem_of(Row(given, "problem"), str(given.get("split", ""))))
