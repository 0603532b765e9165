"""A solver against a tester: who is asked what, which tests count, who is credited with what."""

import json
from dataclasses import replace

import pytest
from adversarial_episode import BARE, CATCHES, NEGATIVE, RIGHT, ROW, STAGES, ZERO, credits_of, played

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.arc.tasks import Arc
from rlvr_exp.domains.problems.adversarial import Adversarial
from rlvr_exp.domains.problems.engine import Solving
from rlvr_exp.domains.problems.options import SOLVER, TESTER, Schedule
from rlvr_exp.domains.problems.tasks import Problems
from rlvr_exp.domains.problems.tested import OLD_TESTS, Given, coherence
from rlvr_exp.episodes.types import RewardBreakdown
from rlvr_exp.verifiers.base import KeepsOutputs, Verdict
from rlvr_exp.verifiers.python_tests import PythonTests


@pytest.fixture(scope="module")
def verifier():
    with PythonTests(Sandbox(workers=1)) as one:
        yield KeepsOutputs(one, "environment", remember=False)


@pytest.fixture
def domain(tmp_path) -> Problems:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    return Problems(path=str(tmp_path), reasoning=STAGES)


def test_every_set_runs_against_every_program_and_each_is_paid_by_what_the_other_did(verifier, domain) -> None:
    sets = ["size(-2) == 2\nsize(3) == 3", "size(0) == 0", "size(-1) == -1\nsize(-5) == 5"]
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT, ZERO, NEGATIVE], sets)
    matrix = environment.matrix(done)
    assert matrix.programs == (NEGATIVE, RIGHT, ZERO) and matrix.wrong == (NEGATIVE, ZERO)
    assert [suite.held for suite in matrix.suites.values()] == [2, 1, 1]
    assert [[sum(suite.catches[one]) for one in matrix.programs] for suite in matrix.suites.values()] == [
        [1, 0, 0],
        [0, 0, 1],
        [1, 0, 0],
    ]
    assert credits_of(environment, done, SOLVER) == [0.5, 1.0, 0.75, 0.5]
    assert credits_of(environment, done, TESTER) == [0.5, 0.5, 0.25]
    prompt = next(turn.prompt for turn in done.turns if turn.role == TESTER)
    assert prompt.endswith(f"[code]\n{NEGATIVE}\n[tests]\n"), "the first attempt is shown"
    groups = environment.groups(done)
    assert [len(group) for group in groups] == [4, 4, 3] and environment.rewarded(done) == ()
    assert set(environment.credit(done, {})) == {index for group in groups for index in group}
    found = environment.metrics([done])
    assert found["adversarial/validity"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert found["adversarial/hidden"] == pytest.approx((0.5 + 1 + 1 + 0.5) / 4)
    assert found["adversarial/gap"] == pytest.approx(0.6875 - 0.75)


def test_the_hidden_tests_are_never_paid(verifier, domain) -> None:
    """Weak tests: the wrong program earns as much as the right one, and the gap shows it."""
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(3) == 3", "size(4) == 4"])
    assert credits_of(environment, done, SOLVER) == [1.0, 1.0]
    assert credits_of(environment, done, TESTER) == [None, None], "no program is wrong, as far as anybody knows"
    assert environment.metrics([done])["adversarial/gap"] == 0.25
    ends = environment.ends(done)
    assert [environment.shown(done, index).correct for index in ends] == [False, True]


@pytest.mark.parametrize(
    ("tests", "paid"),
    [
        (["size(-2) == -2", "size(-2) == 2"], [0.0, 1.0]),
        (["print(size(-2))", "size(-2) == 2"], [0.0, 1.0]),
        (["import os\nsize(-2) == 2", "size(-2) == 2"], [0.5, 1.0]),
        (["size(-2) == 2\nsize(-2) == 2", "size(-2) == 2"], [0.5, 1.0]),
        (["size(2) == 2", "size(-2) == 2"], [0.0, 1.0]),
        (["True == True", "size(-2) == 2"], [0.0, 1.0]),
        (["...", "size(-2) == 2"], [0.0, 1.0]),
    ],
)
def test_tests_that_are_invalid_repeated_or_catch_nothing_are_paid_less(verifier, domain, tests, paid) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], tests)
    assert credits_of(environment, done, TESTER) == paid
    assert credits_of(environment, done, SOLVER)[1] == 1.0, "no tester can make a right program lose"


