"""Grids and their text, prompts and the puzzles that they give back, and the difficulty of puzzles."""

from itertools import product

import pytest
from arc_samples import grids, puzzles
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc import prompt as wording
from rlvr_exp.domains.arc.prompt import Wording, read, write
from rlvr_exp.domains.arc.puzzle import (
    STYLES,
    WEIGHTS,
    ArcPuzzle,
    change,
    from_lists,
    from_text,
    parts,
    score,
    to_lists,
    to_text,
)

WIDE = (tuple(n % 10 for n in range(93)),)


@pytest.mark.property(2)
@pytest.mark.parametrize("style", STYLES)
@given(grids(12))
def test_a_grid_survives_its_text(style: str, grid: tuple) -> None:
    assert from_text(to_text(grid, style), style) == grid


@pytest.mark.property(2)
@pytest.mark.parametrize("style", STYLES)
@given(text=st.text(st.sampled_from("0123456789 ,[]\n²"), max_size=30))
def test_a_text_that_is_read_survives_its_grid(style: str, text: str) -> None:
    try:
        grid = from_text(text, style)
    except InputError:
        return
    assert to_text(grid, style) == text


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("grid", [((7,),), WIDE, tuple(zip(*WIDE, strict=True)), ((0,) * 30,) * 30])
def test_extreme_sizes(style: str, grid: tuple) -> None:
    assert from_text(to_text(grid, style), style) == grid


def test_the_styles_look_as_documented() -> None:
    assert [to_text(((1, 2), (3, 0)), style) for style in STYLES] == ["12\n30", "1 2\n3 0", "[[1,2],[3,0]]"]


@pytest.mark.parametrize(
    ("style", "text"),
    [
        *(("compact", text) for text in ("", "12\n3", "12\n", "1a", "1²")),
        *(("spaced", text) for text in ("12", "1  2", "1 2 ", "10 2")),
        *(("json", text) for text in ("[[1, 2]]", "[[10]]", "[[1]", "[" * 100000)),
    ],
)
def test_text_that_is_no_grid_is_refused(style: str, text: str) -> None:
    with pytest.raises(InputError):
        from_text(text, style)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        *((value, "f") for value in (None, [], "12")),
        *((value, r"f\[0\]") for value in ([[]], [[10]], [[-1]], [[True]], [[1.0]], [[None]], [[0, "1"]])),
        *((value, r"f\[1\]") for value in ([[1], 2], [[1, 2], [3]])),
    ],
)
def test_values_that_are_no_grid_are_named(value: object, where: str) -> None:
    with pytest.raises(InputError, match=f"^{where}: "):
        from_lists(value, "f")


@given(grids())
def test_lists_and_back(grid: tuple) -> None:
    assert from_lists(to_lists(grid), "f") == grid


def test_a_number_of_too_many_digits_is_told_by_its_kind() -> None:
    with pytest.raises(InputError, match="not a colour\n    got: int"):
        from_lists([[10**5000]], "grid")


WORDINGS = list(product(wording.STYLES, STYLES))
SMALL = ArcPuzzle(((((1, 2), (3, 0)), ((2, 1), (0, 3))),), (((4, 5), (6, 0)),))
GOLD = "def solve(g):\n    return [r[::-1] for r in g]"


@pytest.mark.property(4)
@pytest.mark.parametrize(("style", "grid"), WORDINGS)
@given(puzzle=puzzles(), others=st.lists(puzzles(), max_size=2))
def test_the_prompt_holds_the_whole_puzzle(style: str, grid: str, puzzle: ArcPuzzle, others: list) -> None:
    options = Wording(style=style, grid=grid, shots=len(others))
    text = write(puzzle, options, [(other, GOLD) for other in others])
    assert read(text, options) == puzzle
    for shown in [*(side for pair in puzzle.train for side in pair), *puzzle.test]:
        assert f"\n{to_text(shown, grid)}\n" in text
    assert text.count(GOLD) == len(others)


@pytest.mark.parametrize(("style", "grid"), WORDINGS)
def test_wide_grids_are_never_cut(style: str, grid: str) -> None:
    puzzle = ArcPuzzle(((WIDE, WIDE),) * 10, (WIDE, tuple(zip(*WIDE, strict=True))))
    assert read(write(puzzle, Wording(style=style, grid=grid)), Wording(style=style, grid=grid)) == puzzle


def test_bare_to_the_letter() -> None:
    assert write(SMALL, Wording()) == "I\n12\n30\nO\n21\n03\nT\n45\n60\nP\n"
    two = ArcPuzzle(SMALL.train * 2, (((4,),), ((5,), (6,))))
    assert write(two, Wording()) == "I\n12\n30\nO\n21\n03\n" * 2 + "T\n4\nT\n5\n6\nP\n"


def test_bare_with_a_solved_example() -> None:
    asked = write(SMALL, Wording())
    assert write(SMALL, Wording(shots=1), [(SMALL, GOLD + "\n")]) == f"{asked}{GOLD}\n\n{asked}"


def test_instruct_says_what_is_asked_and_labels_all() -> None:
    two = ArcPuzzle(SMALL.train * 2, SMALL.test * 2)
    text = write(two, Wording(style="instruct", grid="spaced"))
    assert "Pair 2\nInput:\n1 2\n3 0\nOutput:\n2 1\n0 3\n" in text and "Test input 2:\n4 5\n6 0\n" in text
    assert "`solve(grid)`" in text and text.endswith("```python\ndef solve(grid):\n    ...\n```\n")


@pytest.mark.parametrize("text", ["", "I\n12\nP\n", "I\n1\nO\n2\nP\n", "T\n1\nP\n", "I\n1\nO\n2\nT\n1\n23\nP\n"])
def test_what_is_no_prompt_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read(text, Wording())


DOT = ((0,),)


@given(puzzles())
def test_every_part_and_the_score_are_between_0_and_1(puzzle: ArcPuzzle) -> None:
    assert all(0 <= value <= 1 for value in parts(puzzle).values())
    assert 0 <= score(puzzle) <= 1


def test_the_easiest_and_the_hardest() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert parts(ArcPuzzle(((DOT, DOT),) * 4, (DOT,))) == {"size": 0, "change": 0, "colours": 0, "pairs": 0.25}
    full = tuple(tuple(n % 10 for n in range(30)) for _ in range(30))
    assert score(ArcPuzzle(((full, DOT),), (full,))) == pytest.approx(1)
    wide = (tuple(range(10)) * 100,)
    assert parts(ArcPuzzle(((wide, wide),), (wide,)))["size"] == 1


@pytest.mark.parametrize(
    ("harder", "part"),
    [
        (ArcPuzzle(((((0, 0),), ((0, 0),)),) * 2, (DOT,)), "size"),
        (ArcPuzzle(((DOT, DOT), (DOT, ((0,), (0,)))), (DOT,)), "change"),
        (ArcPuzzle(((DOT, DOT),) * 2, (((7,),),)), "colours"),
        (ArcPuzzle(((DOT, DOT),), (DOT,)), "pairs"),
    ],
)
def test_each_part_makes_it_harder(harder: ArcPuzzle, part: str) -> None:
    easy = ArcPuzzle(((DOT, DOT),) * 2, (DOT,))
    assert parts(harder)[part] > parts(easy)[part]
    assert score(harder) > score(easy)


def test_change_is_a_share_of_cells() -> None:
    assert change(((1, 2), (3, 4)), ((1, 2), (3, 0))) == 0.25
    assert change(((1, 2),), ((1,), (2,))) == 1.0
