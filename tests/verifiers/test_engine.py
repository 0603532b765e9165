"""Each distinct request is judged once, from any thread at any time; faults reach the callers; nothing is left
hanging."""

import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.engine import LOG_CHARACTERS, CachedVerifier, Judgement, VerificationJob

PATIENCE = 30


class Manual(CachedVerifier):
    """Judges when the test decides. `prepare` gives the verdict on an empty candidate."""

    name, version = "manual", "1"

    def __init__(self, cache=None):
        super().__init__(cache)
        self.begun: list[tuple[str, Future]] = []
        self.changed = threading.Condition()

    def prepare(self, request):
        text = request.candidate.text
        return Verdict("failed", "parse") if not text else VerificationJob(text.encode(), text, request)

    def start(self, work):
        judging = Future()
        with self.changed:
            self.begun.append((work.payload, judging))
            self.changed.notify_all()
        return judging


class Broken(Manual):
    def start(self, work):
        raise OSError("no workers")


class Immediate(Manual):
    """Jobs that are done before `start` returns."""

    def start(self, work):
        judging = super().start(work)
        judging.set_result(Judgement(Verdict("passed")))
        return judging


def ask(engine, text):
    return engine.submit(Request(None, Candidate(text)))


PASSED = Judgement(Verdict("passed", passed=1, total=1, seconds=0.5))


def test_equal_requests_in_flight_are_judged_once_and_the_others_say_cached():
    engine = Manual()
    first, second, other = ask(engine, "a"), ask(engine, "a"), ask(engine, "b")
    assert [text for text, _ in engine.begun] == ["a", "b"]
    engine.begun[0][1].set_result(PASSED)
    assert (first.result().cached, second.result().cached, other.done()) == (False, True, False)
    assert engine.metrics()["joined"] == 1 and engine.metrics()["judged"] == 2


def test_what_is_known_is_not_judged_again_and_keeps_its_seconds():
    engine = Manual()
    first = ask(engine, "a")
    engine.begun[0][1].set_result(PASSED)
    again = ask(engine, "a").result(PATIENCE)
    assert again.cached and again.seconds == first.result().seconds == 0.5 and len(engine.begun) == 1
    assert engine.metrics()["cache_hits_memory"] == 1 and engine.metrics()["cache_misses"] == 1


@pytest.mark.parametrize(
    "judged", [Judgement(Verdict("failed", "timeout"), cacheable=False), Judgement(Verdict("no_verdict"))]
)
def test_a_mood_of_the_machine_is_judged_again(judged):
    engine = Manual()
    ask(engine, "a")
    engine.begun[0][1].set_result(judged)
    ask(engine, "a")
    assert len(engine.begun) == 2


def test_what_needs_no_judging_is_answered_at_once():
    engine = Manual()
    assert ask(engine, "").result(0).bucket == "parse" and not engine.begun
    assert engine.metrics()["settled"] == 1


@pytest.mark.parametrize("fault", [RuntimeError("worker"), KeyboardInterrupt()])
def test_a_fault_reaches_all_who_wait_and_is_forgotten(fault):
    engine = Manual()
    first, second = ask(engine, "a"), ask(engine, "a")
    engine.begun[0][1].set_exception(fault)
    for future in (first, second):
        assert future.exception(PATIENCE) is fault
    ask(engine, "a")
    assert len(engine.begun) == 2


def test_work_that_cannot_be_started_is_told_and_leaves_nothing_in_flight():
    engine = Broken()
    for _ in range(2):
        with pytest.raises(OSError, match="no workers"):
            ask(engine, "a")


def test_judging_that_is_cancelled_is_a_fault_and_no_hang():
    engine = Manual()
    future = ask(engine, "a")
    engine.begun[0][1].cancel()
    assert future.exception(PATIENCE) is not None


def test_an_asker_cannot_cancel_what_others_wait_for():
    engine = Manual()
    first, second = ask(engine, "a"), ask(engine, "a")
    assert not first.cancel() and not second.cancel()
    engine.begun[0][1].set_result(PASSED)
    assert second.result(PATIENCE).outcome == "passed"


def test_closing_answers_what_is_in_flight_and_takes_no_more():
    engine = Manual()
    first, second = ask(engine, "a"), ask(engine, "a")
    engine.close()
    for future in (first, second):
        assert "closed before this verdict" in str(future.exception(PATIENCE))
    engine.begun[0][1].set_result(PASSED)  # A late answer of a worker disturbs nothing.
    with pytest.raises(ValueError, match="closed"):
        ask(engine, "b")