def test_where_no_test_is_valid_nothing_is_learned_of_programs(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(2) == 3", "nonsense"])
    assert credits_of(environment, done, SOLVER) == [None, None] and credits_of(environment, done, TESTER) == [
        None,
        None,
    ]


def test_a_chain_without_a_program_earns_nothing_where_others_are_tested(verifier, domain) -> None:
    environment, done = played(
        verifier, domain, ["...", "def size(:", RIGHT, NEGATIVE], ["size(-2) == 2", "size(0) == 0"]
    )
    assert credits_of(environment, done, SOLVER) == [0.0, 0.0, 1.0, 0.5]
    environment, done = played(verifier, domain, ["...", RIGHT, "...", RIGHT], ["size(-2) == 2", "size(0) == 0"])
    assert credits_of(environment, done, SOLVER) == [0.0, 1.0, 0.0, 1.0], "not everybody solves it"
    (first, *_) = environment.ends(done)
    broken = replace(done.turns[first].completion, verdict=Verdict("no_verdict", log="the grader broke"))
    turns = [replace(turn, completion=broken) if i == first else turn for i, turn in enumerate(done.turns)]
    paid = credits_of(environment, replace(done, turns=tuple(turns)), SOLVER)
    assert paid == [None, 1.0, 0.0, 1.0], "what the grader broke at is neither paid nor compared"
    alone, empty = played(verifier, domain, ["..."], [])
    assert not alone.programs(empty) and {turn.role for turn in empty.turns} == {SOLVER}
    assert [paid.total for paid in alone.credit(empty, {}).values()] == [None, None]


def test_one_chain_that_is_measured_has_one_set_of_tests_beside_it(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE], ["size(-2) == 2"], tests=4)
    assert environment.result(done).verdict.score == 0.5, "success is that of the hidden tests"
    told = environment.outcome(done)
    assert told["tests"] == "size(-2) == 2" and told["validity"] == 1.0 and told["pass_rate"] == 0.0
    assert environment.about(done, len(done.turns) - 1)["role"] == TESTER


def test_what_is_measured_of_an_episode_stands_beside_its_verdict(verifier, tmp_path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({**ROW, "wrong": [NEGATIVE, ZERO]}) + "\n")
    domain = Problems(path=str(tmp_path), reasoning=STAGES)
    environment = Adversarial(domain, tests=4, **BARE)
    tests = ["size(-2) == 2\nsize(-3) == 3\nsize(0) == 1\nsize(0) == 0"]
    _, done = played(verifier, domain, [ZERO], tests, environment=environment, purpose="held out")
    found = environment.result(done).verdict.measures
    assert (found["validity"], found["duplicates"], found["mutation_score"]) == (0.5, 0.25, 0.5)
    assert found["distinct_behaviour"] == 0.5, "both valid tests catch the same program"
    assert found["distinct_shape"] == pytest.approx(2 / 3) and found["tests_pass_rate"] == 1.0
    assert found["coherence"] == found["coherence_code"] == 0.0, "this plan names nothing"
    _, trained = played(verifier, domain, [ZERO, RIGHT], CATCHES, environment=Adversarial(domain, tests=2, **BARE))
    assert environment.matrix(trained).past == (), "wrong programs of the data are never trained on"


def test_examples_that_are_worked_out_are_run_on_the_program_that_follows(verifier, domain) -> None:
    plan = "take x\nsize(-2) == 2\nsize(4) == 4"
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], CATCHES, plan=plan)
    assert [environment.examples_held(done, end) for end in environment.ends(done)] == [0.5, 1.0]
    first, second = (coherence(environment, done, end)["coherence"] for end in environment.ends(done))
    assert second - first == 0.25


def test_tasks_for_which_no_tests_can_be_written_are_refused() -> None:
    with pytest.raises(InputError, match="these tasks are not worked out in stages"):
        Adversarial(Arc())


def test_credit_is_a_breakdown_without_terms(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(-2) == 2", "size(0) == 0"])
    assert all(isinstance(one, RewardBreakdown) and one.sum is None for one in environment.credit(done, {}).values())


def test_critiques_are_paid_where_they_agree_with_the_tests(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], CATCHES, critiques=True)
    found = environment.credit(done, {})
    of = {
        (environment.about(done, place)["critique"], environment.criticised(done, place)): place
        for place in environment.critiques_in(done)
    }
    plans, codes = ([key for key in of if key[0] == stage] for stage in ("plan", "code"))
    assert [found[of[key]].total for key in plans] == [0.5, 1.0], "ok is as right as the code that follows"
    assert [found[of[key]].total for key in codes] == [0.5, 1.0], "wrong: is as right as the code is wrong"
    assert [environment.shown(done, of[key]).verdict.outcome for key in plans] == ["failed", "passed"]
    assert [environment.shown(done, of[key]).verdict.outcome for key in codes] == ["passed", "passed"]
    assert environment.metrics([done])["adversarial/critiques_right"] == 0.75
    grouped = environment.groups(done)
    assert sorted(map(len, grouped)) == [2] * 5, "two stages, the tests, critiques of two stages"
    weighted, again = played(verifier, domain, [NEGATIVE, RIGHT], CATCHES, critiques=True, critique_weight=0.5)
    assert credits_of(weighted, again, SOLVER) == [0.25, 1.0], "half of it what the critique says: wrong, ok"


