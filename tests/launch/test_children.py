"""A stage's child process: its events, stopped by one signal, killed by two, and gone with its parent."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlvr_exp.launch.children import Ended, run_children

ROOT = Path(__file__).parents[2]
HEAD = """
import json, os, signal, subprocess, sys, time
from rlvr_exp.launch.children import hold_lifeline
directory, progress, life = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hold_lifeline(life)
def say(**event):
    os.write(progress, (json.dumps(event) + "\\n").encode())
"""
PATIENT = """
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
say(kind="ready")
while not stopped: time.sleep(0.02)
sys.exit(130)
"""
DEAF = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say(kind="ready")
time.sleep(60)
"""
PARENT = """
import os, sys
from pathlib import Path
from rlvr_exp.launch.children import run_children
def listen(event):
    Path("heard").write_text(str(event["pid"]))
run_children("child_program", ["."], Path("."), [os.environ], listen)
"""


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Signals are heard here, also where the tests run under nohup."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.chdir(tmp_path)
    return lambda body: (tmp_path / "child_program.py").write_text(HEAD + body)


def run(tmp_path: Path, listen: Callable[..., None] = lambda event: None) -> Ended:
    return run_children("child_program", [str(tmp_path)], tmp_path, [os.environ], listen)


def signals(*numbers: int) -> Callable[..., None]:
    """A listener that sends this process signals, a moment apart, once the child is ready."""

    def send() -> None:
        for number in numbers:
            os.kill(os.getpid(), number)
            time.sleep(0.3)

    return lambda event: threading.Thread(target=send).start()


def test_events_exit_code_and_log(tmp_path: Path, program: Callable[[str], None]) -> None:
    program(
        'say(kind="step", step=1); say(kind="note", text="ü"); print("out"); print("err", file=sys.stderr); sys.exit(3)'
    )
    heard: list[object] = []
    assert run(tmp_path, heard.append) == Ended(3, stop_requested=False)
    assert heard == [{"kind": "step", "step": 1}, {"kind": "note", "text": "ü"}]
    assert set((tmp_path / "log.txt").read_text().split()) == {"out", "err"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_and_waited_for(tmp_path: Path, program: Callable[[str], None], number: int) -> None:
    program(PATIENT)
    before = signal.getsignal(number)
    assert run(tmp_path, signals(number)) == Ended(130, stop_requested=True)
    assert signal.getsignal(number) is before


def test_a_second_signal_kills(tmp_path: Path, program: Callable[[str], None]) -> None:
    program(DEAF)
    start = time.monotonic()
    assert run(tmp_path, signals(signal.SIGINT, signal.SIGINT)) == Ended(-9, stop_requested=True)
    assert time.monotonic() - start < 20


def test_a_last_line_cut_short_is_dropped(tmp_path: Path, program: Callable[[str], None]) -> None:
    program('say(kind="step", step=1); os.write(progress, b\'{"kind": "st\'); os.kill(os.getpid(), 9)')
    heard: list[object] = []
    assert run(tmp_path, heard.append).returncode == -9 and len(heard) == 1


def test_a_failing_listener_leaves_no_child(tmp_path: Path, program: Callable[[str], None]) -> None:
    program('say(kind="ready", pid=os.getpid()); time.sleep(60)')
    pids: list[int] = []

    def fail(event: dict[str, int]) -> None:
        pids.append(event["pid"])
        raise ValueError("drawing failed")

    with pytest.raises(ValueError, match="drawing failed"):
        run(tmp_path, fail)
    assert not alive(pids[0])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def killed_parent(tmp_path: Path, program: Callable[[str], None]) -> Iterator[Callable[[str], int]]:
    """Start a parent with a child that runs the given body, kill -9 the parent, return the child's pid."""
    parents: list[subprocess.Popen[bytes]] = []

    def start(body: str) -> int:
        program(body)
        parents.append(subprocess.Popen([sys.executable, "-c", PARENT], cwd=tmp_path))
        for _ in range(400):
            if (tmp_path / "heard").exists() and (tmp_path / "heard").read_text():
                break
            time.sleep(0.05)
        child = int((tmp_path / "heard").read_text())
        assert alive(child)
        parents[-1].kill()
        return child

    yield start
    for parent in parents:
        parent.kill()
        parent.wait()


@pytest.mark.parametrize("way", ["kernel", "pipe"])
def test_a_child_dies_with_its_parent(killed_parent: Callable[[str], int], way: str) -> None:
    """Both ways on their own: without the kernel's signal, and with the reading thread unable to act."""
    without = {
        "kernel": "os.killpg = os.kill = lambda *_: None",
        "pipe": "import ctypes; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)",
    }
    child = killed_parent(without[way] + '\nsay(kind="ready", pid=os.getpid()); time.sleep(60)')
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def test_a_stop_reaches_the_child_where_the_terminal_is_gone(
    tmp_path: Path, program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.close(read)
    program(PATIENT)
    with open(write, "w") as gone:
        monkeypatch.setattr(sys, "stderr", gone)
        assert run(tmp_path, signals(signal.SIGTERM)) == Ended(130, True)


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path, program: Callable[[str], None]) -> None:
    """As under nohup."""
    program("say(kind='ready')\ntime.sleep(0.6)\nsys.exit(0)")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(tmp_path, signals(signal.SIGHUP)) == Ended(0, False)
    finally:
        signal.signal(signal.SIGHUP, before)
