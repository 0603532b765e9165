"""The text of an answer on a terminal, and the success of chosen answers beside chance and the most that a choice can reach."""

import pytest
from problem_row import row, sample

from rlvr_exp.domains.problems.engine import WIDTH, Choices, readable_problem


def counted(*rows, by_tests=True):
    counts = Choices(by_tests)
    for one in rows:
        counts.add(one)
    return counts


def values(counts, samples):
    return {name: (rate.value, rate.n, rate.samples) for name, rate in counts.rates(1, samples).items()}


ROWS = (
    row("a", "passed", ("failed", "passed", "failed", "failed")),
    row("b", "failed", ("failed", "passed", "passed", "failed")),
    row("c", "failed", ("failed",) * 4),
)


def test_the_chosen_answer_stands_beside_chance_and_the_best_there_was() -> None:
    assert values(counted(*ROWS), 4) == {
        "chosen_at_4": (pytest.approx(1 / 3), 3, 4),
        "pass_at_1": (pytest.approx(0.25), 3, 4),
        "pass_at_4": (pytest.approx(2 / 3), 3, 4),
    }


def test_the_difference_from_chance_is_paired_by_task() -> None:
    counts = counted(*ROWS)
    found = counts.metrics()["difference/chosen_at_4"]
    assert (found["value"], found["n"]) == (pytest.approx((0.75 - 0.5 + 0) / 3), 3)
    assert (found["won"], found["lost"], found["tied"]) == (1, 1, 1)
    assert "; chosen against a sample at random: +8.3 points" in counts.text()


def test_a_task_without_all_verdicts_is_in_no_rate() -> None:
    silent = [row("d", "passed", ("passed", "no_verdict")), row("e", "no_verdict", ("no_verdict", "failed"))]
    counts = counted(row("a", "passed", ("failed", "passed")), *silent)
    assert values(counts, 2)["pass_at_1"] == (0.5, 1, 2) and counts.tasks == 3
    assert counted(*silent).rates(1, 2) == {} and "difference/chosen_at_2" not in counted(*silent).metrics()


def test_one_sample_is_no_choice_and_neither_are_hidden_tests() -> None:
    alone = counted(row("a", "passed"), row("b", "failed", ("failed",)))
    assert values(alone, 1) == {"pass_at_1": (0.5, 2, 1)} and "difference" not in str(alone.metrics())
    assert list(values(counted(*ROWS, by_tests=False), 4)) == ["pass_at_1", "pass_at_4"]


def test_what_was_not_run_is_only_counted() -> None:
    counts = counted(row("a", None, (None,)))
    assert counts.rates(1, 1) == {} and counts.metrics()["tokens/tester"] == 7
    assert counts.text() == "1 tasks: 1 not judged"


def test_critiques_stand_beside_outputs_and_tests_below_with_what_they_catch() -> None:
    told = readable_problem(row(samples=("passed", "failed"))).splitlines()
    assert told[0].endswith("log-probability -2.00, sample 1 of 2, passes 100% of the valid tests")
    assert told[1:4] == [
        "    [plan]",
        f"    {'1. take x':<{WIDTH}} | wrong: its sign",
        f"    {'2. return it':<{WIDTH}} |",
    ]
    assert told[7:] == [
        "    [tests] 2 sets, 75% of their lines are valid",
        "    f(2) == 2    catches 2",
        "    f(2) == 9    invalid",
        "    f(0) == 0    catches none",
        "    sample 1: 100% of the valid tests, hidden tests passed",
        "    sample 2: 100% of the valid tests, hidden tests failed",
    ]


def test_a_solver_alone_has_one_column() -> None:
    told = readable_problem(row(critiques={}, tests=[], written=[], validity=None, pass_rate=None))
    assert told.splitlines()[2:4] == ["    1. take x", "    2. return it"] and "tests" not in told


def test_what_is_wrong_with_an_answer_and_what_did_not_run_is_said() -> None:
    failed = row(outcome="failed", log="case 0: f(1) gave 2\nmore", samples=("failed",))
    assert "    -> case 0: f(1) gave 2" in readable_problem(failed).splitlines()
    unrun = row(outcome=None, score=None, tests=[], pass_rate=None, samples=())
    unrun["samples"] = [sample(None, pass_rate=None)] * 2
    assert "sample 2: no tests, hidden tests not run" in readable_problem(unrun)


def test_long_outputs_are_wrapped_and_cut() -> None:
    told = readable_problem(row(stages={"plan": "word " * 40, "code": "x = 1\n" * 100})).splitlines()
    assert all(len(line) <= WIDTH + 30 for line in told[1:]) and any("[60 more lines]" in line for line in told)
