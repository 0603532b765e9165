"""Normalisation: order is kept, the scale is common, state is restored."""

import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verified_samples import failed, passed, unknown

from rlvr_exp.core.errors import InputError
from rlvr_exp.rewards.compose import Identity, PerTask, Reward, RunningScale
from rlvr_exp.rewards.terms import AllPassed

TOTALS = st.lists(st.floats(-5, 5).map(lambda value: round(value, 6)), min_size=1, max_size=30)


@given(TOTALS, TOTALS)
def test_order_and_ties_are_kept(before, batch):
    scale = RunningScale()
    scale(before)
    scaled = scale(batch)
    for i, one in enumerate(batch):
        for j, other in enumerate(batch):
            assert (one < other) == (scaled[i] < scaled[j])


@given(TOTALS.filter(lambda totals: statistics.pstdev(totals) > 1e-3), st.floats(0.1, 100), st.floats(-10, 10))
def test_tasks_paid_on_other_scales_come_out_alike(totals, factor, shift):
    plain, stretched = RunningScale()(totals), RunningScale()([factor * total + shift for total in totals])
    assert stretched == pytest.approx(plain, abs=1e-6)
    assert statistics.fmean(plain) == pytest.approx(0, abs=1e-6) and statistics.pstdev(plain) == pytest.approx(
        1, abs=1e-6
    )


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


SCALED = st.tuples(TOTALS, st.floats(0.1, 100), st.floats(-10, 10))


@pytest.mark.property(17)
@given(st.lists(SCALED, min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_tasks_of_any_mixture_agree_after_scaling_by_task_and_keep_their_order(mixture, random):
    rows = [(f"t{n}", factor * one + shift) for n, (totals, factor, shift) in enumerate(mixture) for one in totals]
    random.shuffle(rows)
    scaled = PerTask()([total for _, total in rows], [task for task, _ in rows])
    for name in {task for task, _ in rows}:
        own = [(total, value) for (task, total), value in zip(rows, scaled, strict=True) if task == name]
        given_totals, values = zip(*own, strict=True)
        assert statistics.fmean(values) == pytest.approx(0, abs=1e-6)
        if statistics.pstdev(given_totals) > 1e-3:
            assert statistics.pstdev(values) == pytest.approx(1, abs=1e-6)
        ranked = [value for _, value in sorted(own)]
        assert ranked == sorted(ranked)


def test_a_reward_hands_the_normaliser_the_task_of_each_total_that_has_one():
    small, large = replace(passed().task, id="small"), replace(passed().task, id="large")
    answers = [replace(one, task=task) for task in (small, large) for one in (passed(), failed(), unknown())]
    paid = Reward({"ten": AllPassed(10.0)}, PerTask())(answers)
    assert [each.total for each in paid] == [1.0, -1.0, None] * 2
    one_each = Reward({"ten": AllPassed(10.0)}, PerTask())([answers[0], answers[4]])
    assert [each.total for each in one_each] == [0.0, 0.0]


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
