"""Prompts of several sources in fixed shares, each source by a curriculum of its own."""

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.curriculum.base import Observation
from rlvr_exp.curriculum.learnability import Learnability
from rlvr_exp.curriculum.mixed import Mixed
from rlvr_exp.curriculum.uniform import Uniform

SHARES = {"a": 0.6, "b": 0.4}


def named(source: str, count: int) -> list:
    return [SimpleNamespace(id=f"{source}{number}", difficulty=0.5) for number in range(count)]


def mixed(kind=Uniform, counts=(7, 5), shares=SHARES) -> Mixed:
    tasks = {source: named(source, count) for source, count in zip(shares, counts, strict=True)}
    sources = {task.id: source for source, own in tasks.items() for task in own}
    return Mixed({source: kind(tasks=own, seed=0) for source, own in tasks.items()}, shares, sources)


@given(counts=st.lists(st.integers(1, 6), min_size=4, max_size=12))
def test_sources_keep_their_shares_and_tasks_their_passes(counts) -> None:
    curriculum, picked = mixed(), []
    for count in counts:
        picked += [task.id for task in curriculum.pick(len(picked), count)]
    sources = Counter(name[0] for name in picked)
    assert all(abs(sources[source] - share * len(picked)) < 2 for source, share in SHARES.items())
    for source, size in (("a", 7), ("b", 5)):
        own = [name for name in picked if name[0] == source]
        assert all(len(set(own[at : at + size])) == size for at in range(0, len(own) - size + 1, size))
    assert curriculum.metrics()["a/prompts"] == sources["a"]
    again = mixed()
    assert [task.id for task in again.pick(3, len(picked) - 3)] == picked[3:], "a place holds the same task"


def test_what_a_source_earned_is_its_curriculums_to_remember() -> None:
    curriculum, other = mixed(Learnability, (3, 3)), mixed(Learnability, (3, 3))
    first = curriculum.pick(0, 5)
    curriculum.observe([Observation(task.id, 1, 2, True) for task in first])
    state = curriculum.state_dict()
    assert set(state) == {"a", "b"} and state != other.state_dict()
    other.load_state_dict(state)
    assert other.state_dict() == state and other.pick(5, 5) == curriculum.pick(5, 5)
    with pytest.raises(InputError):
        other.load_state_dict({"a": state["a"]})


def test_without_memory_nothing_is_kept() -> None:
    assert mixed().state_dict() == {}
