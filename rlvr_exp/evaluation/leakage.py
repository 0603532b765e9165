"""Held-out means held out: no task that a policy trained on may be one that it is measured on, by id or by content."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Domain, Task

SHOWN = 5


def check_selection(chosen: Collection[Task], held_out: Collection[Task]) -> None:
    """Refuse to choose the best step on tasks that the run reports success on. Raises as `check_leakage`."""
    what = "tasks that choose the best step are also those that success is reported on"
    remedy = (
        "choose another split for one of the two, or run.select.every_steps=0 run.select.times=0: no step is chosen"
    )
    _check_apart(chosen, held_out, "run.select.split", what, remedy)


def check_leakage(trained: Collection[Task], held_out: Collection[Task], where: str = "data") -> None:
    """Refuse an evaluation whose tasks, known by their ids, overlap those trained on.

    Raises:
        InputError: some do; names how many and the first few, in order of their ids.
    """
    what = "tasks that are trained on are also held out for evaluation"
    remedy = "choose another split for one of the two, or remove the shared tasks"
    _check_apart(trained, held_out, where, what, remedy)


def _check_apart(left: Collection[Task], right: Collection[Task], where: str, what: str, remedy: str) -> None:
    shared = sorted({task.id for task in left} & {task.id for task in right})
    if not shared:
        return
    named = ", ".join(shared[:SHOWN]) + (", ..." if len(shared) > SHOWN else "")
    raise InputError(InputProblem(where, what, f"{len(shared)} shared: {named}", "no task id in both", "", remedy))


class Apart(NamedTuple):
    """Tasks without those that share their content with a held-out task."""

    tasks: list[Task]
    left_out: dict[str, str]
    """Id of each task that is left out, with that of a held-out task that it shares content with."""


def apart(domain: Domain, tasks: Sequence[Task], held_out: Iterable[Task]) -> Apart:
    """Keep tasks apart from the held-out ones by content (`Domain.contents`).

    Raises:
        InputError: none is left.
    """
    if domain.splits_apart:
        return Apart([*tasks], {})
    known = {key: task.id for task in held_out for key in domain.contents(task)}
    left_out = {task.id: known[key] for task in tasks for key in domain.contents(task) if key in known}
    kept = [task for task in tasks if task.id not in left_out]
    if tasks and not kept:
        what, got = "every task shares its content with a held-out one", f"{len(left_out)} tasks"
        raise InputError(InputProblem("data", what, got, "tasks of their own", "", "choose other data or splits"))
    return Apart(kept, left_out)