def test_verdicts_that_are_done_at_once_do_not_deadlock():
    engine = Immediate()
    assert [verdict.cached for verdict in engine.verify([Request(None, Candidate("a"))] * 3)] == [False, True, True]


def test_a_long_log_is_cut_in_its_middle():
    engine = Manual()
    future = ask(engine, "a")
    engine.begun[0][1].set_result(Judgement(Verdict("failed", "parse", log="<" + "x" * 10**6 + ">")))
    log = future.result().log
    assert len(log) < LOG_CHARACTERS + 20 and log[0] == "<" and log[-1] == ">"


def test_another_version_tool_or_isolation_is_another_verdict(tmp_path):
    from test_cache import Options

    ways = [("1", "x", "user"), ("2", "x", "user"), ("1", "y", "user"), ("1", "x", "strict")]
    for (version, tool, level), begun in [(way, 1) for way in ways] + [(way, 0) for way in ways]:
        engine = Immediate(Options(path=str(tmp_path)))
        engine.version, engine.tool = version, lambda tool=tool: {"tool": tool}
        engine.isolation = lambda level=level: {"level": level}
        ask(engine, "a")
        engine.close()
        assert len(engine.begun) == begun


@pytest.mark.parametrize(
    ("runs_candidates", "open_files", "kept"), [(True, True, 1), (True, False, 0), (False, True, 0)]
)
def test_where_candidates_could_write_files_no_verdict_is_taken_from_disk(runs_candidates, open_files, kept, tmp_path):
    from test_cache import Options

    for begun in (1, kept):
        engine = Immediate(Options(path=str(tmp_path)))
        engine.runs_candidates = runs_candidates
        engine.isolation = lambda: {"level": "process", "not_isolated": ["files_read_only"] if open_files else []}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            ask(engine, "a")
        engine.close()
        assert len(engine.begun) == begun


def test_many_threads_asking_alike_start_each_work_once():
    engine = Manual()
    with ThreadPoolExecutor(16) as threads:
        futures = [threads.submit(ask, engine, text) for text in "abcd" * 200]
        answers = [future.result(PATIENCE) for future in futures]
    assert sorted(text for text, _ in engine.begun) == list("abcd")
    for _, judging in engine.begun:
        judging.set_result(PASSED)
    assert sum(not answer.result(PATIENCE).cached for answer in answers) == 4


def test_verdicts_come_as_they_are_ready():
    engine = Manual()
    stream = engine.as_ready(Request(None, Candidate(text)) for text in "abc")

    def finish():
        with engine.changed:
            engine.changed.wait_for(lambda: len(engine.begun) == 3, PATIENCE)
        for place in (2, 0, 1):
            engine.begun[place][1].set_result(PASSED)

    thread = threading.Thread(target=finish)
    thread.start()
    assert [index for index, _ in stream] == [2, 0, 1]
    thread.join()


def test_a_stream_is_taken_no_further_than_the_window():
    engine, taken = Manual(), []

    def requests():
        for number in range(100):
            taken.append(number)
            yield Request(None, Candidate(str(number)))

    stream = engine.as_ready(requests(), window=7)
    finish = threading.Thread(target=lambda: (wait_for(engine, 7), engine.begun[0][1].set_result(PASSED)))
    finish.start()
    assert next(stream)[0] == 0 and len(taken) == 7
    finish.join()


def wait_for(engine, count):
    with engine.changed:
        assert engine.changed.wait_for(lambda: len(engine.begun) >= count, PATIENCE)


@given(st.lists(st.sampled_from("abcdef") | st.just(""), max_size=40), st.integers(1, 5))
def test_in_bulk_every_request_has_its_own_answer(texts, window):
    engine = Immediate()
    answers = dict(engine.as_ready((Request(None, Candidate(text)) for text in texts), window))
    assert [answers[index].outcome for index in range(len(texts))] == ["passed" if t else "failed" for t in texts]
    assert len(engine.begun) == len(set(texts) - {""})


def test_a_log_can_be_written_whatever_a_candidate_raised():
    with Manual() as engine:
        asked = engine.submit(Request(None, Candidate("x")))
        engine.begun[0][1].set_result(Judgement(Verdict("failed", "runtime_error", log="ValueError: \ud800")))
        assert asked.result(PATIENCE).log.encode() == b"ValueError: \\ud800"
