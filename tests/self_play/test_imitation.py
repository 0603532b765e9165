"""Which rows are imitated: every limit holds, and each can be switched off."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import failed, task

from rlvr_exp.self_play.imitation import Limits, chosen

HOSTS = [task(f"t{n}", family=f"f{n % 2}", first=n) for n in range(4)]
ROWS = st.lists(
    st.builds(
        lambda host, number, output, right: failed(HOSTS[host], f"x = {number}", [[[output]], [[2]], [[3]]], right),
        *[st.integers(0, 3), st.integers(0, 20), st.integers(0, 9), st.integers(0, 2)],
    ),
    max_size=40,
)
LIMITS = st.builds(
    Limits,
    st.sampled_from(["diverse", "best", "random"]),
    *[st.integers(0, 5), st.integers(0, 8), st.integers(0, 12)],
)


@given(rows=ROWS, limits=LIMITS, seed=st.integers(0, 5))
def test_no_limit_is_passed_and_none_that_is_off_leaves_out(rows, limits: Limits, seed: int) -> None:
    found = chosen(rows, limits, seed, 0)
    assert not Counter(map(id, found)) - Counter(map(id, rows))
    tasks, families = (Counter(getattr(row.host, name) for row in found) for name in ("id", "family"))
    assert not limits.per_task or max(tasks.values(), default=0) <= limits.per_task
    assert not limits.per_family or max(families.values(), default=0) <= limits.per_family
    assert not limits.per_round or len(found) <= limits.per_round
    if not (limits.per_task or limits.per_family or limits.per_round):
        assert len(found) == len(rows)
    assert found == chosen(rows, limits, seed, 0)


def test_half_are_the_best_and_half_the_most_different() -> None:
    host = HOSTS[0]
    alike = [failed(host, f"x = {n}", [[[1]], [[1]], [[1]]], passed=2) for n in range(6)]
    other = failed(host, "y = 1", [[[5]], [[6]], [[7]]], passed=0)
    assert other in chosen([*alike, other], Limits("diverse", 2, 0, 0), 0, 0)
    assert other not in chosen([*alike, other], Limits("best", 2, 0, 0), 0, 0)


@pytest.mark.parametrize("choose", ["diverse", "best", "random"])
def test_another_round_is_another_order(choose: str) -> None:
    rows = [failed(HOSTS[n % 4], f"x = {n}", [[[n % 10]], [[2]], [[3]]]) for n in range(30)]
    orders = [[row.solution.key for row in chosen(rows, Limits(choose, 0, 0, 0), 0, number)] for number in (0, 1)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])
