"""Problems by a solver and a tester: what chooses, what is shown of it, what runs."""

import json

import pytest
from adversarial_episode import NEGATIVE, RIGHT, ZERO
from fake_solver import BARE, CUT, ROW, engine_in

from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.errors import InputError
from rlvr_exp.domains.problems import options
from rlvr_exp.domains.problems.engine import WrittenTest, reasoning_chain
from rlvr_exp.verifiers.base import Verifier
from rlvr_exp.verifiers.python_tests import PythonTests


@pytest.fixture(scope="module")
def verifier():
    with PythonTests(Sandbox(workers=1)) as one:
        yield one


class Never(Verifier):
    """Fails where anything is run."""

    name, version = "never", "1"

    def submit(self, request):
        raise AssertionError(request)

    def close(self):
        pass


def test_the_program_that_passes_most_valid_tests_is_chosen_and_its_chain_alone_is_criticised(
    verifier, tmp_path
) -> None:
    tests = ["size(-2) == 2\nsize(3) == 4", "size(0) == 0\nsize(-1) == 1"]
    engine = engine_in(tmp_path, verifier, [NEGATIVE, ZERO, RIGHT, RIGHT], tests)
    found = engine.solve(ROW)
    assert (found.sample, found.code, found.pass_rate, found.verdict.outcome) == (2, RIGHT, 1.0, "passed")
    assert [one.pass_rate for one in found.samples] == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0, 1.0]
    assert [one.verdict.outcome for one in found.samples] == ["failed", "passed", "passed", "passed"]
    assert found.tests == (
        WrittenTest("size(-2) == 2", 0, True, (0,)),
        WrittenTest("size(3) == 4", 0, False, ()),
        WrittenTest("size(0) == 0", 1, True, (1,)),
        WrittenTest("size(-1) == 1", 1, True, (0,)),
    )
    assert found.validity == 0.75 and found.written == tuple(tests)
    assert found.stages == {"plan": "1. plan 2", "code": RIGHT}
    assert found.critiques == {"plan": "ok 1. plan", "code": "ok def siz"}
    assert engine.says.asked == {"plan": 4, "code": 4, "tests": 2, "plan?": 1, "code?": 1}
    assert found.drawn == {"solver": 16, "tester": 8}


def test_hidden_tests_choose_nothing(verifier, tmp_path) -> None:
    """A tester whose one test is weak: the first program of equals is taken, though a later one is right."""
    found = engine_in(tmp_path, verifier, [NEGATIVE, RIGHT], ["size(3) == 3"]).solve(ROW)
    assert (found.sample, found.verdict.outcome) == (0, "failed")
    assert [one.pass_rate for one in found.samples] == [1.0, 1.0]


@pytest.mark.parametrize("tests", [["size(2) == 3"], ["nonsense"]])
def test_where_no_test_is_valid_the_first_chain_with_a_program_is_taken(verifier, tmp_path, tests) -> None:
    found = engine_in(tmp_path, verifier, [CUT, RIGHT, NEGATIVE], tests).solve(ROW)
    assert (found.sample, found.pass_rate, found.validity) == (1, None, 0.0)
    assert [one.program for one in found.samples] == [None, RIGHT, NEGATIVE], "in the order of sampling"


def test_a_chain_that_ends_early_is_shown_as_far_as_it_came(verifier, tmp_path) -> None:
    found = engine_in(tmp_path, verifier, [CUT, CUT], ["size(1) == 1"]).solve(ROW)
    assert (found.program, found.fault, found.verdict.bucket) == (None, "the chain ended at plan", "truncated")
    assert found.stages == {"plan": CUT} and found.critiques == {} and found.tests == ()


def test_a_second_attempt_takes_the_place_of_the_first(verifier, tmp_path) -> None:
    engine = engine_in(tmp_path, verifier, [NEGATIVE], ["size(-2) == 2"] * 2, options.Adversarial(tests=1, attempts=2))
    engine.says.text = lambda stage, chain, key: (
        "size(-2) == 2" if stage == "tests" else RIGHT if "last code" in chain else NEGATIVE if stage == "code" else "x"
    )
    found = engine.solve(ROW)
    assert (found.code, found.attempt, found.attempts, found.pass_rate) == (RIGHT, 2, 2, 1.0)
    assert [one.completion.text for one in found.earlier] == [NEGATIVE]
    assert found.stages["code"] == RIGHT and len(found.samples) == 1


