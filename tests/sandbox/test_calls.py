"""The harness of Python functions, driven in this process."""

import signal
import time

import pytest

from rlvr_exp.sandbox import calls, wire
from rlvr_exp.sandbox.reporter import Reporter


@pytest.fixture
def timer():
    before = signal.getsignal(signal.SIGPROF)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_record_that_is_being_sent_is_not_cut_by_the_cases_timer(timer):
    sent = []

    def slowly(record: bytes) -> None:
        burn(0.15)
        sent.append(wire.decode(record))

    reporter = Reporter(slowly, 1 << 20, "")

    def one(index: int, given: object) -> bool:
        reporter.value(index, given)
        burn(0.15)
        return True

    assert calls._timed(0.05, one, 0, 7, reporter)
    assert sent == [["value", 0, 7]]


def test_a_case_past_its_time_before_its_record_is_a_timeout(timer):
    sent = []
    reporter = Reporter(lambda record: sent.append(wire.decode(record)[:3]), 1 << 20, "")
    for index in range(2):
        assert calls._timed(0.05, lambda *_: burn(5.0), index, 7, reporter)
    assert sent == [["error", 0, "timeout"], ["error", 1, "timeout"]]
