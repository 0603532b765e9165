"""Cross-validation in every domain: `folds` and `fold` decide what is trained on and what `test` is."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_sets import LIMIT, first_of, own_rows

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.options import Prompt
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.code.tasks import Code
from rlvr_exp.domains.dafny.options import DafnyPrompt
from rlvr_exp.domains.dafny.tasks import EMBEDDED as DAFNY
from rlvr_exp.domains.dafny.tasks import DafnyDomain
from rlvr_exp.domains.edits.tasks import EMBEDDED as EDITS
from rlvr_exp.domains.edits.tasks import Edits
from rlvr_exp.domains.problems.options import ReasoningStage
from rlvr_exp.domains.problems.rows import EMBEDDED as PROBLEMS
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.tasks.base import Domain

FOLDS = 3
STAGES = {"code": ReasoningStage(form="code")}


@pytest.fixture(scope="module", params=["arc", "dafny", "edits", "problems", "code"])
def domain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Domain:
    folder = tmp_path_factory.mktemp("rows")
    made = {
        "arc": lambda: Arc(limit=LIMIT, folds=FOLDS, prompt=Prompt(shots=2)),
        "dafny": lambda: DafnyDomain(first_of(DAFNY, folder), folds=FOLDS, role="both"),
        "edits": lambda: Edits(first_of(EDITS, folder), folds=FOLDS, instruction="both"),
        "problems": lambda: Problems(first_of(PROBLEMS, folder), folds=FOLDS, reasoning=STAGES, role="tester"),
        "code": lambda: Code(own_rows(folder), folds=FOLDS, dev_fraction=0.0),
    }
    return made[request.param]()


@pytest.mark.property(39)
def test_each_task_is_in_one_test_fold_and_its_likes_with_it(domain: Domain) -> None:
    folds = [replace(domain, fold=fold) for fold in range(FOLDS)]
    whole = {
        task.id for name in ("train", "practice", "test") for task in replace(domain, folds=0).splits().get(name, ())
    }
    seen: list[str] = []
    for one in folds:
        splits = one.splits()
        tested = splits["test"]
        trained = [task for name in ("train", "practice") for task in splits.get(name, ())]
        assert {task.id for task in (*tested, *trained)} == whole and len(tested) + len(trained) == len(whole)
        known = {key for task in trained for key in one.contents(task)}
        assert not known & {key for task in tested for key in one.contents(task)}
        assert one.sizes() == {name: len(tasks) for name, tasks in splits.items()}
        assert len(tested) == pytest.approx(len(whole) / FOLDS, abs=max(4, 0.15 * len(whole)))
        seen += [task.id for task in tested]
    assert sorted(seen) == sorted(whole)
    assert len({one.fingerprint("test") for one in folds}) == FOLDS
    assert "is held out as split 'test'" in domain.splits_note()


@pytest.mark.slow
def test_the_same_fold_is_the_same_tasks_and_the_other_splits_stay(domain: Domain) -> None:
    again, plain = replace(domain), replace(domain, folds=0)
    assert {name: [task.id for task in tasks] for name, tasks in again.splits().items()} == {
        name: [task.id for task in tasks] for name, tasks in domain.splits().items()
    }
    for name in {*plain.splits()} - {"train", "practice", "test"}:
        assert [task.id for task in domain.splits()[name]] == [task.id for task in plain.splits()[name]]


def test_no_held_out_task_is_shown_as_an_example(tmp_path: Path) -> None:
    arc = Arc(limit=LIMIT, folds=FOLDS, prompt=Prompt(shots=2))
    trained = {task.id for task in arc.splits()["train"]}
    assert {record.id for record in arc._solved} <= trained
    dafny = DafnyDomain(first_of(DAFNY, tmp_path), folds=FOLDS, prompt=DafnyPrompt(shots=2))
    trained = {task.id for task in dafny.splits()["train"]}
    assert {part.example.id for part in dafny._solved["annotator"]} <= trained


def test_a_critique_of_a_held_out_problem_is_no_part_of_training(tmp_path: Path) -> None:
    domain = Problems(first_of(PROBLEMS, tmp_path), folds=FOLDS, reasoning=STAGES, role="tester")
    for name, tasks in domain.splits().items():
        assert {task.inputs.row.split for task in tasks} == {name}


def test_both_roles_hold_out_the_same_programs(tmp_path: Path) -> None:
    path = first_of(DAFNY, tmp_path)
    tested = [
        {task.id for task in DafnyDomain(path, role=role, folds=FOLDS).splits()["test"]}
        for role in ("writer", "annotator")
    ]
    assert tested[0] == tested[1]


def test_the_named_splits_alone_are_in_folds(tmp_path: Path) -> None:
    path = first_of(EDITS, tmp_path)
    plain = Edits(path).splits()
    found = Edits(path, folds=2, folds_of=["practice", "test"]).splits()
    assert found["train"] == plain["train"] and len(found["practice"]) + len(found["test"]) == 2 * LIMIT
    with pytest.raises(InputError, match=r"data\.folds_of: no tasks in this split\n    got: later"):
        Edits(path, folds=2, folds_of=["test", "later"]).splits()


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"folds": 1}, "folds"),
        ({"folds": 3, "fold": 3}, "fold"),
        ({"fold": 1}, "folds"),
        ({"folds_of": ["train"]}, "folds"),
    ],
)
def test_folds_that_cannot_be_are_refused(options, where) -> None:
    assert [problem.where for problem in Arc(**options).problems()] == [where]
    assert Arc(folds=3, fold=2).problems() == []
