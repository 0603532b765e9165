"""Kinds in fixed shares, in one fixed order."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.shares import Quota, normalized

SHARES = st.dictionaries(st.sampled_from("abcd"), st.floats(0.01, 10), min_size=1).map(normalized)


@given(shares=SHARES, length=st.integers(1, 60))
def test_every_kind_has_its_share_of_any_beginning_to_within_its_neighbours(shares, length: int) -> None:
    _, kinds = Quota(shares).between(0, length)
    for number in range(1, length + 1):
        counts = Counter(kinds[:number])
        assert all(abs(counts[kind] - share * number) < len(shares) for kind, share in shares.items())


@given(shares=SHARES, cuts=st.lists(st.integers(0, 40), min_size=2, max_size=2).map(sorted))
def test_the_order_is_one_wherever_a_look_begins(shares, cuts) -> None:
    first, last = cuts
    before, kinds = Quota(shares).between(first, last)
    _, whole = Quota(shares).between(0, last)
    assert kinds == whole[first:] and before == {kind: whole[:first].count(kind) for kind in shares}
    looked = Quota(shares)
    looked.between(first, last)
    assert looked.between(0, last)[1] == whole, "also back"


def test_shares_need_not_add_up() -> None:
    assert normalized({"a": 3, "b": 1}) == {"a": 0.75, "b": 0.25}
