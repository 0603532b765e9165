"""The order of examples: passes, and fixed shares of sources and of kinds."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.shares import normalized
from rlvr_exp.training.example_order import MixedPasses, Mixture

SIZES = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 7), min_size=1)


def order_of(sizes: dict[str, int], weights: dict[str, float], seed: int = 0) -> tuple[MixedPasses, dict[int, str]]:
    """The order, and the source of each index; the indices of a source lie apart, as those of shuffled examples."""
    indices = {
        source: [place + 100 * number for number in range(size)] for place, (source, size) in enumerate(sizes.items())
    }
    order = MixedPasses(indices, normalized(weights), seed)
    return order, {index: source for source, own in indices.items() for index in own}


@given(data=st.data(), sizes=SIZES, batch=st.integers(1, 9), steps=st.integers(1, 12))
def test_shares_hold_to_within_one_example_and_passes_are_whole(data, sizes, batch: int, steps: int) -> None:
    weights = data.draw(st.fixed_dictionaries({source: st.floats(0.05, 5) for source in sizes}))
    order, source_of = order_of(sizes, weights)
    seen: list[tuple[int, int]] = []
    for step in range(steps):
        seen += order.between(step * batch, (step + 1) * batch)
        counts = Counter(source_of[index] for index, _ in seen)
        for source, share in normalized(weights).items():
            assert abs(counts[source] - share * len(seen)) < 1 + 1e-9
        assert order.sources(len(seen)) == {source: counts[source] for source in sizes}
    for source, size in sizes.items():
        own = [place for place in seen if source_of[place[0]] == source]
        assert [number for _, number in own] == [place // size for place in range(len(own))]
        for start in range(0, len(own) - size + 1, size):
            assert len({index for index, _ in own[start : start + size]}) == size, "none twice in a pass"


@given(sizes=SIZES, first=st.integers(0, 60), count=st.integers(0, 20))
def test_a_step_depends_on_the_key_alone(sizes, first: int, count: int) -> None:
    weights = {source: 1.0 + number for number, source in enumerate(sizes)}
    whole = order_of(sizes, weights)[0].between(0, first + count)
    assert order_of(sizes, weights)[0].between(first, first + count) == whole[first:]


def test_another_key_is_another_order() -> None:
    first, second = (order_of({"a": 20, "b": 20}, {"a": 1, "b": 1}, seed)[0] for seed in (0, 1))
    assert first.between(0, 40) != second.between(0, 40)
    places = first.between(0, 40)
    one, other = ([index // 100 for index, _ in places if index % 100 == place] for place in (0, 1))
    assert one != other, "sources of one size are shuffled apart"


class Numbers:
    def __init__(self, count: int):
        self._count = count

    def __len__(self) -> int:
        return self._count

    def variant(self, index: int, rng: Random) -> tuple[int, float]:
        return index, rng.random()


KIND_SIZES = st.fixed_dictionaries({kind: st.integers(1, 9) for kind in ("gold", "made", "refined")})
SHARES = st.fixed_dictionaries({"made": st.sampled_from([0.0, 0.1, 0.25, 0.5]), "refined": st.sampled_from([0.0, 0.3])})


@given(sizes=KIND_SIZES, shares=SHARES, batch=st.integers(1, 12), steps=st.integers(1, 9))
def test_shares_hold_up_to_one_example_and_passes_are_whole(sizes, shares, batch: int, steps: int) -> None:
    mixture = Mixture({kind: Numbers(size) for kind, size in sizes.items()}, shares, "gold", batch, 0)
    batches = [mixture.places(step) for step in range(steps)]
    assert all(len(one) == batch for one in batches)
    places = [place for one in batches for place in one]
    counts = Counter(kind for kind, *_ in places)
    for kind, share in shares.items():
        assert abs(counts[kind] - share * batch * steps) <= 1
    for kind, size in sizes.items():
        seen = [index for name, index, _ in places if name == kind]
        for start in range(0, len(seen) - size + 1, size):
            assert sorted(seen[start : start + size]) == list(range(size))


def test_the_rest_is_alone_from_a_step_on() -> None:
    pools = {"gold": Numbers(7), "made": Numbers(5)}
    one, other = (Mixture(pools, {"made": 0.5}, "gold", 4, 0, alone=alone) for alone in (3, None))
    assert [one.places(step) for step in range(3)] == [other.places(step) for step in range(3)]
    places = [place for step in range(6) for place in one.places(step)]
    assert {kind for kind, *_ in places[12:]} == {"gold"} and len(places) == 24
    golds = [index for kind, index, _ in places if kind == "gold"]
    assert sorted(golds[:7]) == list(range(7)) == sorted(golds[7:14]), "passes go on"


def test_a_kind_without_examples_leaves_its_share_to_the_rest() -> None:
    mixture = Mixture({"gold": Numbers(5)}, {"made": 0.5}, "gold", 8, 0)
    assert {kind for kind, *_ in mixture.places(3)} == {"gold"}


def test_an_example_has_another_form_on_each_pass_by_the_key_alone() -> None:
    forms = [
        Mixture({"gold": Numbers(2)}, {}, "gold", 2, seed).example("gold", 1, number)
        for seed in (0, 1)
        for number in (0, 1)
    ]
    assert len(set(forms)) == 4
    assert forms[0] == Mixture({"gold": Numbers(2)}, {}, "gold", 2, 0).example("gold", 1, 0)
