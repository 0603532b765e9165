"""What a puzzle shows as a problem, and outputs as answers: equal where the verifier takes them for the same."""

import pytest
from arc_samples import grids, puzzles
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.arc.puzzle import to_lists
from rlvr_exp.domains.arc.variants import answer, shown_task
from rlvr_exp.tasks.formats.python_io import Case
from rlvr_exp.verifiers.compare import equal


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
