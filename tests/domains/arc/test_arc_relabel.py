"""New tasks from old ones: pairs in another order, and inputs with a program's outputs."""

import dataclasses
from random import Random

import pytest
from arc_samples import puzzles
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.arc.puzzle import ArcPuzzle, ArcRecord, Pair, to_lists
from rlvr_exp.domains.arc.tasks import Arc, to_task
from rlvr_exp.domains.arc.variants import CONSTANT, IDENTITY, INVALID, grids_of, input_shape, relabelled, reordered
from rlvr_exp.tasks.base import Task


def made(puzzle: ArcPuzzle, hidden: bool = False) -> Task:
    train = tuple(Pair(*pair) for pair in puzzle.train)
    test = tuple(Pair(grid, None if hidden else puzzle.train[0][1]) for grid in puzzle.test)
    return to_task(ArcRecord("t", "t", "f", "train", train, test, "def solve(g): return g"))


def cases(task: Task) -> list[str]:
    return sorted(map(repr, task.problem.cases))


@given(puzzle=puzzles(), seed=st.integers(0, 99))
def test_another_order_has_the_same_pairs_and_shows_as_many(puzzle: ArcPuzzle, seed: int) -> None:
    task = made(puzzle)
    other = reordered(task, Random(seed))
    assert cases(other) == cases(task) and other.gold == task.gold and other.id == task.id
    assert len(other.inputs.train) == len(task.inputs.train)
    shown = [(to_lists(given), to_lists(wanted)) for given, wanted in other.inputs.train]
    assert shown == [(case.args[0], case.expected) for case in other.problem.cases[: len(shown)]]
    assert [to_lists(grid) for grid in other.inputs.test] == [
        case.args[0] for case in other.problem.cases[len(shown) :]
    ]


def test_any_pair_may_be_held_back() -> None:
    numbered = tuple((((n,),), ((n, n),)) for n in range(4))
    task = made(ArcPuzzle(numbered[:3], (numbered[3][0],)))
    assert {reordered(task, Random(seed)).inputs.test for seed in range(40)} == {(pair[0],) for pair in numbered}


def test_a_task_with_a_hidden_output_stays_as_it_is() -> None:
    task = made(ArcPuzzle(((((1,),), ((2,),)), (((3,),), ((4,),))), (((5,),),)), hidden=True)
    assert all(reordered(task, Random(seed)) is task for seed in range(9))


def test_imitation_reorders_unless_it_is_told_not_to() -> None:
    task = Arc().splits()["train"][0]
    assert len({Arc().variant(task, Random(seed)).inputs for seed in range(30)}) > 5
    assert all(Arc(reorder=False).variant(task, Random(seed)) is task for seed in range(9))


TASK = made(ArcPuzzle(((((1, 2),), ((2, 1),)), (((3, 4),), ((4, 3),))), (((5, 6),),)))


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        ([[[1]], [[1]], None], INVALID),
        ([[[1]], [[2]], "12"], INVALID),
        ([[[1]], [[2]], [[10]]], INVALID),
        ([[[1]], [[2]], [[True]]], INVALID),
        ([[[1]], [[2]], [[1], [1, 2]]], INVALID),
        ([[[1]], [[2]], [[0] * 31]], INVALID),
        ([[[1]], [[2]], [[0]] * 31], INVALID),
        ([[[1]], [[2]]], INVALID),
        ([[[7]], [[7]], [[7]]], CONSTANT),
        ([[[1, 2]], [[3, 4]], [[5, 6]]], IDENTITY),
    ],
)
def test_outputs_that_make_no_task(outputs, reason) -> None:
    assert relabelled(TASK, outputs) == reason


def test_the_outputs_are_the_task_of_the_program_that_gave_them() -> None:
    outputs = [[[1], [2]], [[3], [4]], [[5], [6]]]
    found = relabelled(TASK, outputs)
    assert isinstance(found, Task)
    assert [case.expected for case in found.problem.cases] == outputs
    assert [case.args for case in found.problem.cases] == [case.args for case in TASK.problem.cases]
    assert found.inputs.train == ((((1, 2),), ((1,), (2,))), (((3, 4),), ((3,), (4,))))
    assert found.inputs.test == TASK.inputs.test and found.family == TASK.family
    assert found.gold is None and found.id != TASK.id and 0 < found.difficulty < 1
    assert relabelled(TASK, outputs) == found
    assert dataclasses.replace(found, id="") != dataclasses.replace(relabelled(TASK, [*outputs[:2], [[5]]]), id="")


def test_every_grid_is_known_the_held_back_output_too() -> None:
    assert set(grids_of(TASK)) == {((1, 2),), ((2, 1),), ((3, 4),), ((4, 3),), ((5, 6),)}
    assert set(Arc().fragments(TASK)) == set(grids_of(TASK))


def test_the_shape_of_the_inputs_where_they_share_one() -> None:
    assert input_shape(TASK) == (1, 2)
    assert input_shape(made(ArcPuzzle(((((1, 2),), ((2, 1),)),), (((5,),),)))) is None
    assert Arc().kin(TASK) == ("f", (1, 2))


@pytest.mark.parametrize("gold", ["def solve(g): return g", "def solve(g): return g\n", "def solve(g): return g\n\n"])
def test_a_gold_is_imitated_without_the_line_ends_after_it(gold: str) -> None:
    """A stored program ends with one: imitated as it is, it would teach the policy to write it."""
    assert Arc().gold_completion(dataclasses.replace(TASK, gold=gold)) == "def solve(g): return g"
