from itertools import pairwise

import pytest
from arc_samples import puzzles
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.tasks.arc.difficulty import WEIGHTS, change, ordered_batches, parts, score
from rlvr_exp.tasks.arc.puzzle import ArcPuzzle
from rlvr_exp.tasks.base import Task

DOT = ((0,),)


def task(number: int, difficulty: float) -> Task:
    return Task(f"t{number:03}", "f", difficulty, None, None)


@pytest.mark.property(3)
@given(st.lists(st.floats(0, 1), max_size=30), st.integers(1, 9))
def test_batches_go_from_easy_to_hard_and_lose_none(difficulties: list[float], size: int) -> None:
    tasks = [task(number, difficulty) for number, difficulty in enumerate(difficulties)]
    batches = ordered_batches(reversed(tasks), size)
    for earlier, later in pairwise(batches):
        assert len(earlier) == size
        assert max(t.difficulty for t in earlier) <= min(t.difficulty for t in later)
    assert sorted(t.id for batch in batches for t in batch) == [t.id for t in tasks]
    assert batches == ordered_batches(tasks, size)


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0"):
        ordered_batches([], 0)


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
