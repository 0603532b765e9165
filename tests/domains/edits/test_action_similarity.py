"""Likeness of an action to a teacher's: fields and characters, in fixed order, whatever the form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.domains.edits.action import parse_action
from rlvr_exp.domains.edits.measures import MOST_CHARACTERS, similarities, string_similarity

NAMES = st.sampled_from(["f", "g($A)", "$X == None", "return $X", "a b", "ä"])
RULES = st.builds(lambda pattern, fix: {"pattern": pattern, "rewrite": fix}, NAMES, NAMES)
ACTIONS = st.one_of(RULES, st.lists(RULES, min_size=1, max_size=3)).map(lambda one: json.dumps(one, ensure_ascii=False))


def like(student: str, teacher: str) -> dict[str, float]:
    return similarities(parse_action(student, "python"), teacher, "python")


@given(student=ACTIONS, teacher=ACTIONS)
def test_scores_are_shares_and_one_for_equal_actions_alone(student: str, teacher: str) -> None:
    found = like(student, teacher)
    assert all(0 <= value <= 1 for value in found.values())
    equal = parse_action(student, "python") == parse_action(teacher, "python")
    assert (found["field_similarity"] == 1.0) == equal
    assert not equal or found["string_similarity"] == 1.0


def test_the_form_of_an_action_does_not_count() -> None:
    teacher = json.dumps({"pattern": "$X == None", "rewrite": "$X is None"})
    for student in (
        "rule:\n  pattern: $X == None\nfix: $X is None\n",
        json.dumps({"rule_yaml": "rule:\n  pattern: $X == None\nfix: $X is None"}),
        "ast-grep run --pattern '$X == None' --rewrite '$X is None'",
    ):
        assert like(student, teacher) == {"field_similarity": 1.0, "string_similarity": 1.0}


@pytest.mark.parametrize(
    ("student", "share"),
    [
        ({"pattern": "f", "rewrite": "h"}, 0.5),
        ({"pattern": "e", "rewrite": "h"}, 0.0),
        ([{"pattern": "f", "rewrite": "g"}, {"pattern": "a", "rewrite": "b"}], 0.5),
        ({"rule": {"pattern": "f", "inside": {"kind": "call"}}, "fix": "g"}, 2 / 3),
    ],
)
def test_fields_that_either_lacks_do_not_match(student, share: float) -> None:
    teacher = json.dumps({"pattern": "f", "rewrite": "g"})
    assert like(json.dumps(student), teacher)["field_similarity"] == pytest.approx(share)


def test_characters_are_compared_student_first_and_long_texts_without_junk() -> None:
    assert (string_similarity("tide", "diet"), string_similarity("diet", "tide")) == (0.25, 0.5)
    long = "rule:\n  pattern: some_function_name($ARGUMENT)\n" * 6
    assert len(long) > 200 and string_similarity(long.replace("some", "same", 1), long) > 0.99


def test_no_more_than_so_many_characters_are_compared() -> None:
    assert string_similarity("a" * MOST_CHARACTERS + "b" * 9, "a" * MOST_CHARACTERS + "c" * 9) == 1.0
