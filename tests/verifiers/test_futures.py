"""Verdicts come back in the order of the requests, and the number in flight is bounded."""

import threading
import time
from concurrent.futures import Future

from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.verifiers import futures as futures_module
from rlvr_exp.verifiers.base import Verdict
from rlvr_exp.verifiers.futures import WINDOW, OrderedFutures


def in_flight(count: int, size: int = 1) -> tuple[OrderedFutures, list[Future]]:
    flight, futures = OrderedFutures(), [Future() for _ in range(count)]
    for index, future in enumerate(futures):
        flight.add(index, future, size)
    return flight, futures


@given(st.permutations(range(8)))
def test_the_head_is_waited_for(order):
    flight, futures = in_flight(8)
    taken = []
    for index in order:
        futures[index].set_result(Verdict("passed"))
        taken += [one.id for one in flight.take()]
        assert taken == list(range(len(taken)))
    assert len(taken) == 8 and len(flight) == 0


def test_it_is_full_by_count_until_a_verdict_comes():
    flight, futures = in_flight(WINDOW)
    assert flight.full
    futures[-1].set_result(Verdict("passed"))
    assert not flight.full, "another may be asked while the head is waited for"


def test_it_is_full_by_the_size_of_its_rows():
    flight, futures = in_flight(2, futures_module.MOST_BYTES // 2)
    assert flight.full
    futures[1].set_result(Verdict("passed"))
    assert not flight.full


def test_it_is_full_of_verdicts_that_wait_for_one_before_them(monkeypatch):
    monkeypatch.setattr(futures_module, "MOST_WAITING", 5)
    flight, futures = in_flight(5)
    for future in futures[1:]:
        future.set_result(Verdict("passed"))
    assert flight.full
    futures[0].set_result(Verdict("passed"))
    assert len(list(flight.take())) == 5 and not flight.full


def test_waiting_ends_with_a_verdict_or_soon():
    flight, futures = in_flight(1)
    began = time.monotonic()
    flight.wait()
    assert 0.1 < time.monotonic() - began < 5
    thread = threading.Timer(0.05, futures[0].set_result, [Verdict("passed")])
    thread.start()
    while not list(flight.take()):
        flight.wait()
    thread.join()


def test_what_stands_before_a_verdict_is_waited_for_and_no_more():
    flight, futures = in_flight(4)
    futures[2].set_result(Verdict("passed"))
    threads = [threading.Timer(0.05, futures[index].set_result, [Verdict("passed")]) for index in (0, 1)]
    for thread in threads:
        thread.start()
    assert [one.id for one in flight.take_before_last_done(30.0)] == [0, 1, 2] and len(flight) == 1


def test_a_gap_that_does_not_close_is_given_up():
    flight, futures = in_flight(2)
    futures[1].set_result(Verdict("passed"))
    assert list(flight.take_before_last_done(0.3)) == []
