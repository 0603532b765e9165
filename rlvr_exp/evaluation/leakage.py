"""Leakage: tasks that are both trained on and measured, and other content that measured and trained tasks share.

A task that a policy was trained on may not measure it. Tasks are compared by id and by content. `common` compares more.
Two tasks are equal if their contents are (`Domain.contents`), whatever their ids. Two programs are equal if their
syntax trees are, apart from the names. Both are compared across domains, and families within one domain. Tasks without
a family form one family.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.content import Shape, program_key, program_shape

SHOWN = 5


def check_selection(chosen: Collection[Task], held_out: Collection[Task]) -> None:
    """Refuse tasks that both choose the best step and report success. Raises as `check_leakage`."""
    what = "tasks that choose the best step are also those that success is reported on"
    remedy = (
        "choose another split for one of the two, or run.select.every_steps=0 run.select.times=0: no step is chosen"
    )
    _check_apart(chosen, held_out, "run.select.split", what, remedy)


def check_leakage(trained: Collection[Task], held_out: Collection[Task], where: str = "data") -> None:
    """Refuse an evaluation on trained tasks, compared by their ids.

    Raises:
        InputError: some tasks are in both sets. The message has their number and the first ids in order.
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
    """Return the tasks that share no content with a held-out task."""

    tasks: list[Task]
    left_out: dict[str, str]
    """Ids of removed tasks, each with the id of a held-out task that shares its content."""


def apart(domain: Domain, tasks: Sequence[Task], held_out: Iterable[Task]) -> Apart:
    """Remove the tasks that share content with held-out tasks (`Domain.contents`).

    Raises:
        InputError: no task is left.
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


TASK, FAMILY, PROGRAM = KINDS = ("task", "family", "program")


@dataclass(frozen=True)
class Common:
    """A property that a measured task shares with a trained one."""

    kind: str
    target: str
    """Id of the measured task."""
    trained: str
    """Id of one trained task with the property."""
    family: str
    """Family of the trained task."""


@dataclass(frozen=True)
class Material:
    """The properties of measured tasks by kind. Each key has the ids of its tasks."""

    keys: Mapping[str, Mapping[Hashable, list[str]]]
    shapes: Collection[Shape]
    """Shapes of their programs."""


def material(domain: Domain, target: Iterable[Task]) -> Material:
    found: dict[str, dict[Hashable, list[str]]] = {kind: {} for kind in KINDS}
    shapes = set[Shape]()
    for task in target:
        if task.gold:
            shapes.add(_shape(task.gold))
        for kind, key in _keys(domain, task):
            found[kind].setdefault(key, []).append(task.id)
    return Material(found, shapes)


def common(target: Material, domain: Domain, trained: Iterable[Task]) -> list[Common]:
    """Return the properties that target tasks share with trained tasks of a domain, each key once per target task."""
    found: dict[tuple[str, Hashable], list[Common]] = {}
    for task in trained:
        for kind, key in _keys(domain, task, target.shapes):
            if key in target.keys[kind] and (kind, key) not in found:
                found[kind, key] = [Common(kind, name, task.id, task.family) for name in target.keys[kind][key]]
    return [one for of_key in found.values() for one in of_key]


def _keys(domain: Domain, task: Task, shapes: Collection[Shape] | None = None) -> Iterator[tuple[str, Hashable]]:
    """Yield kinds and keys of a task. The program is included only if it has one of these shapes."""
    for own in domain.contents(task):
        yield TASK, own
    yield FAMILY, (domain.name, domain.given_family(task))
    if task.gold and (shapes is None or _shape(task.gold) in shapes):
        yield PROGRAM, _key(task.gold)


_shape, _key = cache(program_shape), cache(program_key)
