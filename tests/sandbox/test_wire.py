"""The encoding of plain data: exact round trips, bounds, and refusal of everything else."""

import json
import math
from collections import Counter, OrderedDict, namedtuple
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.sandbox import wire

KEYS = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.binary(max_size=4) | st.tuples(st.integers())
)
LEAVES = KEYS | st.floats(allow_nan=False) | st.complex_numbers(allow_nan=False)
PLAIN = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
    ),
    max_leaves=20,
)


def exact(value: object) -> object:
    """A form in which True, 1 and 1.0, and equal lists and tuples, differ."""
    if isinstance(value, (list, tuple)):
        return type(value), [exact(item) for item in value]
    if isinstance(value, dict):
        return dict, [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(repr(exact(item)) for item in value)
    return type(value), repr(value)


@given(PLAIN)
def test_round_trip_is_exact(value):
    assert exact(wire.decode_native(wire.encode(value))) == exact(value)


@given(PLAIN)
def test_a_received_value_encodes_as_the_one_sent(value):
    sent = wire.encode(value)
    assert wire.encode(wire.decode(sent)) == sent


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_give_data_or_a_value_error(data):
    try:
        wire.decode(data)
    except ValueError:
        pass


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda i: st.lists(i) | st.dictionaries(st.sampled_from("ifcbtdszq"), i),
)


@given(JSON)
def test_any_json_gives_data_or_a_value_error(value):
    try:
        wire.decode(json.dumps(value).encode())
    except ValueError:
        pass


def test_not_a_number_and_infinities_travel():
    assert math.isnan(wire.decode(wire.encode(math.nan)))
    assert wire.decode(wire.encode([math.inf, -math.inf])) == [math.inf, -math.inf]


class Level(IntEnum):
    LOW = 3


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(x=1), {"x": 1}),
        (namedtuple("P", "x y")(1, 2), (1, 2)),
        (Level.LOW, 3),
        (type("S", (str,), {"__str__": lambda self: "other"})("own"), "own"),
    ],
)
def test_a_subclass_is_sent_as_its_base_content(value, plain):
    assert exact(wire.decode_native(wire.encode(value))) == exact(plain)


@pytest.mark.parametrize("value", [object(), range(3), (i for i in ()), len, int, bytearray(b"x")])
def test_other_objects_are_refused(value):
    with pytest.raises(wire.NotPlain):
        wire.encode(value)


def test_cycles_and_depth_are_refused():
    cycle: list = []
    cycle.append(cycle)
    deep: list = []
    for _ in range(wire.MAX_DEPTH):
        deep = [deep]
    for value in (cycle, deep):
        with pytest.raises(wire.NotPlain):
            wire.encode(value)


@pytest.mark.parametrize(
    "value", ["x" * 2000, b"x" * 2000, [0] * 2000, [1 << 10_000], dict.fromkeys(range(2000), 0), ["\n" * 600]]
)
def test_size_is_bounded(value):
    with pytest.raises(wire.TooLarge):
        wire.encode(value, limit=1000)
