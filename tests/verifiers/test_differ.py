"""Differences in words: bounded in size and in work."""

import pytest

from rlvr_exp.sandbox import wire
from rlvr_exp.verifiers import compare


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
