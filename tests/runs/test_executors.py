"""The local executor: so many at a time, each with its cores; a failed command stops no other."""

import os
import subprocess
from pathlib import Path

import pytest
from planted import Fed

from rlvr_exp.core.errors import Interrupted
from rlvr_exp.records.context import RunContext
from rlvr_exp.runs import executors
from rlvr_exp.runs.executors import Command, Local, core_share


def test_a_failed_command_stops_no_other_and_no_more_than_asked_for_run_at_a_time(tmp_path: Path) -> None:
    feed = Fed(tmp_path, first="--version", bad="+stage=nothing", last="--version")
    Local(jobs=2).run(feed, RunContext(tmp_path, lambda _: None))
    events = feed.events
    assert [name for name, code in events if code is None] == ["first", "bad", "last"]
    assert {name: code for name, code in events if code is not None} == {"first": 0, "bad": 2, "last": 0}
    running = [sum(1 if code is None else -1 for _, code in events[: i + 1]) for i in range(len(events))]
    assert max(running) == 2
    assert "rlvr_exp" in (tmp_path / "first.txt").read_text() and "got: nothing" in (tmp_path / "bad.txt").read_text()


def test_a_request_to_stop_reaches_what_runs_and_begins_nothing_more(tmp_path: Path) -> None:
    context = RunContext(tmp_path, lambda _: None)
    feed = Fed(tmp_path, one="--version", two="--version")
    feed.began = lambda: setattr(context, "interrupted", True)
    with pytest.raises(Interrupted, match=r"run.resume=auto"):
        Local(jobs=1).run(feed, context)
    assert feed.events == [("one", None)]


class Sleeper(Local):
    """Starts commands of the shell in place of the program."""

    def start(self, command: Command, slot: int) -> "subprocess.Popen[str]":
        return subprocess.Popen(command.words, text=True)


def test_what_is_not_wanted_is_stopped_alone_by_a_signal_that_it_can_answer(tmp_path: Path) -> None:
    feed = Fed(tmp_path)
    ready = tmp_path / "ready"
    answer = f"trap 'exit 130' TERM; touch {ready}; while :; do sleep 0.05; done"
    feed.waiting = {"long": Command(("sh", "-c", answer), tmp_path), "other": Command(("sleep", "0.8"), tmp_path)}
    feed.unwanted = lambda: ["long"] if ready.exists() else []  # type: ignore[method-assign]
    Sleeper(jobs=2).run(feed, RunContext(tmp_path, lambda _: None))
    assert dict(feed.events) == {"long": 130, "other": 0}


def test_cores_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4})
    shares = [core_share(slot, 2) for slot in range(2)]
    assert shares == [[0, 2, 4], [1, 3]]
    assert core_share(0, 1) == core_share(3, 8) == [], "one has all; more commands than cores share them"


def test_threads_follow_the_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[dict[str, str], list[int]]] = []
    monkeypatch.setattr(executors, "start_program", lambda words, out, env, cores: given.append((env, cores)))
    monkeypatch.setattr(executors, "automatic_threads", lambda: 8)
    for threads in ("8", "1"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        Local(jobs=4).start(Command(("--version",), tmp_path / "x.txt"), 0)
    assert [env["OMP_NUM_THREADS"] for env, _ in given] == ["2", "1"]
