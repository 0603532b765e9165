"""Samples next to the metrics in every viewer: which ones, and that they are read back with the run's other data."""

from dataclasses import replace

from completions import completion
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.records.tracking import Files, Tracker
from rlvr_exp.records.tracking_samples import COLUMNS, MOST_TEXT, chosen, table

COMPLETION = completion("rotate-1", "failed", "wrong_answer", log="case 2 | expected\n<b>1</b>")
ROW = RolloutRow(COMPLETION, step=1, group=0, prompt="1 2", reward=0.4, advantage=-0.5)
REWARDS = st.lists(st.none() | st.floats(-1, 1), min_size=1, max_size=12)


def rows(rewards):
    return [
        replace(ROW, completion=replace(COMPLETION, sample=place), reward=reward)
        for place, reward in enumerate(rewards)
    ]


@settings(deadline=None)
@given(REWARDS, st.integers(1, 8), st.integers(0, 9))
def test_the_best_and_the_worst_come_first_and_none_comes_twice(rewards, count, seed):
    found = chosen(rows(rewards), count, seed)
    assert found == chosen(rows(rewards)[::-1], count, seed), "whatever their order"
    assert len(found) == len({row.completion.sample for row in found}) == min(count, len(rewards))
    paid = [reward for reward in rewards if reward is not None]
    if paid and count >= 2:
        shown = {row.reward for row in found[:2]}
        assert {max(paid), min(paid)} <= shown


def test_long_texts_are_cut_with_their_rest_counted():
    (cells,) = table([replace(ROW, completion=replace(COMPLETION, text="x" * (MOST_TEXT + 5)))], 1, 0)
    shown = dict(zip(COLUMNS, cells, strict=True))
    assert shown["completion"].endswith("x [... 5 characters more]") and shown["bucket"] == "wrong_answer"


def test_samples_of_a_step_that_was_not_logged_are_not_shown(tmp_path):
    class Taken(Files):
        samples, tables = 2, []

        def table(self, step, rows):
            self.tables.append((step, len(rows)))

    with Tracker(tmp_path, Taken()) as tracker:
        tracker.log(1, {"loss": 1.0})
        tracker.samples(rows([0.1, 0.2, 0.3]), 0)
        tracker.samples([replace(ROW, step=2)], 0)
        tracker.samples([], 0)
    assert Taken.tables == [(1, 2)]
