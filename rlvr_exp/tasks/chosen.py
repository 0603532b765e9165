"""Which tasks of a domain are in its splits, by their families, and bootstrap samples of those that are trained on.

Pure functions of tasks, or of records that tasks are made of: all that they need to have is a family.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from rlvr_exp.config.names import suggest
from rlvr_exp.core.errors import InputError, InputProblem
from rlvr_exp.core.seeds import stream
from rlvr_exp.tasks.folds import PRACTICE, TRAIN
from rlvr_exp.tasks.tables import SPLITS

UNSEEN = "test_unseen"
SHOWN = 8
"""Families that a message names."""


class OfFamily(Protocol):
    @property
    def family(self) -> str: ...


Member = TypeVar("Member", bound=OfFamily)


def by_family(
    splits: Mapping[str, Sequence[Member]], families: Sequence[str], unseen: Sequence[str]
) -> dict[str, list[Member]]:
    """The splits, of these families alone where any are named; those of unseen families are all of `test_unseen`.

    Doing it a second time changes nothing. Splits without a task are left out where families are named.
    """
    if not families and not unseen:
        return {name: [*found] for name, found in splits.items()}
    wanted, held_out = {*families}, {*unseen}
    kept = {
        name: [one for one in found if one.family not in held_out and (not wanted or one.family in wanted)]
        for name, found in splits.items()
    }
    if held_out:
        measured = [
            found for name, found in splits.items() if name in SPLITS
        ]  # Not what can be neither learned nor judged.
        kept[UNSEEN] = [one for found in measured for one in found if one.family in held_out]
    return {name: found for name, found in kept.items() if found}


def refuse_unknown(splits: Mapping[str, Sequence[OfFamily]], families: Sequence[str], unseen: Sequence[str]) -> None:
    """Raises InputError where a family that is named has no task in any split."""
    known = {one.family for found in splits.values() for one in found} if families or unseen else set()
    faults = []
    for key, named in (("families", families), ("unseen_families", unseen)):
        for absent in (name for name in named if name not in known):
            allowed = ", ".join(sorted(known)[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
            faults.append(
                InputProblem(f"data.{key}", "no task is of this family", absent, allowed, suggest(absent, known))
            )
    if faults:
        raise InputError(*faults)


def resampled(splits: Mapping[str, Sequence[Member]], seed: int) -> dict[str, tuple[Member, ...]]:
    """The splits with a bootstrap sample of each that is trained on: as many tasks, drawn with replacement (Efron 1979), in
    their order. The number of the seed decides, 0 changes nothing."""
    found = {name: tuple(tasks) for name, tasks in splits.items()}
    for name in (TRAIN, PRACTICE) if seed else ():
        if tasks := found.get(name):
            places = sorted(stream("resample", seed, name).choices(range(len(tasks)), k=len(tasks)))
            found[name] = tuple(tasks[place] for place in places)
    return found
