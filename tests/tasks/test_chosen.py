"""Families that splits keep, families that are held out whole, and bootstrap samples of the training tasks, in every domain."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from small_sets import first_of, own_rows

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.options import Prompt
from rlvr_exp.domains.arc.tasks import EMBEDDED as ARC
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.tasks import EMBEDDED as DAFNY
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.tasks import EMBEDDED as EDITS
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.rows import EMBEDDED as PROBLEMS
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.tasks.base import Domain
from rlvr_exp.tasks.chosen import by_family, resampled

STAGES = {"code": ReasoningStage(form="code")}


@pytest.fixture(scope="module", params=["arc", "dafny", "edits", "problems", "code"])
def domain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Domain:
    folder = tmp_path_factory.mktemp("rows")
    made = {
        "arc": lambda: Arc(first_of(ARC, folder)),
        "dafny": lambda: DafnyDomain(first_of(DAFNY, folder)),
        "edits": lambda: Edits(first_of(EDITS, folder)),
        "problems": lambda: Problems(first_of(PROBLEMS, folder), reasoning=STAGES),
        "code": lambda: Code(own_rows(folder)),
    }
    return made[request.param]()


def families(domain: Domain) -> dict[str, set[str]]:
    return {name: {task.family for task in tasks} for name, tasks in domain.splits().items()}


def two_families(domain: Domain) -> list[str]:
    counts = Counter(task.family for tasks in domain.splits().values() for task in tasks)
    return [family for family, _ in counts.most_common(2)]


def test_splits_keep_the_named_families_alone(domain: Domain) -> None:
    first, *_ = two_families(domain)
    found = replace(domain, families=[first])
    assert set().union(*families(found).values()) == {first}
    for name, tasks in domain.splits().items():
        kept = [task.id for task in tasks if task.family == first]
        assert [task.id for task in found.splits().get(name, ())] == kept
    assert found.sizes() == {name: len(tasks) for name, tasks in found.splits().items()}
    assert "1 families alone" in found.splits_note() and not found.as_read


def test_unseen_families_are_in_no_other_split_and_a_limit_counts_what_is_left(domain: Domain) -> None:
    first, *second = two_families(domain)
    held_out = replace(domain, unseen_families=[first])
    splits = held_out.splits()
    assert {task.family for task in splits["test_unseen"]} == {first}
    others = {task.family for name, tasks in splits.items() if name != "test_unseen" for task in tasks}
    assert first not in others and others >= {*second}
    every = {task.id for tasks in domain.splits().values() for task in tasks if task.family == first}
    assert {task.id for task in splits["test_unseen"]} == every
    limited = replace(held_out, limit=3)
    assert len(limited.splits()["test_unseen"]) == min(3, len(every))
    assert all(len(limited.splits()[name]) == min(3, len(tasks)) for name, tasks in splits.items())


def test_training_tasks_are_drawn_with_replacement_and_the_others_stay(domain: Domain) -> None:
    one, again, other = (replace(domain, resample=seed) for seed in (1, 1, 2))
    ids = [[task.id for task in found.splits()["train"]] for found in (domain, one, again, other)]
    assert ids[1] == ids[2] != ids[3] and len(ids[0]) == len(ids[1]) == len(ids[3])
    assert {*ids[1]} < {*ids[0]} and max(Counter(ids[1]).values()) > 1
    assert [task.id for task in one.splits()["test"]] == [task.id for task in domain.splits()["test"]]
    assert one.fingerprint("train") != domain.fingerprint("train")
    assert one.fingerprint("test") == domain.fingerprint("test")


def test_a_family_that_is_not_there_is_refused_with_the_nearest(domain: Domain) -> None:
    first, *_ = two_families(domain)
    with pytest.raises(InputError, match=r"data\.unseen_families: no task is of this family(.|\n)*did you mean: "):
        replace(domain, unseen_families=[f"{first}s"]).splits()


def test_a_family_is_not_both() -> None:
    assert [one.where for one in Arc(families=["a", "b"], unseen_families=["b"]).problems()] == ["unseen_families"]


def test_shots_of_an_unseen_task_are_of_other_families(tmp_path: Path) -> None:
    plain = Arc(first_of(ARC, tmp_path), prompt=Prompt(shots=3))
    first, *_ = two_families(plain)
    found = replace(plain, unseen_families=[first])
    assert found.splits()["test_unseen"] and all(record.family != first for record in found._solved)


class Member:
    def __init__(self, family: str):
        self.family = family


def test_choosing_twice_changes_nothing() -> None:
    splits = {"train": [Member(name) for name in "abcab"], "test": [Member("b")], "test_unseen": [Member("d")]}
    once = by_family(splits, ["a", "c", "b"], ["d"])
    assert by_family(once, ["a", "c", "b"], ["d"]) == once
    assert [one.family for one in once["test_unseen"]] == ["d"] and len(once["train"]) == 5
    assert resampled(splits, 0) == {name: tuple(found) for name, found in splits.items()}