def test_a_second_attempt_is_told_what_failed_and_so_is_the_tester(verifier, domain) -> None:
    tests = ["size(-2) == 2\nsize(1) == 1\nsize(2) == 3", "size(3) == 3\nsize(3) == 4", "size(-4) == 4", "size(0) == 0"]
    codes = [NEGATIVE, RIGHT, RIGHT, RIGHT]
    environment, done = played(verifier, domain, codes, tests, chains=2, attempts=2, tests=2)
    solved, tested = done.turns[environment.ends(done)[-1]], done.turns[environment.suites(done)[-1]]
    assert solved.prompt.endswith(f"[last code]\n{NEGATIVE}\n[failed tests]\nsize(-2) == 2\n[code]\n")
    assert len(environment.ends(done)) == 2, "the right program is not written anew"
    assert tested.parent is not None and done.turns[tested.parent].completion.text == "size(3) == 3\nsize(3) == 4"
    assert "[caught nothing]\nsize(3) == 3\n[repeated]\nsize(3) == 4" in tested.prompt
    told = done.turns[environment.suites(done)[2]].prompt
    assert (
        "[last tests]\nsize(-2) == 2\nsize(1) == 1\nsize(2) == 3\n[invalid]\nsize(2) == 3\n[caught nothing]\nsize(1) == 1"
        in told
    )
    paid = environment.credit(done, {})
    first, second = [index for index in range(len(done.turns)) if environment.program(done, index)][::2]
    assert (paid[first].total, paid[second].total) == (pytest.approx(0.6), 1.0)
    assert environment.result(done).verdict.outcome == "passed", "an episode comes to its last attempt"


@pytest.mark.parametrize(("step", "learned"), [(0, {"plan": 3}), (5, {"code": 3})])
def test_a_schedule_samples_one_stage_of_reasoning_and_learns_from_it_alone(verifier, domain, step, learned) -> None:
    schedule = Schedule(alone=2, alternating=1, outputs="stage", prefix="shared")
    environment = Adversarial(domain, schedule=schedule, tests=2, **BARE)
    codes = [NEGATIVE, RIGHT, ZERO]
    environment, done = played(verifier, domain, codes, CATCHES, environment=environment, step=step)
    groups = [group for group in environment.groups(done) if done.turns[group[0]].role == SOLVER]
    assert [{environment.stage_of(done, one) for one in group} for group in groups] == [{next(iter(learned))}]
    assert [len(group) for group in groups] == [*learned.values()]
    plans = sum(
        environment.stage_of(done, index) == "plan" for index in environment._learned(replace(done, given=Given()))
    )
    assert plans == (3 if step == 0 else 1), "outputs before the stage are sampled once"
    assert environment.programs(done) == (NEGATIVE, RIGHT, ZERO)
    paid = environment.credit(done, {})
    shared = [paid[index].total for index in range(len(done.turns)) if done.turns[index].role == SOLVER and index == 0]
    expected = 0.5 if step == 0 else pytest.approx((0.5 + 1 + 0.5) / 3)
    assert shared == [expected], "an output has the mean of the programs that follow from it"
    assert environment.metrics([done])["adversarial/stage"] == (1.0 if step == 0 else 2.0)


@pytest.mark.parametrize(
    ("outputs", "prefix", "step", "plans", "learned"),
    [
        ("onward", "shared", 0, 2, [2, 2]),
        ("onward", "shared", 5, 1, [2]),
        ("all", "own", 5, 2, [2, 2]),
        ("stage", "own", 5, 2, [2]),
        ("stage", "own", 0, 2, [2]),
    ],
)
def test_a_schedule_says_what_is_sampled_before_a_stage_and_what_is_learned_from(
    verifier, domain, outputs, prefix, step, plans, learned
) -> None:
    schedule = Schedule(alone=2, alternating=1, outputs=outputs, prefix=prefix)
    environment = Adversarial(domain, schedule=schedule, tests=2, **BARE)
    _, done = played(verifier, domain, [NEGATIVE, RIGHT], CATCHES, environment=environment, step=step)
    of_solver = [len(group) for group in environment.groups(done) if done.turns[group[0]].role == SOLVER]
    written = sum(
        turn.role == SOLVER and environment.stage_of(done, index) == "plan" for index, turn in enumerate(done.turns)
    )
    assert (written, of_solver) == (plans, learned)


