from itertools import product

import pytest
from arc_samples import puzzles
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc import prompt as wording
from rlvr_exp.domains.arc.prompt import Wording, read, write
from rlvr_exp.domains.arc.puzzle import STYLES as GRIDS
from rlvr_exp.domains.arc.puzzle import ArcPuzzle, to_text

STYLES = list(product(wording.STYLES, GRIDS))
SMALL = ArcPuzzle(((((1, 2), (3, 0)), ((2, 1), (0, 3))),), (((4, 5), (6, 0)),))
GOLD = "def solve(g):\n    return [r[::-1] for r in g]"


@pytest.mark.property(4)
@pytest.mark.parametrize(("style", "grid"), STYLES)
@given(puzzle=puzzles(), others=st.lists(puzzles(), max_size=2))
def test_the_prompt_holds_the_whole_puzzle(style: str, grid: str, puzzle: ArcPuzzle, others: list) -> None:
    options = Wording(style, grid, len(others))
    text = write(puzzle, options, [(other, GOLD) for other in others])
    assert read(text, options) == puzzle
    for shown in [*(side for pair in puzzle.train for side in pair), *puzzle.test]:
        assert f"\n{to_text(shown, grid)}\n" in text
    assert text.count(GOLD) == len(others)


@pytest.mark.parametrize(("style", "grid"), STYLES)
def test_wide_grids_are_never_cut(style: str, grid: str) -> None:
    wide = (tuple(n % 10 for n in range(93)),)
    puzzle = ArcPuzzle(((wide, wide),) * 10, (wide, tuple(zip(*wide, strict=True))))
    assert read(write(puzzle, Wording(style, grid)), Wording(style, grid)) == puzzle


def test_bare_to_the_letter() -> None:
    assert write(SMALL, Wording()) == "I\n12\n30\nO\n21\n03\nT\n45\n60\nP\n"
    two = ArcPuzzle(SMALL.train * 2, (((4,),), ((5,), (6,))))
    assert write(two, Wording()) == "I\n12\n30\nO\n21\n03\n" * 2 + "T\n4\nT\n5\n6\nP\n"


def test_bare_with_a_solved_example() -> None:
    asked = write(SMALL, Wording())
    assert write(SMALL, Wording("bare", "compact", 1), [(SMALL, GOLD + "\n")]) == f"{asked}{GOLD}\n\n{asked}"


def test_instruct_says_what_is_asked_and_labels_all() -> None:
    two = ArcPuzzle(SMALL.train * 2, SMALL.test * 2)
    text = write(two, Wording("instruct", "spaced"))
    assert "Pair 2\nInput:\n1 2\n3 0\nOutput:\n2 1\n0 3\n" in text and "Test input 2:\n4 5\n6 0\n" in text
    assert "`solve(grid)`" in text and text.endswith("```python\ndef solve(grid):\n    ...\n```\n")


@pytest.mark.parametrize("text", ["", "I\n12\nP\n", "I\n1\nO\n2\nP\n", "T\n1\nP\n", "I\n1\nO\n2\nT\n1\n23\nP\n"])
def test_what_is_no_prompt_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read(text, Wording())
