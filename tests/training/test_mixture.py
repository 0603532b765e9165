"""Batches of several kinds: shares hold over all steps, and each kind is seen in passes."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.training.mixture import Mixture


class Numbers:
    def __init__(self, count: int):
        self._count = count

    def __len__(self) -> int:
        return self._count

    def variant(self, index: int, rng: Random) -> tuple[int, float]:
        return index, rng.random()


SIZES = st.fixed_dictionaries({kind: st.integers(1, 9) for kind in ("gold", "made", "refined")})
SHARES = st.fixed_dictionaries({"made": st.sampled_from([0.0, 0.1, 0.25, 0.5]), "refined": st.sampled_from([0.0, 0.3])})


@given(sizes=SIZES, shares=SHARES, batch=st.integers(1, 12), steps=st.integers(1, 9))
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