def test_critiques_are_of_the_stage_that_a_step_is_spent_on(verifier, domain) -> None:
    schedule = Schedule(alone=2, alternating=1)
    environment = Adversarial(domain, schedule=schedule, tests=2, **{**BARE, "critiques": True})
    for step, stage in ((0, "plan"), (5, "code")):
        _, done = played(verifier, domain, [NEGATIVE, RIGHT], CATCHES, environment=environment, step=step)
        assert [environment.about(done, one)["critique"] for one in environment.critiques_in(done)] == [stage] * 2


@pytest.mark.parametrize(("step", "learn", "chains"), [(0, [], 2), (2, [], 3), (2, ["tester"], 2), (0, ["solver"], 3)])
def test_a_frozen_solver_may_write_fewer_chains(verifier, domain, step, learn, chains) -> None:
    schedule = Schedule(alone=2, alternating=1, chains=2, learn=learn)
    environment = Adversarial(domain, schedule=schedule, tests=2, **BARE)
    _, done = played(verifier, domain, [NEGATIVE, RIGHT, ZERO], CATCHES, environment=environment, step=step)
    assert len(environment.ends(done)) == chains


def test_the_book_keeps_tests_and_programs_for_the_next_time(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(-2) == 2", "size(1) == 1"])
    environment.remember([done])
    assert environment.metrics([done])["book/tests"] == 1 and environment.metrics([done])["book/programs"] == 1
    environment, again = played(
        verifier, domain, [ZERO, NEGATIVE], ["size(0) == 0", "size(5) == 5"], environment=environment
    )
    matrix = environment.matrix(again)
    assert (
        matrix.book is not None and matrix.book.valid == (True,) and again.given.tests[OLD_TESTS] == ("size(-2) == 2",)
    )
    assert matrix.book_rate(ZERO) == 1.0 and matrix.book_rate(NEGATIVE) == 0.0
    assert credits_of(environment, again, SOLVER) == [pytest.approx(2 / 3), pytest.approx(2 / 3)], (
        "two new tests and an old one"
    )
    fresh = Adversarial(domain, tests=2, **BARE)
    fresh.parts["book"].load_state_dict(json.loads(json.dumps(environment.parts["book"].state_dict())))
    assert fresh.parts["book"].tests("t") == ("size(-2) == 2",)
    _, past = played(verifier, domain, [RIGHT, ZERO], ["size(-3) == 3", "size(0) == 0"], environment=fresh)
    assert fresh.matrix(past).past == (NEGATIVE,), "a tester is also paid for what it catches of earlier programs"
    assert credits_of(fresh, past, TESTER) == [0.5, 0.5]


def test_tests_that_are_cut_are_not_run_and_not_kept(verifier, domain) -> None:
    environment, done = played(
        verifier, domain, [NEGATIVE, RIGHT], ["size(-2) == 2\nsize(-3) == 3...", "size(-4) == 4"]
    )
    environment.remember([done])
    assert environment.parts["book"].tests("t") == ("size(-4) == 4",)
    assert credits_of(environment, done, TESTER) == [0.0, 1.0]
    assert environment.metrics([done])["adversarial/validity"] == 0.5


def test_problems_that_everybody_or_nobody_solves_teach_nothing(verifier, domain) -> None:
    for codes, expected in (([NEGATIVE, NEGATIVE], None), ([RIGHT, RIGHT], None), ([RIGHT, NEGATIVE], 1.0)):
        environment, done = played(verifier, domain, codes, ["size(-2) == 2", "size(-7) == 7"], mask="both")
        assert credits_of(environment, done, SOLVER)[0] == expected
        assert environment.metrics([done])["adversarial/teaching"] == float(expected is not None)


def test_a_tester_may_learn_where_nobody_solves_a_problem(verifier, domain) -> None:
    tests = ["size(-2) == 2", "size(-7) == 8"]
    for mask, of_tests in (("both", [None, None]), ("solver", [1.0, 0.0]), ("none", [1.0, 0.0])):
        environment, done = played(verifier, domain, [NEGATIVE, NEGATIVE], tests, mask=mask)
        assert credits_of(environment, done, TESTER) == of_tests
        assert credits_of(environment, done, SOLVER) == [0.0 if mask == "none" else None] * 2


def test_a_program_that_fails_a_shown_test_earns_nothing_and_passing_them_alone_is_worth_nothing(
    verifier, tmp_path
) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({**ROW, "shown": [{"args": [-1], "expected": 1}]}) + "\n")
    domain = Problems(path=str(tmp_path), reasoning=STAGES)
    tests = ["size(1) == 1", "size(0) == 0"]
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT, ZERO], tests)
    assert credits_of(environment, done, SOLVER) == [0.0, 1.0, 0.5]
    assert credits_of(environment, done, TESTER) == [0.0, 0.5], "that the first is wrong is known by the shown test"
    unknown, invalid = played(verifier, domain, [NEGATIVE, RIGHT], ["size(1) == 2", "size(0) == 1"])
    assert credits_of(unknown, invalid, SOLVER) == [0.0, None], "no test of the tester is valid"


