"""Seeds pooled: a task counts once however many seeds measured it, and arms are paired by task."""

from statistics import fmean

import pytest
from completions import completion

from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.arms import arms
from rlvr_exp.evaluation.paired import difference
from rlvr_exp.evaluation.saved import save
from rlvr_exp.evaluation.tables import arms_table, table
from rlvr_exp.records.rollout_files import EvalSample

METRIC = "pass_at_1_greedy"


def measured(run, before, after, tasks=range(10), silent=()):
    for when, passing in (("before", before), ("after", after)):
        if passing is not None:
            outcomes = {i: "no_verdict" if i in silent else "passed" if i in passing else "rejected" for i in tasks}
            save(run, when, [EvalSample(completion(f"t{i}", one), "greedy", "p") for i, one in outcomes.items()])
    return run


def values(*seeds):
    return {f"t{i}": fmean(i in passing for passing in seeds) for i in range(10)}


@pytest.fixture
def found(tmp_path):
    runs = [
        measured(tmp_path / "a0", range(2), range(4)),
        measured(tmp_path / "b0", range(2), range(6)),
        measured(tmp_path / "a1", range(3), range(3, 8)),
    ]
    return arms(["a", "b", "a"], [0, 0, 1], runs)


def test_a_task_counts_once_and_its_value_is_the_mean_over_seeds(found):
    first, second = found
    assert (first.name, first.runs, first.seeds) == ("a", (0, 2), (0, 1)) and second.runs == (1,)
    rate = first.rates[f"after/{METRIC}"]
    assert (rate["value"], rate["low"], rate["high"]) == mean_interval(list(values(range(4), range(3, 8)).values()))
    assert rate["n"] == 10 and rate["of_seeds"] == [0.4, 0.5]


def test_differences_are_paired_by_task(found):
    first, second = found
    before, after = values(range(2), range(3)), values(range(4), range(3, 8))
    assert first.change[METRIC] == difference(before, after).to_dict() and first.against_first == {}
    assert second.against_first[METRIC] == difference(after, values(range(6))).to_dict()


def test_other_tasks_are_neither_pooled_nor_paired(tmp_path):
    runs = [measured(tmp_path / "0", None, range(3)), measured(tmp_path / "1", None, range(3), range(4))]
    (one,) = arms(["a", "a"], [0, 1], runs)
    assert one.rates == {} == one.change
    assert arms(["a", "b"], [0, 0], runs)[1].against_first == {}


def test_a_task_that_a_seed_could_not_judge_is_left_out_of_all(tmp_path):
    runs = [measured(tmp_path / "0", None, range(3)), measured(tmp_path / "1", None, range(3), silent=[0])]
    (one,) = arms(["a", "a"], [0, 1], runs)
    assert one.rates[f"after/{METRIC}"]["n"] == 9 and one.rates[f"after/{METRIC}"]["of_seeds"] == [2 / 9, 2 / 9]


def test_runs_without_an_evaluation_are_arms_without_rates(tmp_path):
    (one,) = arms(["a", "a"], [0, 1], [tmp_path, tmp_path])
    assert one.rates == {} and one.seeds == (0, 1) and arms([], [], []) == [] and arms_table([one]) == ""


def test_the_table_shows_the_spread_over_seeds_beside_the_interval_over_tasks(found):
    text = arms_table(found)
    assert "seeds 40.0 to 50.0" in text and "| against a/pass_at_1_greedy" in text and "points [" in text
    assert "| a \\| b " in table("t", {"x": [1]}, ["a | b"])
