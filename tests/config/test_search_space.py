"""What may be searched: each fault is told with its key, and every word means the value that it was made from."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.config.study import Dimension, Search, dimensions, text_of
from rlvr_exp.config.words import parse

LR = {"log_uniform": [1e-5, 1e-3]}


def faults(**given):
    return [f"{one.where}: {one.what}" for one in Search(**({"space": {"a.b": LR}} | given)).problems()]


def test_paths_and_nodes_name_the_same_keys():
    nodes = dimensions({"optimizer": {"lr": LR}, "algorithm": {"group_size": {"choice": [4, 8]}}})
    assert nodes == dimensions({"optimizer.lr": LR, "algorithm.group_size": {"choice": [4, 8]}})
    assert nodes[0] == Dimension("optimizer.lr", "log_uniform", (1e-5, 1e-3))
    assert faults() == []


@pytest.mark.parametrize(
    ("space", "found"),
    [
        ({}, "space: no key is varied"),
        ({"a": 3}, "space.a: one way to draw it is needed"),
        ({"a": {"uniform": [0, 1], "choice": [1, 2]}}, "space.a: one way to draw it is needed"),
        ({"a.b": LR, "a": {"b": LR}}, "space.a.b: is there twice, as a path and as nodes"),
        ({"a": {"log_unifrom": [1, 2]}}, "space.a: no such way to draw; did you mean log_uniform"),
        ({"a": {"uniform": [1, 1]}}, "space.a: the second end is above the first"),
        ({"a": {"uniform": [1]}}, "space.a: a range has two ends, both numbers"),
        ({"a": {"uniform": [0, True]}}, "space.a: a range has two ends, both numbers"),
        ({"a": {"uniform": [0, math.inf]}}, "space.a: a range has two ends, both numbers"),
        ({"a": {"int": [0, 1.5]}}, "space.a: both ends are whole numbers"),
        ({"a": {"log_int": [0, 2]}}, "space.a: on a logarithmic scale both ends are above 0"),
        ({"a": {"choice": [1]}}, "space.a: a choice is among two or more"),
        ({"a": {"choice": [1, 1]}}, "space.a: choices differ from each other"),
    ],
)
def test_a_space_that_cannot_work_is_told(space, found):
    assert faults(space=space) == [found]


def test_all_faults_are_told_at_once():
    found = faults(
        space={"a": 1, "b": {"int": [2, 1]}}, confirm=[0, 5, 5], metric="excess_code", trial_words=["seed=1"]
    )
    assert [one.partition(":")[0] for one in found] == [
        "trial_words",
        "space.a",
        "space.b",
        "confirm",
        "confirm",
        "direction",
    ]


def test_what_a_dimension_holds():
    rates, sizes, kinds = (
        Dimension("a", kind, values)
        for kind, values in (("log_uniform", (1e-5, 1e-3)), ("int", (1, 8)), ("choice", ("x", 4, None)))
    )
    assert rates.holds(1e-4) and not rates.holds(1e-2) and not rates.holds(None) and not rates.holds("1e-4")
    assert sizes.holds(8) and not sizes.holds(2.5) and not sizes.holds(True)
    assert kinds.holds(4) and kinds.holds(None) and not kinds.holds("4") and not kinds.holds("y")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).filter(
        lambda one: "\\" not in one and "$" not in one
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(VALUES)
def test_every_value_is_read_back_from_its_word(value):
    parsed = parse([f"a.b={text_of(value)}"])
    assert parsed.problems == [] and [one.value() for one in parsed.overrides] == [value]
