"""Variants of a task: pairs in another order, a program's outputs, other looks; and outputs as answers of a vote."""

import dataclasses
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from arc_samples import grids, puzzles
from hypothesis import given
from hypothesis import strategies as st
from small_sets import first_of

from rlvr_exp.domains.arc import prompt as wording
from rlvr_exp.domains.arc.options import Prompt, Randomise
from rlvr_exp.domains.arc.puzzle import ArcPuzzle, ArcRecord, Pair, to_lists
from rlvr_exp.domains.arc.tasks import EMBEDDED, Arc, to_task
from rlvr_exp.domains.arc.variants import (
    CONSTANT,
    IDENTITY,
    INVALID,
    answer,
    grids_of,
    input_shape,
    relabelled,
    reordered,
    shown_task,
)
from rlvr_exp.tasks.base import Task
from rlvr_exp.tasks.formats.python_io import Case
from rlvr_exp.verifiers.compare import equal


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
        *(
            ([[[1]], [[2]], last], INVALID)
            for last in (None, "12", [[10]], [[True]], [[1], [1, 2]], [[0] * 31], [[0]] * 31)
        ),
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


@given(puzzles())
def test_the_shown_pairs_come_first_and_nothing_is_expected_of_the_others(puzzle):
    found = shown_task(puzzle)
    shown, held_back = found.problem.cases[: found.shown], found.problem.cases[found.shown :]
    assert shown == tuple(Case((to_lists(given),), to_lists(wanted)) for given, wanted in puzzle.train)
    assert held_back == tuple(Case((to_lists(given),), None) for given in puzzle.test)


@given(grids(), st.data())
def test_outputs_that_the_verifier_takes_for_the_same_are_one_answer(grid, data):
    kinds = st.sampled_from((list, tuple))
    cells = st.sampled_from((int, float, complex))
    output = data.draw(kinds)(data.draw(kinds)(data.draw(cells)(cell) for cell in row) for row in grid)
    assert equal(output, to_lists(grid)) and answer(output) == grid


@given(st.recursive(st.none() | st.booleans() | st.integers(-1, 10) | st.floats() | st.text(), st.lists, max_leaves=8))
def test_an_answer_is_what_the_verifier_would_take_it_for(output):
    found = answer(output)
    assert found is None or equal(output, to_lists(found))


@pytest.mark.parametrize(
    "output",
    [None, "12", 7, [], [[]], [[1], [1, 2]], [1, 2], [["1"]], [[True]], [[1.5]], [[10]], {0: [1]}, [[None]], [{1: 2}]],
)
def test_what_is_no_grid_is_no_answer(output):
    assert answer(output) is None


def test_a_grid_is_of_at_most_30_by_30():
    assert answer([[0] * 30] * 30) is not None
    assert answer([[0] * 31]) is None and answer([[0]] * 31) is None


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Arc:
    return Arc(first_of(EMBEDDED, tmp_path_factory.mktemp("rows")))


def test_colours_change_places_alike_in_all_grids_and_the_background_stays(plain: Arc) -> None:
    changed = replace(plain, randomise=Randomise(colours=True))
    permutations = set()
    for before, after in zip(plain.splits()["train"], changed.splits()["train"], strict=True):
        new: dict[int, int] = {}
        for one, other in zip(before.problem.cases, after.problem.cases, strict=True):
            for both in ((one.args[0], other.args[0]), (one.expected, other.expected)):
                for rows in zip(*both, strict=True):
                    for cell, colour in zip(*rows, strict=True):
                        assert new.setdefault(cell, colour) == colour
        assert new.get(0, 0) == 0 and len({*new.values()}) == len(new)
        assert (before.id, before.family) == (after.id, after.family) and after.gold is None
        shown = [to_lists(grid) for pair in after.inputs.train for grid in pair]
        assert shown == [
            grid for case in after.problem.cases[: len(shown) // 2] for grid in (case.args[0], case.expected)
        ]
        permutations.add(tuple(sorted(new.items())))
    assert len(permutations) > 20
    assert changed.fingerprint("test") != plain.fingerprint("test")
    again = replace(plain, randomise=Randomise(colours=True))
    assert again.fingerprint("test") == changed.fingerprint("test")
    assert replace(changed, seed=5, dev_fraction=0.0).splits()["test"] != changed.splits()["test"]


def test_each_prompt_writes_its_grids_in_one_of_the_ways_and_says_the_same(plain: Arc) -> None:
    changed = replace(plain, randomise=Randomise(grids=["compact", "spaced"]))
    styles = []
    for task in changed.splits()["test"]:
        prompts = {style: wording.write(task.inputs, Prompt(grid=style)) for style in ("compact", "spaced")}
        (style,) = (style for style, text in prompts.items() if text == changed.task_prompt(task))
        assert wording.read(changed.task_prompt(task), Prompt(grid=style)) == task.inputs
        assert changed.retry_prompt(task, "def solve(g):", "wrong").count("\nP\n") == 2
        styles.append(style)
    assert 5 < styles.count("spaced") < 35 and changed.splits() == plain.splits()
    assert [changed.task_prompt(task) for task in reversed(changed.splits()["test"])] == [
        changed.task_prompt(task) for task in changed.splits()["test"]
    ][::-1]


def test_noise_is_in_the_pairs_that_are_shown_alone(plain: Arc) -> None:
    noisy = replace(plain, randomise=Randomise(noise=0.1))
    cells = changed = 0
    for task in noisy.splits()["test"]:
        shown = wording.read(noisy.task_prompt(task), Prompt())
        assert shown.test == task.inputs.test and shown == wording.read(noisy.task_prompt(task), Prompt())
        for pairs in zip(shown.train, task.inputs.train, strict=True):
            for one, other in zip(*pairs, strict=True):
                assert list(map(len, one)) == list(map(len, other))
                found = [a != b for rows in zip(one, other, strict=True) for a, b in zip(*rows, strict=True)]
                cells, changed = cells + len(found), changed + sum(found)
    assert 0.07 < changed / cells < 0.11, "a tenth of the new colours are the old ones"
    assert noisy.splits() == plain.splits() and noisy.fingerprint("test") == plain.fingerprint("test")
    task = noisy.splits()["test"][0]
    assert noisy.retry_prompt(task, "def solve(g):", "wrong").endswith(noisy.task_prompt(task))


def test_a_task_in_other_colours_is_not_its_own_example(plain: Arc) -> None:
    asked = replace(plain, prompt=Prompt(shots=len(plain.splits()["train"]) - 1), randomise=Randomise(colours=True))
    task, original = asked.splits()["train"][0], plain.splits()["train"][0]
    assert wording.write(original.inputs, Prompt()) not in asked.task_prompt(task)


def test_without_a_limit_of_looks_the_embedded_corpus_is_as_shipped(tmp_path: Path) -> None:
    shipped, changed = Arc(limit=3), Arc(limit=3, randomise=Randomise(colours=True))
    assert shipped.sizes() == changed.sizes() and shipped.fingerprint("train") != changed.fingerprint("train")
    assert Arc(limit=3, randomise=Randomise(grids=["json"])).fingerprint("train") == shipped.fingerprint("train")
