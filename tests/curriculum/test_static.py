"""Static curricula: every task equally often, from easy to hard, and sources in fixed shares."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.curriculum.base import Mixed, Observation, Ordered, Uniform
from rlvr_exp.curriculum.difficulty_bands import Manual, Staged
from rlvr_exp.curriculum.success_rate import Band, Families, Learnability

names = st.integers(1, 20).map(lambda count: [f"task{index}" for index in range(count)])


@given(names, st.integers(1, 7), st.integers(0, 3))
def test_after_any_number_of_steps_counts_differ_by_at_most_one(tasks, count, seed):
    curriculum = Uniform(tasks, seed)
    seen = Counter(dict.fromkeys(tasks, 0))
    for step in range(12):
        seen.update(curriculum.pick(step * count, count))
        assert max(seen.values()) - min(seen.values()) <= 1


@given(names, st.integers(1, 7))
def test_a_place_holds_the_same_task_however_it_is_come_by(tasks, count):
    walked = Uniform(tasks, 0)
    one_by_one = [task for place in range(9 * count) for task in walked.pick(place, 1)]
    again = [Uniform(tasks, 0).pick(step * count, count) for step in reversed(range(9))][::-1]
    assert [task for picked in again for task in picked] == one_by_one


def test_seeds_and_epochs_give_different_orders():
    tasks = list(range(50))
    first = Uniform(tasks, 0)
    assert first.pick(0, 50) != Uniform(tasks, 1).pick(0, 50)
    assert first.pick(0, 50) != first.pick(50, 50)


tasks = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(
    lambda scores: [SimpleNamespace(id=f"task{index}", difficulty=score) for index, score in enumerate(scores)]
)


@given(tasks, st.integers(1, 5))
def test_one_time_through_is_every_task_from_easy_to_hard(tasks, count):
    curriculum = Ordered(tasks, seed=0)
    once = curriculum.pick(0, len(tasks))
    assert sorted(task.id for task in once) == sorted(task.id for task in tasks)
    assert once == curriculum.pick(len(tasks), len(tasks))
    walked = Counter(task.id for step in range(len(tasks)) for task in curriculum.pick(step * count, count))
    assert set(walked.values()) == {count}


@pytest.mark.property(3)
@given(tasks, st.integers(1, 9), st.integers(1, 30))
def test_in_any_batch_difficulty_never_falls(tasks, size, steps):
    curriculum = Ordered(tasks, seed=0)
    for step in range(steps):
        scores = [task.difficulty for task in curriculum.pick(step * size, size)]
        assert scores == sorted(scores)


SHARES = {"a": 0.6, "b": 0.4}
KINDS = {
    "uniform": (Uniform, {}),
    "ordered": (Ordered, {}),
    "staged": (Staged, {"bands": 3, "window": 4}),
    "manual": (Manual, {"steps": [2, 4]}),
    "learnability": (Learnability, {}),
    "families": (Families, {}),
    "band": (Band, {"size": 4, "least_samples": 2}),
}


def named(source: str, count: int) -> list:
    return [
        SimpleNamespace(id=f"{source}{number}", difficulty=number / count, family=f"family{number % 2}")
        for number in range(count)
    ]


def mixed(kind=Uniform, counts=(7, 5), **options) -> Mixed:
    tasks = {source: named(source, count) for source, count in zip(SHARES, counts, strict=True)}
    sources = {task.id: source for source, own in tasks.items() for task in own}
    return Mixed({source: kind(tasks=own, seed=0, **options) for source, own in tasks.items()}, SHARES, sources)


@given(counts=st.lists(st.integers(1, 6), min_size=4, max_size=12))
def test_sources_keep_their_shares_and_tasks_their_passes(counts) -> None:
    curriculum, picked = mixed(), []
    for count in counts:
        picked += [task.id for task in curriculum.pick(len(picked), count)]
        sources = Counter(name[0] for name in picked)
        assert all(abs(sources[source] - share * len(picked)) < 1 + 1e-9 for source, share in SHARES.items())
        assert curriculum.sources(len(picked)) == {"a": sources["a"], "b": sources["b"]}
    for source, size in (("a", 7), ("b", 5)):
        own = [name for name in picked if name[0] == source]
        assert all(len(set(own[at : at + size])) == size for at in range(0, len(own) - size + 1, size))
    again = mixed()
    assert [task.id for task in again.pick(3, len(picked) - 3)] == picked[3:], "a place holds the same task"


def step(curriculum: Mixed, number: int) -> list[str]:
    curriculum.begin(number)
    picked = [task.id for task in curriculum.pick(5 * number, 5)]
    curriculum.observe([Observation(name, len(name) + number + int(name[1:]) % 2, 12, True) for name in picked])
    return picked


@pytest.mark.parametrize("name", KINDS)
def test_every_curriculum_resumes_where_it_was(name: str) -> None:
    kind, options = KINDS[name]
    first, resumed = (mixed(kind, (18, 12), **options) for _ in range(2))
    for number in range(4):
        assert Counter(one[0] for one in step(first, number)) == {"a": 3, "b": 2}
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert resumed.sources(20) == first.sources(20) == {"a": 12, "b": 8}, "known before anything is picked"
    for number in range(4, 9):
        assert step(first, number) == step(resumed, number)
    assert resumed.state_dict() == first.state_dict() and resumed.metrics() == first.metrics()
    if name == "manual":
        assert first.metrics()["a/band"] == first.metrics()["b/band"] == 2, "the step is that of the run"


def test_what_a_source_earned_is_its_curriculums_to_remember() -> None:
    curriculum = mixed(Learnability, (3, 3))
    names = [task.id for task in curriculum.pick(0, 5)]
    curriculum.observe([Observation(name, 1, 2, True) for name in names])
    state = curriculum.state_dict()
    for source in SHARES:
        assert set(state[source]["counts"]) == {name for name in names if name[0] == source}
    with pytest.raises(InputError):
        mixed(Learnability, (3, 3)).load_state_dict({"a": state["a"]})


def test_without_memory_nothing_is_kept() -> None:
    assert mixed().state_dict() == {}
