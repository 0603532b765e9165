"""Bands and their steps by hand."""

import pytest
from pretend import SPREAD

from rlvr_exp.config.compose import compose
from rlvr_exp.core.errors import InputError
from rlvr_exp.curriculum.manual import Manual


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
