"""Examples of several sources in fixed shares, each source in passes of its own."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.shares import normalized
from rlvr_exp.training.passes import MixedPasses

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
