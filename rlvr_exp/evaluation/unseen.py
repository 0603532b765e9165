"""What tasks that are measured have in common with tasks that were trained on: the task, its family, its program.

A task is its contents (`Domain.contents`), whatever its id; a program is its syntax tree without the names' choice. Both
are compared across domains, families within one, where tasks without a family are all of one.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from rlvr_exp.tasks.base import Domain, Task
from rlvr_exp.tasks.content import Shape, program_key, program_shape

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
