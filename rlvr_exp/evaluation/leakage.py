"""Held-out means held out: no task that a policy trained on may be one that it is measured on."""

from collections.abc import Collection

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Task

SHOWN = 5


def check_leakage(trained: Collection[Task], held_out: Collection[Task], where: str = "data") -> None:
    """Refuse an evaluation whose tasks, known by their ids, overlap those trained on.

    Raises:
        InputError: some do; names how many and the first few, in order of their ids.
    """
    shared = sorted({task.id for task in trained} & {task.id for task in held_out})
    if not shared:
        return
    named = ", ".join(shared[:SHOWN]) + (", ..." if len(shared) > SHOWN else "")
    raise InputError(
        InputProblem(
            where,
            "tasks that are trained on are also held out for evaluation",
            got=f"{len(shared)} shared: {named}",
            allowed="no task id in both",
            remedy="choose another split for one of the two, or remove the shared tasks",
        )
    )
