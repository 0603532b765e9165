"""The order in which imitation sees its examples."""

from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.rollouts import distributed
from rlvr_exp.training.example_order import Passes
from rlvr_exp.training.learner import GoldFeed

EXAMPLES, BATCHES, SEEDS = st.integers(1, 20), st.integers(1, 12), st.integers(0, 9)


def seen(examples: int, batch: int, seed: int, steps: int) -> list[int]:
    """The examples of all steps, one after another."""
    passes = Passes(examples, seed)
    return [index for step in range(steps) for index, _ in passes.between(step * batch, (step + 1) * batch)]


@given(examples=EXAMPLES, batch=BATCHES, seed=SEEDS, steps=st.integers(1, 12))
def test_every_pass_sees_every_example_once(examples: int, batch: int, seed: int, steps: int) -> None:
    order = seen(examples, batch, seed, steps)
    assert len(order) == batch * steps
    for start in range(0, len(order) - examples + 1, examples):
        assert sorted(order[start : start + examples]) == list(range(examples))


@given(examples=EXAMPLES, batch=BATCHES, seed=SEEDS, step=st.integers(0, 30))
def test_a_step_depends_on_the_seed_alone_and_not_on_the_steps_before(examples, batch, seed, step) -> None:
    found = Passes(examples, seed).between(step * batch, (step + 1) * batch)
    assert [index for index, _ in found] == seen(examples, batch, seed, step + 1)[step * batch :]
    assert [number for _, number in found] == [place // examples for place in range(step * batch, (step + 1) * batch)]


def test_another_seed_and_another_pass_are_other_orders() -> None:
    passes = seen(40, 40, 0, 2)
    assert passes[:40] != passes[40:] and passes != seen(40, 40, 1, 2)


class Forms:
    """Examples that tell which form of them was taken."""

    def __init__(self, count: int = 3):
        self._count = count

    def __len__(self) -> int:
        return self._count

    def variant(self, index: int, rng: Random) -> tuple[int, float]:
        return index, rng.random()


def feed_of(examples: Forms, batch: int, seed: int) -> GoldFeed:
    return GoldFeed(examples, Passes(len(examples), seed), batch, seed)


@given(examples=EXAMPLES, shares=st.integers(1, 4), each=st.integers(1, 4), seed=SEEDS, step=st.integers(0, 9))
def test_the_ranks_share_a_batch_without_overlap(examples: int, shares: int, each: int, seed: int, step: int) -> None:
    feed = feed_of(Forms(examples), shares * each, seed)
    whole = feed.collect(step)
    with mock.patch.object(distributed, "ranks", lambda: shares):
        found = []
        for rank in range(shares):
            with mock.patch.object(distributed, "rank", lambda rank=rank: rank):
                found.append(feed.collect(step))
    assert [len(share) for share in found] == [each] * shares
    assert distributed.interleave(found) == whole


def test_every_pass_sees_an_example_in_another_form_that_depends_on_the_seed_alone() -> None:
    forms = [one for step in range(4) for one in feed_of(Forms(), 3, 0).collect(step)]
    assert len(set(forms)) == len(forms)
    assert forms == [one for step in range(4) for one in feed_of(Forms(), 3, 0).collect(step)]
    assert set(forms).isdisjoint(feed_of(Forms(), 3, 1).collect(0))


@pytest.mark.parametrize("step", [0, 5])
def test_nothing_of_a_step_is_a_rollout(step: int) -> None:
    feed = feed_of(Forms(), 2, 0)
    feed.collect(step)
    feed.write({})
    assert not feed.rows and feed.metrics() == {}
