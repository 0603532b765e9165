"""Arms: intervals over seeds and tasks, differences paired by both, corrected for the number of arms, in words."""

import pytest
from completions import completion

from rlvr_exp.core.crossed import crossed_iqm, crossed_mean, crossed_median, crossed_ratio, holm
from rlvr_exp.core.statistics import mean_interval
from rlvr_exp.evaluation.arms import arms, arms_table, same_seeds, table
from rlvr_exp.evaluation.paired import difference_over_seeds
from rlvr_exp.evaluation.saved import save
from rlvr_exp.records.rollout_files import EvalSample

METRIC = "pass_at_1_greedy"


def measured(run, before, after, tasks=range(10), silent=()):
    for when, passing in (("before", before), ("after", after)):
        if passing is not None:
            outcomes = {i: "no_verdict" if i in silent else "passed" if i in passing else "rejected" for i in tasks}
            save(run, when, [EvalSample(completion(f"t{i}", one), "greedy", "p") for i, one in outcomes.items()])
    return run


def rows(*seeds):
    return [[float(i in passing) for i in range(10)] for passing in seeds]


@pytest.fixture
def found(tmp_path):
    runs = [
        measured(tmp_path / "a0", range(2), range(4)),
        measured(tmp_path / "b0", range(2), range(6)),
        measured(tmp_path / "a1", range(3), range(3, 8)),
    ]
    return arms(["a", "b", "a"], [0, 0, 1], runs)


def test_a_task_counts_once_and_the_interval_is_over_seeds_and_tasks(found):
    first, second = found
    assert (first.name, first.runs, first.seeds) == ("a", (0, 2), (0, 1)) and second.runs == (1,)
    rate = first.rates[f"after/{METRIC}"]
    assert (rate["value"], rate["low"], rate["high"]) == crossed_mean(rows(range(4), range(3, 8)))
    assert rate["n"] == 10 and rate["of_seeds"] == [0.4, 0.5]
    assert rate["median"] == crossed_median(rows(range(4), range(3, 8)))._asdict()
    assert rate["iqm"] == crossed_iqm(rows(range(4), range(3, 8)))._asdict()


def test_a_run_that_failed_before_its_last_evaluation_leaves_the_other_seeds_an_arm(tmp_path):
    runs = [
        measured(tmp_path / "a0", range(2), range(4)),
        measured(tmp_path / "a1", range(2), None),
        tmp_path / "a2",
        measured(tmp_path / "b0", range(2), range(6)),
        measured(tmp_path / "b1", range(2), range(9)),
    ]
    first, second = arms([*"aaabb"], [0, 1, 2, 0, 1], runs)
    assert (first.runs, first.seeds, second.seeds) == ((0, 1, 2), (0,), (0, 1))
    assert first.rates[f"after/{METRIC}"]["of_seeds"] == [0.4]
    assert first.change[METRIC]["value"] == pytest.approx(0.2)
    against = second.against_first[METRIC]
    assert against["seeds"] == 1 and against["value"] == pytest.approx(0.2), "the seeds that both have"


def test_differences_are_paired_by_seed_and_task(found):
    first, second = found
    before, after = rows(range(2), range(3)), rows(range(4), range(3, 8))
    change = difference_over_seeds(before, after).to_dict() | {"ratio": crossed_ratio(before, after)._asdict()}
    assert first.change[METRIC] == change and first.against_first == {}
    against = difference_over_seeds(rows(range(4)), rows(range(6))).to_dict()
    against["ratio"] = crossed_ratio(rows(range(4)), rows(range(6)))._asdict()
    assert against["ratio"]["value"] == pytest.approx(1.5)
    assert second.against_first[METRIC] == {**against, "p_holm": against["p"], "arms": 1}
    assert against["seeds"] == 1 and against["value"] == pytest.approx(0.2), (
        "the other seed of the first arm has no pair"
    )


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        ([0, 1, 2], [2, 0], [(2, 0), (0, 1)]),
        ([0, 1], [5, 6, 7], [(0, 0), (1, 1)]),
        ([None], [None, None], [(0, 0)]),
        (["0", "0"], ["0", "0"], [(0, 0), (1, 1)]),
    ],
)
def test_runs_are_compared_by_equal_seeds_and_else_in_their_order(first, second, pairs):
    assert same_seeds(first, second) == pairs


def test_a_seed_that_differs_from_the_others_widens_the_interval(tmp_path):
    steady = [measured(tmp_path / f"s{i}", None, range(20), range(40)) for i in range(3)]
    spread = [measured(tmp_path / f"w{i}", None, range(10 * i, 10 * i + 20), range(40)) for i in range(3)]
    narrow, wide = arms(["s"] * 3 + ["w"] * 3, [0, 1, 2] * 2, [*steady, *spread])
    narrow, wide = ((one["low"], one["high"]) for one in (arm.rates[f"after/{METRIC}"] for arm in (narrow, wide)))
    assert narrow[1] - narrow[0] == pytest.approx(mean_interval([1.0] * 20 + [0.0] * 20).high * 2 - 1.0), (
        "seeds that agree are as good as one"
    )
    assert wide[0] < wide[1]


def test_where_several_arms_are_compared_holm_corrects_and_the_words_say_so(tmp_path):
    passing = {"a": range(10), "b": range(16), "c": range(10), "d": range(11)}
    runs = [measured(tmp_path / name, None, some, range(40)) for name, some in passing.items()]
    _, b, c, d = arms(list(passing), [0] * 4, runs)
    ps = [one.against_first[METRIC]["p"] for one in (b, c, d)]
    assert [one.against_first[METRIC]["p_holm"] for one in (b, c, d)] == holm(ps)
    assert b.findings[METRIC].startswith("b is better than a: +15.0 points [3.")
    assert c.findings[METRIC].startswith("no difference between c and a was found: +0.0 points")


def test_other_tasks_are_neither_pooled_nor_paired(tmp_path):
    runs = [measured(tmp_path / "0", None, range(3)), measured(tmp_path / "1", None, range(3), range(4))]
    (one,) = arms(["a", "a"], [0, 1], runs)
    assert one.rates == {} == one.change
    assert arms(["a", "b"], [0, 0], runs)[1].against_first == {}


def test_a_task_that_a_seed_could_not_judge_is_left_out_of_all(tmp_path):
    runs = [measured(tmp_path / "0", None, range(3)), measured(tmp_path / "1", None, range(3), silent=[0])]
    (one,) = arms(["a", "a"], [0, 1], runs)
    assert one.rates[f"after/{METRIC}"]["n"] == 9 and one.rates[f"after/{METRIC}"]["of_seeds"] == [2 / 9, 2 / 9]


def test_nothing_has_a_ratio_to_zero(tmp_path):
    (one,) = arms(["a"], [0], [measured(tmp_path / "0", (), range(3))])
    assert "ratio" not in one.change[METRIC] and one.change[METRIC]["value"] == pytest.approx(0.3)


def test_runs_without_an_evaluation_are_arms_without_rates(tmp_path):
    (one,) = arms(["a", "a"], [0, 1], [tmp_path, tmp_path])
    assert one.rates == {} and one.seeds == (0, 1) and arms([], [], []) == [] and arms_table([one]) == ""


def test_the_table_shows_the_spread_over_seeds_beside_the_interval_and_what_was_found(found):
    text = arms_table(found)
    assert "seeds 40.0 to 50.0" in text and "| against a/pass_at_1_greedy" in text and "points [" in text
    assert f"\n{METRIC}: no difference between b and a was found" in text
    assert "| a \\| b " in table("t", {"x": [1]}, ["a | b"])