def test_nothing_runs_without_a_verifier(tmp_path) -> None:
    engine = engine_in(tmp_path, None, [RIGHT], ["size(1) == 1"])
    found = engine.solve(BARE)
    assert found.verdict is None and found.pass_rate is None and found.stages["code"] == RIGHT
    assert engine.says.asked == {"plan": 1, "code": 1, "plan?": 1, "code?": 1}, "no tests are written"


def test_a_chain_alone_needs_no_reference_and_runs_nothing(verifier, tmp_path) -> None:
    engine = engine_in(tmp_path, verifier, [RIGHT, NEGATIVE], ["size(1) == 1"])
    engine._verifier = Never()
    found = reasoning_chain(engine, BARE)
    assert found.stages == {"plan": "1. plan 0", "code": RIGHT} and list(found.critiques) == ["plan", "code"]
    with pytest.raises(InputError, match="problem, solution"):
        engine.solve(BARE)


def test_a_batch_is_answered_in_order_and_each_alone(verifier, tmp_path) -> None:
    rows = [ROW, {**ROW, "tests": [{"args": [-7], "expected": 7}]}]
    engine = engine_in(tmp_path, verifier, [NEGATIVE, RIGHT], ["size(-2) == 2"] * 2)
    engine.options.batch_size = 2
    engine.environment.tests = 1
    found = [*engine.solve_all(rows)]
    assert [one.completion.verdict.total for one in found] == [2, 1] and [one.sample for one in found] == [1, 1]


def test_greedy_sets_of_tests_are_all_the_same_so_that_one_is_drawn(verifier, tmp_path) -> None:
    environment = options.Adversarial(tests=4)
    engine = engine_in(tmp_path, verifier, [RIGHT], ["size(-2) == 2"], environment, decoding="greedy")
    assert len(engine.solve(ROW).written) == 1
    sampled = engine_in(tmp_path, verifier, [RIGHT], ["size(-2) == 2"] * 4, environment)
    assert len(sampled.solve(ROW).written) == 4, "beside a single chain too"


def test_without_a_tester_the_shown_tests_choose(verifier, tmp_path) -> None:
    row = {**ROW, "shown": [{"args": [-1], "expected": 1}]}
    engine = engine_in(tmp_path, verifier, [NEGATIVE, RIGHT], (), options.Adversarial(tests=0))
    found = engine.solve(row)
    assert (found.sample, found.pass_rate, found.tests, found.critiques) == (1, 1.0, (), {})
    assert engine.says.asked == {"plan": 2, "code": 2}


def test_a_solver_alone_is_chosen_as_every_policy_alone(verifier, tmp_path) -> None:
    engine = engine_in(tmp_path, verifier, [NEGATIVE, RIGHT, RIGHT], (), options.Reasoning())
    found = engine.solve(ROW)
    assert (found.sample, found.verdict.outcome, found.pass_rate, found.drawn) == (1, "passed", None, {"policy": 12})
    assert found.logprob == -0.5


def test_a_row_is_json_and_has_no_times(verifier, tmp_path) -> None:
    found = engine_in(tmp_path, verifier, [NEGATIVE, RIGHT], ["size(-2) == 2"]).solve(ROW)
    row = json.loads(json.dumps(found.row()))
    assert row == found.row()
    assert row["samples"][0]["outcome"] == "failed" and row["outcome"] == "passed" and row["sample"] == 1
    assert row["tests"] == [{"text": "size(-2) == 2", "set": 0, "valid": True, "catches": [0]}]


def test_a_prompt_that_is_too_long_fails(verifier, tmp_path) -> None:
    engine = engine_in(tmp_path, verifier, [RIGHT], ["size(1) == 1"])
    found = engine.solve({**ROW, "text": "x" * 2000})
    assert (found.verdict.bucket, found.attempt, found.text) == ("prompt_too_long", 0, None)
    assert found.critiques == {} and not engine.says.asked
