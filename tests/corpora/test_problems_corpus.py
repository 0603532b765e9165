"""The generator of problems: every family's functions return what their conditions say, and calls catch what is wrong."""

import copy
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinning import thinned, tries

from rlvr_exp.corpora.problems import build, mixture
from rlvr_exp.corpora.problems.build import build_splits, families, problem_of, split_of_programs
from rlvr_exp.corpora.problems.catalogue import FAMILIES
from rlvr_exp.corpora.problems.running import ENDLESS, function_of, returned
from rlvr_exp.corpora.splits import text_of

SMALL = {"test": 30, "test_unseen": 10, "train": 20}


def test_there_are_enough_families_of_every_kind():
    assert len(FAMILIES) >= 50 and len(mixture.UNSEEN_FAMILIES) >= 12
    assert not set(mixture.UNSEEN_FAMILIES) & set(mixture.PRACTISED_FAMILIES)
    imitated, practised = families("practice")
    assert families("train") == families("dev") == [imitated] and families("test") == [imitated, practised]
    assert {*imitated, *practised, *mixture.UNSEEN_FAMILIES} == set(FAMILIES) and len(imitated) >= 30


@settings(max_examples=tries(150), deadline=None)
@given(family=st.sampled_from(sorted(FAMILIES)), number=st.integers(0, 10**6))
def test_a_function_does_what_its_conditions_say_on_every_call(family, number):
    problem = problem_of(family, "property", number)
    draft, rng = problem.draft, Random(number)
    run = function_of(problem.code, problem.name)
    for args in [*draft.edges, *(draft.inputs(rng) for _ in range(8))]:
        given = copy.deepcopy(args)
        result = run(*args)
        assert args == given, "a call leaves its arguments alone"
        space = {**dict(zip(draft.arguments, args, strict=True)), "result": result}
        for condition in draft.holds:
            assert eval(condition, dict(space)) is True, (condition, args, result)


@pytest.mark.parametrize("family", thinned(FAMILIES))
def test_conditions_and_steps_say_something(family):
    """Some other result breaks a condition, and no two steps are one."""
    drafts = [problem_of(family, "said", number).draft for number in range(12)]
    assert all(draft.holds and len(set(draft.steps)) == len(draft.steps) >= 2 for draft in drafts)
    assert len({draft.text for draft in drafts}) > 3


@pytest.mark.slow
def test_equal_code_draws_equal_splits_that_share_no_program_and_no_text():
    one, two = build_splits(SMALL), build_splits(SMALL)
    assert {name: text_of(rows) for name, rows in one.items()} == {name: text_of(rows) for name, rows in two.items()}
    texts = [row["text"] for rows in one.values() for row in rows]
    assert len(set(texts)) == len(texts) == sum(SMALL.values())
    programs = {name: {build.program_key(row["solution"]) for row in rows} for name, rows in one.items()}
    assert programs["test"].isdisjoint(programs["train"])
    for name in ("test", "train"):
        rows = one[name]
        assert all(split_of_programs(row["family"])[build.program_key(row["solution"])] == name for row in rows)
    assert {row["family"] for row in one["test_unseen"]} <= set(mixture.UNSEEN_FAMILIES)


@pytest.mark.slow
def test_calls_are_right_and_those_that_decide_catch_every_wrong_program_that_is_kept():
    for row in build_splits({"test": 60, "test_unseen": 30})["test"]:
        name, tests = row["entry_point"], row["tests"]
        run = function_of(row["solution"], name)
        assert len(tests) == mixture.HIDDEN and len(row["shown"]) == mixture.SHOWN
        assert len(row["good_tests"]) == mixture.GOOD and row["wrong"], row["text"]
        for case in [*tests, *row["shown"], *row["good_tests"]]:
            assert run(*copy.deepcopy(case["args"])) == case["expected"]
        shown = [case["args"] for case in row["shown"]]
        assert not any(case["args"] in shown for case in [*tests, *row["good_tests"]]), "shown calls decide nothing"
        calls = [tuple(case["args"]) for case in tests]
        right = returned(row["solution"], name, calls)
        assert all(returned(wrong, name, calls) != right for wrong in row["wrong"])


def test_the_different_programs_of_a_family_are_divided_among_its_splits():
    for family in ("keep_if", "is_ordered", "in_turn"):
        places = split_of_programs(family)
        wanted = {"test", "practice"} | ({"train", "dev"} if family in families("train")[0] else set())
        assert set(places.values()) == wanted and len(places) >= 4
    assert split_of_programs(mixture.UNSEEN_FAMILIES[0]) == {}


def test_a_program_that_does_not_end_is_stopped_and_no_other_signal_is_touched():
    code = "def f(n):\n    while n != 3:\n        n = n\n    return n\n"
    assert returned(code, "f", [(3,), (4,), (3,)]) == ["3", ENDLESS, ENDLESS]
    hides = "def f(n):\n    while n:\n        try:\n            n = n\n        except Exception:\n            pass\n"
    assert returned(hides, "f", [(1,)]) == [ENDLESS]
    assert returned("def f(n):\n    return 1 // n\n", "f", [(0,), (1,)]) == ["ZeroDivisionError", "1"]


def test_a_last_step_changes_what_is_returned():
    with_last = [
        one for number in range(40) if "in the end" in (one := problem_of("keep_if", "end", number)).draft.text
    ]
    assert 8 < len(with_last) < 32
    assert len({one.draft.text.rpartition(", in the end ")[2] for one in with_last}) > 3
    for one in with_last:
        *_, last = one.draft.steps
        assert last[0].startswith("return it") and one.draft.body[-1].startswith("return ")
