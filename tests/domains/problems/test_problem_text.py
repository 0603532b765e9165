"""A problem's answer on a terminal."""

from problem_row import row, sample

from rlvr_exp.domains.problems.solution import WIDTH, readable_problem


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