def test_without_a_tester_a_solver_is_paid_by_the_shown_tests(verifier, tmp_path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({**ROW, "shown": [{"args": [-1], "expected": 1}, {"args": [1], "expected": 1}]}) + "\n"
    )
    domain = Problems(path=str(tmp_path), reasoning=STAGES)
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT, ZERO], [])
    assert credits_of(environment, done, SOLVER) == [0.5, 1.0, 1.0], (
        "a program that is right on shown calls alone is paid, too"
    )
    assert {turn.role for turn in done.turns} == {SOLVER}
    assert environment.metrics([done])["adversarial/gap"] == pytest.approx((0.5 + 1 + 1) / 3 - (0.5 + 1 + 1) / 3)


@pytest.mark.parametrize("reward", ["gated", "seed", "utrl", "code_a1", "cure"])
def test_every_variant_pays_in_the_unit_interval_and_prefers_tests_that_hold_and_catch(
    verifier, domain, reward
) -> None:
    sets = [
        "size(-2) == 2\nsize(0) == 0\nsize(-3) == 3",
        "size(2) == 2\nsize(3) == 3\nsize(4) == 4",
        "size(2) == 1\nnonsense\nsize(1) == 9",
    ]
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT, ZERO], sets, reward=reward)
    good, idle, invalid = credits_of(environment, done, TESTER)
    assert good > max(idle, invalid) and min(idle, invalid) >= 0 and good <= 1
    wrong, right, zero = credits_of(environment, done, SOLVER)
    assert right > max(wrong, zero) and min(wrong, zero) >= 0 and right <= 1


def test_a_power_makes_a_program_that_fails_some_tests_worth_little(verifier, domain) -> None:
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], ["size(-2) == 2", "size(1) == 1"], power=4.0)
    assert credits_of(environment, done, SOLVER) == [0.5**4, 1.0]


def test_a_penalty_lies_on_lines_that_do_nothing(verifier, domain) -> None:
    sets = ["size(-2) == 2", "size(-2) == 2\nsize(1) == 1", "size(-2) == 2\nsize(-2) == 2"]
    environment, done = played(verifier, domain, [NEGATIVE, RIGHT], sets, penalty=0.2)
    assert credits_of(environment, done, TESTER) == [1.0, pytest.approx(0.9), pytest.approx(0.4)]


def test_critiques_come_last_and_are_of_the_chosen_chain_alone(verifier, domain) -> None:
    environment = Solving(domain, tests=2)
    codes, tests = [NEGATIVE, ZERO, RIGHT], ["size(-2) == 2", "size(0) == 0"]
    _, done = played(verifier, domain, codes, tests, environment=environment)
    assert environment.chosen(done) == environment.in_order(done)[2]
    critiques = environment.critiques_in(done)
    assert critiques == [len(done.turns) - 2, len(done.turns) - 1] and done.turns[critiques[0]].role == TESTER
    assert {environment.criticised(done, index) for index in critiques} == {2, environment.chosen(done)}


def test_chains_are_in_the_order_of_sampling_whenever_they_ended(verifier, domain) -> None:
    environment = Solving(domain, tests=2, critiques=False)
    _, done = played(verifier, domain, ["...", NEGATIVE, "..."], ["size(3) == 3"] * 2, environment=environment)
    order = environment.in_order(done)
    assert [done.turns[index].completion.text for index in order] == ["...", NEGATIVE, "..."]
    assert environment.chosen(done) == order[1], "among chains that pass nothing, one with a program"
    assert not environment.critiques_in(done)
