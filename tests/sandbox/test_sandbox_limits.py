"""What a candidate can use up, and whether the next one on the same worker is judged as if nothing had happened."""

import os
import time

import pytest
from pools import JobLimits, answer, descendants, job, pool_at, resident_kb, told

from rlvr_exp.sandbox.isolation.jail import LEVELS

LIMITS = JobLimits(cpu_s=0.3, wall_s=6, memory_mb=100, output_kb=64, result_kb=256)
QUICK = JobLimits(cpu_s=0.5, wall_s=0.15, memory_mb=100)


@pytest.fixture(scope="module", params=["namespaces", "process"])
def alone(request):
    """One process a candidate: what limits it is the same on the levels between."""
    with pool_at(request.param) as pool:
        yield pool


@pytest.fixture(scope="module", params=LEVELS)
def several(request):
    """The way a tree is ended differs from level to level."""
    with pool_at(request.param, processes=4) as pool:
        yield pool


def judged(pool, code: str, limits: JobLimits = LIMITS, peer: str = ""):
    """The result, once the same worker has answered an honest candidate and nothing else is alive below it."""
    pool.run([answer(1)])
    before, began = sorted(descendants()), time.monotonic()
    result = pool.run([job(code, limits, peer)])[0]
    assert told(pool.run([answer(7)])[0]) == ["7"]
    assert sorted(descendants()) == before
    assert time.monotonic() - began < 15
    return result


@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("while True: pass", "cpu"),
        ("import signal\nfor n in (2, 15, 14, 24, 27): signal.signal(n, signal.SIG_IGN)\n9 ** 9 ** 9", "cpu"),
        ("import re\nre.match('(a+)+$', 'a' * 60 + 'b')", "cpu"),
        (
            "import threading\ndef f():\n    while True: pass\nfor _ in range(5): threading.Thread(target=f).start()\ntime.sleep(9)",
            "cpu",
        ),
        ("while True: print('x' * 1000)", "output"),
        ("while True: os.write(2, b'x' * 10000)", "output"),
        ("while True: os.write(90, b'x' * 10000)", "output"),
    ],
)
def test_a_limit_ends_it(alone, code, end):
    assert judged(alone, code).end == end


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(60)",
        "import signal\nsignal.pause()",
        "import signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import signal\nsignal.pthread_sigmask(signal.SIG_SETMASK, range(1, 65))\ntime.sleep(60)",
        "r, w = os.pipe()\nos.read(r, 1)",
        "import threading\nthreading.Lock().acquire() or 1\nl = threading.Lock()\nl.acquire()\nl.acquire()",
        "import sys\nsys.stdin.close()\nos.closerange(0, 100)\ntime.sleep(60)",
    ],
)
def test_waiting_for_ever_falls_to_the_wall_clock(alone, code):
    assert judged(alone, code, QUICK).end == "wall"


@pytest.mark.parametrize(
    "code",
    [
        "bytearray(1 << 40)",
        "keep = []\nwhile True: keep.append(bytes(1 << 22))",
        "import mmap\nkeep = [mmap.mmap(-1, 1 << 24) for _ in range(100)]",
        "import mmap\nf = open('x', 'wb+')\nf.truncate(1 << 17)\nkeep = [mmap.mmap(f.fileno(), 0) for _ in range(10000)]",
        "import threading\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
        "import threading\nthreading.stack_size(32768)\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
        "keep = [os.pipe() for _ in range(1000)]",
        "import socket\nkeep = [socket.socketpair() for _ in range(1000)]",
        "while True: os.fork()",
        "open('x', 'wb').write(bytes(65 << 20))",
        "open('x', 'wb').truncate(1 << 40)",
        "import ctypes\nctypes.string_at(0)",
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(n): return f(n + 1)\nf(0)",
        "import sys\nsys.setrecursionlimit(10 ** 9)\nx = []\nfor _ in range(10 ** 5): x = [x]\nrepr(x)",
        "exec('(' * 10 ** 5)",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        "import faulthandler, signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nos.abort()",
    ],
)
def test_a_bomb_hurts_itself_alone(alone, code):
    result = judged(alone, code, JobLimits(cpu_s=0.5, wall_s=6, memory_mb=100, result_kb=256))
    assert result.end in ("exit", "cpu", "wall", "memory") and (result.end != "exit" or result.status != 0)
    assert result.peak_kb < 200_000


def test_the_scratch_is_bounded(alone):
    if "scratch_bounded" not in alone.isolation()["isolated"]:
        pytest.skip("no mounts at this level")
    fill = "n = 0\ntry:\n    for n in range(2000): open(str(n), 'wb').write(bytes(1 << 18))\nexcept OSError: tell(n)"
    assert int(told(judged(alone, fill))[0]) <= 256
    many = "n = 0\ntry:\n    for n in range(100000): open(str(n), 'x').close()\nexcept OSError: tell(n)"
    assert int(told(judged(alone, many, JobLimits(cpu_s=3)))[0]) <= 4096


@pytest.mark.parametrize(
    "code",
    [
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n    os._exit(0)\ntell(1)",
        "import signal\nif os.fork() == 0:\n    for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n    time.sleep(60)\ntell(1)",
        "if os.fork() == 0:\n    os.setpgid(0, 0)\n    os.close(1); os.close(2); os.close(90)\n    time.sleep(60)\ntell(1)",
        "import signal\nif os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\ntell(1)",
        "import subprocess, sys\nsubprocess.Popen(['/bin/sh', '-c', 'while :; do :; done'])\ntell(1)",
    ],
)
def test_orphans_end_with_their_candidate(several, code):
    result = judged(several, code)
    assert result.end == "exit" and told(result) == ["1"] and result.wall_s < 4


@pytest.mark.parametrize("code", ["while True: os.fork()", "while True:\n    if os.fork() == 0: os.setsid()"])
def test_a_fork_bomb_where_processes_are_allowed(several, code):
    result = judged(several, code)
    assert result.end in ("exit", "cpu", "memory", "wall")


def test_time_of_children_counts_together(several):
    spin = "for _ in range(3):\n    if os.fork() == 0:\n        while True: pass\ntime.sleep(60)"
    result = judged(several, spin, JobLimits(cpu_s=0.4, wall_s=20, memory_mb=100))
    assert result.end == "cpu" and result.cpu_s < 4


def test_memory_of_children_counts_together(several):
    hold = "for _ in range(3):\n    if os.fork() == 0:\n        x = bytearray(80 << 20)\n        time.sleep(60)\ntime.sleep(60)"
    result = judged(several, hold, JobLimits(cpu_s=5, wall_s=8, memory_mb=100))
    assert result.end == "memory"


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_hundreds_of_candidates_leave_memory_and_descriptors_as_they_were(level):
    codes = ["tell(1)", "open('x', 'w').write('y' * 9999)", "send(b'x' * 99999)", "print('x' * 9999)", "os._exit(1)"]
    with pool_at(level) as pool:
        pool.run([job(code, LIMITS) for code in codes * 4])
        pids = [*pool.pids(), *(below for pid in pool.pids() for below in descendants(pid))]
        files, memory = open_files(pids), resident_kb(pids)
        pool.run([job(code, LIMITS) for code in codes * 20])
        assert [*pool.pids(), *(below for pid in pool.pids() for below in descendants(pid))] == pids
        until = time.monotonic() + 5
        while open_files(pids) > files:  # a supervisor may be at its idle work
            assert time.monotonic() < until
        assert resident_kb(pids) < memory * 1.05 + 500


def open_files(pids: list[int]) -> int:
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
