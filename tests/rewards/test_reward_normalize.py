"""Normalisation: order is kept, the scale is common, state is restored."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.core.errors import InputError
from rlvr_exp.rewards.normalize import Identity, RunningScale

TOTALS = st.lists(st.floats(-5, 5).map(lambda value: round(value, 6)), min_size=1, max_size=30)


@pytest.mark.property(17)
@given(TOTALS, TOTALS)
def test_order_and_ties_are_kept(before, batch):
    scale = RunningScale()
    scale(before)
    scaled = scale(batch)
    for i, one in enumerate(batch):
        for j, other in enumerate(batch):
            assert (one < other) == (scaled[i] < scaled[j])


@pytest.mark.property(17)
@given(TOTALS.filter(lambda totals: statistics.pstdev(totals) > 1e-3), st.floats(0.1, 100), st.floats(-10, 10))
def test_tasks_paid_on_other_scales_come_out_alike(totals, factor, shift):
    plain, stretched = RunningScale()(totals), RunningScale()([factor * total + shift for total in totals])
    assert stretched == pytest.approx(plain, abs=1e-6)
    assert statistics.fmean(plain) == pytest.approx(0, abs=1e-6) and statistics.pstdev(plain) == pytest.approx(
        1, abs=1e-6
    )


@pytest.mark.property(17)
@given(st.lists(TOTALS, min_size=1, max_size=6))
def test_statistics_are_those_of_everything_seen(batches):
    scale = RunningScale()
    for batch in batches:
        scale(batch)
    everything = [total for batch in batches for total in batch]
    assert scale.metrics()["mean"] == pytest.approx(statistics.fmean(everything), abs=1e-9)
    spread = statistics.pstdev(everything)
    assert scale.metrics()["scale"] == pytest.approx(
        max(spread, 1e-4) if spread > 1e-9 else scale.metrics()["scale"], abs=1e-6
    )


@given(TOTALS, TOTALS)
def test_a_restored_scale_continues_exactly(before, after):
    one, other = RunningScale(), RunningScale()
    one(before)
    other.load_state_dict(one.state_dict())
    assert one(after) == other(after) and one.state_dict() == other.state_dict()


def test_equal_rewards_stay_finite():
    assert RunningScale()([0.5] * 4) == [0.0] * 4


@pytest.mark.parametrize("normalizer", [Identity(), RunningScale()], ids=["identity", "running_scale"])
def test_states_with_other_keys_are_refused(normalizer):
    for state in ({**normalizer.state_dict(), "more": 1.0}, {"count": 1.0}):
        with pytest.raises(InputError, match="other keys"):
            normalizer.load_state_dict(state)


def test_identity_changes_nothing():
    identity = Identity()
    assert identity([1.0, -2.0]) == [1.0, -2.0]
    identity.load_state_dict(identity.state_dict())
    assert identity.metrics() == {}
