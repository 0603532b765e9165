"""Leakage: tasks that a policy trains on and is measured on, and what measured tasks have in common with trained ones.

No task that a policy trained on may be one that it is measured on, by id or by content. `common` compares further: a task is
its contents (`Domain.contents`), whatever its id; a program is its syntax tree without the names' choice. Both are compared
across domains, families within one domain; tasks without a family are all of one family.
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


TASK, FAMILY, PROGRAM = KINDS = ("task", "family", "program")


@dataclass(frozen=True)
class Common:
    """Something that a measured task shares with a trained one."""

    kind: str
    target: str
    """Id of the measured task."""
    trained: str
    """Id of a trained task with it."""
    family: str
    """The trained task's."""


@dataclass(frozen=True)
class Material:
    """What measured tasks consist of, by kind: each key with the ids of the tasks that have it."""

    keys: Mapping[str, Mapping[Hashable, list[str]]]
    shapes: Collection[Shape]
    """Of their programs."""


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
    """What target tasks share with trained ones of a domain, each key once for each target task that has it."""
    found: dict[tuple[str, Hashable], list[Common]] = {}
    for task in trained:
        for kind, key in _keys(domain, task, target.shapes):
            if key in target.keys[kind] and (kind, key) not in found:
                found[kind, key] = [Common(kind, name, task.id, task.family) for name in target.keys[kind][key]]
    return [one for of_key in found.values() for one in of_key]


def _keys(domain: Domain, task: Task, shapes: Collection[Shape] | None = None) -> Iterator[tuple[str, Hashable]]:
    """Kinds and keys of a task; the program's only where it has one of these shapes."""
    for own in domain.contents(task):
        yield TASK, own
    yield FAMILY, (domain.name, domain.given_family(task))
    if task.gold and (shapes is None or _shape(task.gold) in shapes):
        yield PROGRAM, _key(task.gold)


_shape, _key = cache(program_shape), cache(program_key)
