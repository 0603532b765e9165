"""Kinds in fixed shares, in one fixed order."""

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from rlvr_exp.core.shares import Quota, normalized

SHARES = st.dictionaries(st.sampled_from("abcdefghij"), st.floats(0.01, 10), min_size=1).map(normalized)


def kinds(shares: dict[str, float], first: int, last: int) -> list[str]:
    return [kind for kind, _ in numbered(Quota(shares), first, last)]


def numbered(quota: Quota, first: int, last: int) -> list[tuple[str, int]]:
    """Each thing as its kind and its place among those of the kind."""
    return quota.between(first, last, lambda kind, begin, end: [(kind, place) for place in range(begin, end)])


@given(shares=SHARES, length=st.integers(1, 200))
@example(shares=normalized({"a": 50, "b": 1, "c": 1, "d": 1, "e": 7, "f": 7, "g": 13, "h": 13}), length=200)
def test_every_kind_has_its_share_of_any_beginning_to_within_one(shares, length: int) -> None:
    found = kinds(shares, 0, length)
    for number in range(1, length + 1):
        counts = Counter(found[:number])
        assert all(abs(counts[kind] - share * number) < 1 + 1e-9 for kind, share in shares.items())


@given(shares=SHARES, cuts=st.lists(st.integers(0, 40), min_size=2, max_size=2).map(sorted))
def test_what_is_at_a_place_depends_on_no_look_before(shares, cuts) -> None:
    first, last = cuts
    quota = Quota(shares)
    part, whole = numbered(quota, first, last), numbered(Quota(shares), 0, last)
    assert part == whole[first:]
    assert numbered(quota, 0, last) == whole, "also back"
    assert quota.before(first) == {kind: sum(one == kind for one, _ in whole[:first]) for kind in shares}


def test_shares_need_not_add_up_and_their_order_is_nothing() -> None:
    assert normalized({"a": 3, "b": 1}) == {"a": 0.75, "b": 0.25}
    one, other = normalized({"a": 0.1, "b": 0.1, "c": 0.3}), normalized({"c": 0.3, "b": 0.1, "a": 0.1})
    assert kinds(one, 0, 50) == kinds(other, 0, 50)
