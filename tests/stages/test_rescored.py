"""Old against new verdicts: every completion is counted once, and rates are over tasks."""

from dataclasses import replace

from completions import completion
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_exp.records.rollout_files import RolloutRow
from rlvr_exp.stages.rescore import SCORE, VERDICT, Rescored, change, label
from rlvr_exp.verifiers.base import Verdict

PASSED, WRONG, CHEAT, SILENT = (
    Verdict("passed", None, None, 3, 3),
    Verdict("failed", "wrong_answer", None, 1, 3),
    Verdict("rejected", None, "sys-exit", 0, 3),
    Verdict("no_verdict", None, None, 0, 0),
)
VERDICTS = st.sampled_from([PASSED, WRONG, CHEAT, SILENT])
ROW = st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.integers(0, 1), VERDICTS, VERDICTS)
ROWS = st.lists(ROW, max_size=40)


def add(told, step, task, waited, old, new):
    told.add(RolloutRow(replace(completion(task), verdict=old), step, group=0, prompt="", waited=waited), new)


@settings(deadline=None)
@given(ROWS)
def test_the_table_holds_every_completion_once(rows):
    told = Rescored()
    for row in rows:
        add(told, *row)
    fresh = [row for row in rows if not row[2]]
    assert told.count == sum(told.table.values()) == len(fresh)
    assert told.changed == sum(label(old) != label(new) for *_, old, new in fresh)
    metrics = told.metrics()
    gained = sum(new == PASSED != old for *_, old, new in fresh)
    assert metrics["gained"] == gained and metrics["agreement"] == 1 - told.changed / (len(fresh) or 1)
    for rates in (told.rates(), *told.steps().values()):
        assert all(0 <= rate.low <= rate.value <= rate.high <= 1 for rate in rates.values())
    text = told.text()
    assert all(label(old) in text and label(new) in text for *_, old, new in fresh)


def test_rates_are_means_over_tasks_without_what_has_no_verdict():
    told = Rescored()
    for task, old, new in (("a", PASSED, WRONG), ("a", WRONG, WRONG), ("a", SILENT, PASSED), ("b", PASSED, SILENT)):
        add(told, 1, task, 0, old, new)
    rates = told.steps()[1]
    assert rates["old"].value == (0.5 + 1) / 2 and rates["old"].n == 2
    assert rates["new"].value == 1 / 3 and rates["new"].n == 1


def test_a_change_is_of_the_verdict_or_of_the_score():
    assert change(PASSED, WRONG) == VERDICT and change(WRONG, WRONG) == ""
    assert change(WRONG, Verdict("failed", "wrong_answer", None, 2, 3)) == SCORE
    assert change(CHEAT, Verdict("rejected", None, "other-rule", 0, 3)) == VERDICT
