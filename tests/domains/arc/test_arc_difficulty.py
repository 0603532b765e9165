import pytest
from arc_samples import puzzles
from hypothesis import given

from rlvr_exp.domains.arc.puzzle import WEIGHTS, ArcPuzzle, change, parts, score

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
