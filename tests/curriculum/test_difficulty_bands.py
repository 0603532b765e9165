"""Difficulty bands that open by success or by step."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretend import SPREAD, tasks, tasks_of
from thinning import tries

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.curriculum.base import Observation
from rlvr_exp.curriculum.difficulty_bands import Manual, Staged, in_bands, quantile_cuts

cuts = st.lists(st.floats(0, 9), max_size=4, unique=True).map(sorted)


def step(curriculum: Staged, offset: int, count: int, solved, samples: int = 4) -> list[Observation]:
    """Pick, and observe so many successes of each group."""
    picked = curriculum.pick(offset, count)
    rows = [Observation(one.id, min(n, samples), samples, False) for one, n in zip(picked, solved, strict=True)]
    curriculum.observe(rows)
    return rows


@pytest.mark.property(26)
@given(tasks, cuts, st.integers(1, 6), st.integers(1, 30), st.floats(0, 0.99), st.integers(0, 3))
def test_the_first_batch_comes_from_the_easiest_band(tasks, cuts, bands, size, earlier, seed):
    picked = Staged(tasks, seed, cuts=cuts, bands=bands, earlier=earlier).pick(0, size)
    limits = cuts or quantile_cuts(tasks, bands)
    easiest = min(one.difficulty for one in tasks)
    end = next((cut for cut in limits if easiest <= cut), float("inf"))
    assert len(picked) == size and all(one.difficulty <= end for one in picked)
    if not cuts:  # A band of equal size: no more than its share of the tasks is easier than the hardest picked.
        hardest = max(one.difficulty for one in picked)
        assert sum(one.difficulty < hardest for one in tasks) < -(-len(tasks) // bands)


@pytest.mark.property(27)
@settings(deadline=None, max_examples=tries(200))
@given(
    tasks,
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), max_size=25),
    st.floats(0, 0.99),
    st.integers(1, 8),
    st.integers(1, 5),
)
def test_the_band_never_falls_and_rises_only_past_the_threshold(tasks, successes, threshold, window, bands):
    curriculum = Staged(tasks, 0, threshold=threshold, window=window, bands=bands)
    rows: list[tuple[int, int]] = []
    for number, solved in enumerate(successes):
        before = curriculum.band
        seen = step(curriculum, 3 * number, 3, solved)
        rows += [(one.successes, one.samples) for one in seen if curriculum._band_of[one.task] == before]
        last = rows[-window:]
        rate = sum(solved for solved, _ in last) / sum(samples for _, samples in last) if last else 0.0
        more = before + 1 < len(curriculum._bands)
        assert curriculum.band == before + (more and len(last) == window and rate > threshold)
        if curriculum.band != before:
            rows = []


def climbed(**given) -> Staged:
    """In its last band."""
    curriculum = Staged(SPREAD, 0, bands=4, window=2, threshold=0.5, **given)
    while curriculum.band < 3:
        step(curriculum, 0, 4, [4] * 4)
    return curriculum


def test_it_goes_back_only_where_an_override_says_so():
    saved = json.loads(json.dumps(climbed().state_dict()))
    same, back = Staged(SPREAD, 0, window=2, threshold=0.5), Staged(SPREAD, 0, window=2, threshold=0.5, override=1)
    same.load_state_dict(saved)
    back.load_state_dict(saved)
    assert (same.band, back.band) == (3, 1)
    step(back, 0, 1, [4])
    assert back.band == 1, "its window is empty again"
    while back.band < 2:
        step(back, 0, 4, [4] * 4)
    again = Staged(SPREAD, 0, window=2, threshold=0.5, override=1)
    again.load_state_dict(json.loads(json.dumps(back.state_dict())))
    assert again.band == 2, "an override that was carried out is not carried out again"


def test_a_run_may_start_in_another_band_and_none_that_is_not_there():
    assert Staged(SPREAD, 0, override=2).band == 2
    with pytest.raises(InputError, match="no such band"):
        Staged(tasks_of([1.0, 1.0, 2.0]), 0, bands=3, override=2)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5])
def test_every_band_keeps_its_share_of_earlier_ones(share):
    curriculum = Staged(SPREAD, 0, bands=2, earlier=share, override=1)
    picked = []
    for number in range(40):
        picked += curriculum.pick(5 * number, 5)
        curriculum.observe([])
    assert sum(one.difficulty < 0.5 for one in picked) == 200 * share


def test_no_verdict_and_foreign_tasks_count_as_nothing():
    curriculum = Staged(SPREAD, 0, window=1, threshold=0.5)
    curriculum.observe([Observation("task0", 0, 0, False), Observation("gone", 4, 4, False)])
    assert curriculum.band == 0 and "success_band_0" not in curriculum.metrics()
    curriculum.observe([Observation("task0", 3, 4, True)])
    assert curriculum.metrics() == {"band": 1.0, "pool": 0.5, "success_band_0": 0.75}


def test_tasks_of_equal_difficulty_share_a_band():
    many = tasks_of([1.0] * 6 + [2.0] * 2)
    assert [len(band) for band in in_bands(many, quantile_cuts(many, 4)) if band] == [6, 2]
    assert [len(band) for band in in_bands(SPREAD, quantile_cuts(SPREAD, 4))] == [5, 5, 5, 5]


def bands_of(curriculum: Manual, steps: int) -> list[int]:
    found = []
    for step in range(steps):
        curriculum.begin(step)
        found.append(curriculum.band)
        assert all(curriculum._band_of[one.id] <= found[-1] for one in curriculum.pick(8 * step, 8))
        curriculum.observe([])
    return found


def test_bands_open_after_their_steps():
    assert bands_of(Manual(SPREAD, 0, cuts=[0.2, 0.6], steps=[2, 5]), 7) == [0, 0, 1, 1, 1, 2, 2]
    assert bands_of(Manual(SPREAD, 0, steps=[1]), 3) == [0, 1, 1]


def test_an_override_holds_its_band_and_without_it_the_steps_count_again():
    held = Manual(SPREAD, 0, steps=[2, 5], override=1)
    assert bands_of(held, 7) == [1] * 7
    resumed = Manual(SPREAD, 0, steps=[2, 5])
    resumed.load_state_dict(held.state_dict())
    resumed.begin(6)
    assert resumed.band == 2


def test_a_band_without_tasks_is_refused():
    with pytest.raises(InputError, match="band 1 has no task"):
        Manual(SPREAD, 0, cuts=[0.5, 0.51], steps=[2, 5])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs its step"),
        (["curriculum.cuts=[0.1,0.2]", "curriculum.steps=[3]"], "needs its step"),
        (["curriculum.steps=[3,3]"], "must rise"),
        (["curriculum.cuts=[0.2,0.1]", "curriculum.steps=[3,4]"], "must rise"),
        (["curriculum.steps=[3]", "curriculum.override=2"], "no such band"),
    ],
)
def test_what_cannot_work_is_refused_with_the_command_line(words, said):
    with pytest.raises(InputError, match=said):
        compose(["+stage=grpo", "curriculum=manual", *words])
