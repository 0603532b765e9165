"""The comparison's rules, on values as they come from a candidate and as natives; differences in words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.wire import Bag, Pairs
from rlvr_exp.verifiers import compare
from rlvr_exp.verifiers.compare import equal, same_output

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.integers() | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


def received(value: object) -> object:
    return wire.decode(wire.encode(value))


@given(VALUES, st.booleans())
def test_every_value_equals_itself(value, strict):
    assert equal(received(value), value, strict)
    assert equal(value, value, strict)


@given(VALUES, VALUES)
def test_strict_equality_is_identity_of_content_and_types(one, other):
    same = wire.encode(one) == wire.encode(other)
    # -0.0 equals 0.0, and a dict has no order; but their texts differ.
    if same:
        assert equal(received(one), other, strict=True)
    elif repr(one) != repr(other) and one != other:
        assert not equal(received(one), other, strict=True)


@pytest.mark.parametrize(
    ("got", "expected", "loose", "strict"),
    [
        (True, 1, False, False),
        (1, True, False, False),
        (0, False, False, False),
        ([True], [1], False, False),
        ({True: 0}, {1: 0}, False, False),
        ({True}, {1}, False, False),
        ((1, 2), [1, 2], True, False),
        ([1, (2,)], (1, [2]), True, False),
        (1, 1.0, True, False),
        (1.0, 1, True, False),
        (2**53 + 1, float(2**53), False, False),
        ("1", 1, False, False),
        (b"a", "a", False, False),
        (None, 0, False, False),
        ([], None, False, False),
        ([1, 2], [1], False, False),
        ({1, 2}, frozenset({1, 2}), False, False),
        ({1: [2]}, {1: (2,)}, True, False),
        ({1: 2}, {1: 2, 3: 4}, False, False),
        (math.inf, math.inf, True, True),
        (math.nan, math.nan, True, True),
        ([math.nan], [math.nan], True, True),
        ({math.nan}, {math.nan}, True, True),
        (math.nan, 1.0, False, False),
        (1.0, math.nan, False, False),
        ("nan", math.nan, False, False),
        (None, math.nan, False, False),
        (complex(math.nan, 1), complex(math.nan, 1), True, True),
        (complex(math.nan, 1), complex(math.nan, 2), False, False),
        (complex(1, math.nan), math.nan, False, False),
        ({-0.0: 1}, {0.0: 1}, True, True),
        ({-0.0}, {0.0}, True, True),
        ({(-0.0, "a")}, {(0.0, "a")}, True, True),
        ({1.0: 2}, {1: 2}, True, False),
        ({1.0, 2}, {1, 2.0}, True, False),
        ({frozenset({1.0})}, {frozenset({1})}, True, False),
        ({1.5}, {1}, False, False),
        ({1 + 0j}, {1}, True, False),
        (1 + 0j, 1, True, False),
    ],
)
def test_rules(got, expected, loose, strict):
    assert equal(received(got), expected) is loose
    assert equal(got, expected) is loose
    assert equal(received(got), expected, strict=True) is strict


@pytest.mark.parametrize(
    ("got", "expected", "close"),
    [
        (1.05, 1.0, True),
        (1.2, 1.0, False),
        (1, 1.05, True),
        (2, 1, False),
        ([1.05, {"a": 0.95}], [1.0, {"a": 1.0}], True),
        (math.nan, 1.0, False),
        (math.inf, 1.0, False),
        (10**400, 1.0, False),
        (True, 1.0, False),
    ],
)
def test_tolerance(got, expected, close):
    assert equal(received(got), expected, atol=0.1) is close


@pytest.mark.parametrize(
    ("got", "expected", "close"),
    [
        (1e30 * (1 + 5e-8), 1e30, True),
        (1e30 * (1 + 2e-7), 1e30, False),
        (-4e9 - 100, -4e9, True),
        (4e9, -4e9, False),
        (10**20 + 1, 1e20, True),
        (10**20 + 1, 10**20, False),
        ([(1e9 + 1, "a")], [(1e9, "a")], True),
        ({"a": [1e9 + 1]}, {"a": [1e9]}, True),
        ({1e9 + 1: 1}, {1e9: 1}, False),
        (complex(1e9 + 1, 1e9), complex(1e9, 1e9), True),
        (complex(1e9 + 1e4, 1e9), complex(1e9, 1e9), False),
        (1e-9, 0.0, False),
        (0.0, 1e-9, False),
        (math.inf, math.inf, True),
        (1e308, math.inf, False),
        (-math.inf, math.inf, False),
        (complex(1, math.inf), complex(2, math.inf), False),
        (math.nan, math.nan, True),
        (1e9, math.nan, False),
        (1.0, 10**400, False),
        (True, 1.0, False),
        ("1000000001.0", "1000000000.0", False),
    ],
)
def test_relative_tolerance(got, expected, close):
    assert equal(received(got), expected, rtol=1e-7) is close
    assert equal(received(got), expected, atol=1e-12, rtol=1e-7) is close


def test_the_tolerances_add_up():
    assert equal(100.15, 100.0, atol=0.1, rtol=1e-3)
    assert not equal(100.15, 100.0, atol=0.1) and not equal(100.15, 100.0, rtol=1e-3)
    assert not equal(1, 1.0, strict=True, rtol=0.5) and equal(1.1, 1.0, strict=True, rtol=0.5)


@pytest.mark.parametrize(
    ("got", "expected", "close"),
    [
        ("1000000001.0 x", "1e9 x", True),
        ("1000000001", "1000000000", False),
        ("1000001000.0", "1e9", False),
        ("1e9999", "2e9999", False),
        ("5.0", "1e9999", False),
        ("-1e9", "1e9", False),
    ],
)
def test_relative_tolerance_of_output(got, expected, close):
    assert same_output(got, expected, rtol=1e-7) is close


OUTPUTS = [
    ("a", "a\n", True, False),
    ("a  \nb\t\n\n", "a\nb", True, False),
    ("a\r\nb\r\n", "a\nb\n", True, False),
    ("", "\n \n", True, False),
    ("\na", "a", False, False),
    (" a", "a", False, False),
    ("a\n\nb", "a\nb", False, False),
    ("a  b", "a b", False, False),
    ("a b", "a\nb", False, False),
    ("1.0", "1", False, False),
    ("01", "1", False, False),
    ("A", "a", False, False),
    ("a\x00", "a", False, False),
    ("a\u00a0", "a", True, False),
    ("a", "a", True, True),
]


@pytest.mark.parametrize(("got", "expected", "loose", "strict"), OUTPUTS)
def test_rules_of_output(got, expected, loose, strict):
    assert same_output(got, expected) is loose
    assert same_output(got, expected, strict=True) is strict


@pytest.mark.parametrize(
    ("got", "expected", "close"),
    [
        ("1.05", "1.0", True),
        ("x = 1.05", "x  =  1", True),
        ("1.2", "1.0", False),
        ("1", "1.05", True),
        ("2", "1", False),
        ("+1", "1", True),
        ("1e0", "1", True),
        (".95", "1", True),
        ("-1", "1.0", False),
        ("1.05 2.0", "1.0\n2.0", False),
        ("1.05 2.0", "1.0", False),
        ("nan", "1.0", False),
        ("nan", "nan", True),
        ("inf", "1e9999", False),
        ("1e9999", "2e9999", False),
        ("1_0.0", "10.0", False),
        ("\u0661.0", "1.0", False),
        ("9" * 401 + ".0", "9" * 401, False),
        ("x1.05", "x1.0", False),
    ],
)
def test_tolerance_of_output(got, expected, close):
    assert same_output(got, expected, atol=0.1) is close


@given(st.lists(st.text("ab 1.\n", max_size=6), max_size=6))
def test_every_output_equals_itself_with_blanks_at_line_ends(lines):
    text = "\n".join(lines)
    assert same_output(text.replace("\n", "  \n") + "\n\n", text)
    assert same_output(text, text, strict=True)


def test_a_key_deeper_than_any_expected_one_is_no_work():
    """Each level of it would be a pass over all below it: 97 of 500,000 numbers took 12 s."""
    key = Bag(True, tuple(range(1000)))
    for _ in range(97):
        key = Bag(True, (key,))
    assert compare._name(key, False, 1) == b"" and compare._name((1, (2,)), False, 1) == b""
    assert compare._name((1, (2,)), False, 2) and not equal(Pairs(((key, 1),)), {"a": 1}, strict=False, atol=0.0)
    assert equal({(1, (2,)): 3}, {(1, (2.0,)): 3}, strict=False, atol=0.0)
    assert equal({frozenset({(1, 2)})}, {frozenset({(1.0, 2)})}, strict=False, atol=0.0)


def wide(width: int, depth: int) -> object:
    return [wide(width, depth - 1)] * width if depth else 1


VALUES = {
    "wide_lists": wide(60, 3),
    "many_empty_tuples": [()] * 100_000,
    "dicts": {i: {j: {k: k for k in range(50)} for j in range(50)} for i in range(50)},
    "sets": [frozenset(range(60))] * 2000,
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_bounded_part_of_a_value_is_visited(value, monkeypatch):
    visited = []
    visit = compare._Brief.repr1
    monkeypatch.setattr(compare._Brief, "repr1", lambda self, *rest: visited.append(1) or visit(self, *rest))
    said = compare.differing_value(wire.decode(wire.encode(value)), 2, False, 0.0)
    assert "expected 2" in said and len(said) < 400
    assert len(visited) < 1000
