"""Containers that both processes hold: their parts are the same objects on either side."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.sandbox.harnesses.pytest.containers import Shared, _parts
from rlvr_exp.sandbox.harnesses.pytest.values import Values

LEAVES = st.integers(0, 3) | st.text(max_size=2)
DATA = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=3) | st.dictionaries(LEAVES, part, max_size=3), max_leaves=8
)
CONTAINERS = st.lists(DATA, min_size=1, max_size=3)


def crossing(*values):
    """Each value on the other side, and the two ends. The values stay alive as long as the caller has them."""
    ends = [Shared(side, Values(None)) for side in (0, 1)]
    return [ends[1].value(json.loads(json.dumps(ends[0].code(value)))) for value in values], ends


def identities(values):
    """For each place the first place with the same object."""
    first: dict[int, tuple] = {}
    places = [((at, *place), part) for at, value in enumerate(values) for place, part in _parts(value)]
    return [(place, first.setdefault(id(part), place)) for place, part in places]


@given(CONTAINERS, st.data())
def test_parts_of_containers_keep_their_identity(source, data):
    parts = [part for _, part in _parts(source)]
    other = [data.draw(st.sampled_from(parts)) for _ in range(3)] + data.draw(CONTAINERS)
    values = [source, other, data.draw(st.sampled_from(parts))]
    received, _ = crossing(*values)
    assert received == values
    assert identities(received) == identities(values)


def test_a_part_changes_only_with_its_own_container():
    source = [{"a": 1}, {"b": 2}]
    other = [source[1], source[0]]
    received, (sender, receiver) = crossing(source, other)
    other[1] = {"a": 7}
    receiver.apply(json.loads(json.dumps(sender.changes())), lambda label, new: True)
    assert received == [[{"a": 1}, {"b": 2}], [{"b": 2}, {"a": 7}]]
    assert received[1][0] is received[0][1]


def test_a_part_that_was_changed_on_one_side_arrives_as_a_copy():
    source = [{"a": 1}]
    (received,), (sender, receiver) = crossing(source)
    received[0]["a"] = 5
    part = receiver.value(json.loads(json.dumps(sender.code(source[0]))))
    assert part == {"a": 1} and received == [{"a": 5}]


def test_a_view_shows_later_changes():
    table = {"a": 1}
    (keys,), (sender, receiver) = crossing(table.keys())
    table["b"] = 2
    receiver.apply(json.loads(json.dumps(sender.changes())), lambda label, new: True)
    assert [*keys] == ["a", "b"]
