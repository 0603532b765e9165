"""The pool: order, workers' lives, what is left behind, and the weaker levels of isolation."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from rlvr_exp.core.errors import InputError
from rlvr_exp.sandbox import calls
from rlvr_exp.sandbox.jobs import Job, JobLimits, frames
from rlvr_exp.sandbox.pool import Pool

LIMITS = JobLimits(cpu_s=0.3, wall_s=5.0, memory_mb=100)
HOSTILE = (
    "import os\nos.kill(os.getppid(), 9)",
    "import os\nos.kill(-1, 9)",
    "import os\nos.killpg(0, 9)",
    "while True: pass",
    "import os\nwhile True: os.fork()",
    "while True: print('x' * 1000)",
    "import ctypes\nctypes.string_at(0)",
    "import os\nos._exit(0)",
    "import os\nos.closerange(0, 100)",
    "x = bytearray(1 << 40)",
    "import os\nwhile True: os.write(90, b'x' * 1000)",
    "import os\nopen('left', 'w').write('x')\nos.makedirs('a/b')",
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n",
)


def job(code: str, limits: JobLimits = LIMITS, args: tuple = ()) -> Job:
    return Job(calls.pack(code, "f", [args], 1 << 16), limits)


def answer(value: int) -> Job:
    return job(f"def f(): return {value}")


def descendants() -> list[int]:
    """Every process below this one, as the kernel tells it."""
    found, ahead = [], [os.getpid()]
    while ahead:
        pid = ahead.pop()
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        found += [int(child) for child in children]
        ahead += [int(child) for child in children]
    return found


def resident_kb(pids: list[int]) -> int:
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * 4


def test_results_come_in_the_order_of_the_jobs():
    with_delay = [job(f"import time\ntime.sleep({0.05 * (i % 3)})\ndef f(): return {i}") for i in range(9)]
    pool = Pool(3)
    try:
        values = [frames(result.records)[0] for result in pool.run(with_delay)]
    finally:
        pool.close()
    assert values == [b'["value",0,%d]' % i for i in range(9)]


def test_two_hundred_hostile_candidates_leave_nothing_behind():
    pool = Pool(2)
    try:
        pool.run([answer(1)] * 4 + [job(code) for code in HOSTILE])
        pids, files = sorted(descendants()), sorted(os.listdir("/proc/self/fd"))
        memory = resident_kb(pids)
        codes = [code for code in HOSTILE if "while True: pass" not in code] * 17
        results = pool.run([job(code) for code in codes[:200]])
        assert len(results) == 200 and not {result.end for result in results} & {"lost", "unavailable"}
        assert sorted(descendants()) == pids
        assert sorted(os.listdir("/proc/self/fd")) == files
        assert resident_kb(pids) < memory * 1.1 + 1000
        assert frames(pool.run([answer(7)])[0].records)[0] == b'["value",0,7]'
    finally:
        pool.close()


@pytest.mark.parametrize("level", ["namespaces", "user", "process"])
def test_forked_descendants_end_with_their_candidate(level):
    pool = Pool(1, processes=4, levels=(level,))
    try:
        if pool.isolation()["level"] == "none":
            pytest.skip("this machine has no such level")
        pool.run([answer(1)])
        before = descendants()
        orphan = "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n    os._exit(0)\n"
        orphan = f"import os, time\n{orphan}def f(): return 1"
        # Root has no limit on its processes: where candidates are root, the bomb is a small one.
        bomb = "import os\n" + ("for _ in range(7): os.fork()" if level == "process" else "while True: os.fork()")
        results = pool.run([job(orphan), job(bomb)])
        assert results[0].end == "exit" and results[0].wall_s < 5
        assert sorted(descendants()) == sorted(before)
    finally:
        pool.close()


def test_verdicts_do_not_depend_on_workers_or_order():
    codes = [f"def f(): return {i} // {i % 4}" for i in range(12)] + [code for code in HOSTILE if "while" not in code]

    def seen(workers: int, order: list[int]) -> dict[int, tuple]:
        pool = Pool(workers)
        try:
            results = pool.run([job(codes[i]) for i in order])
        finally:
            pool.close()
        return {i: (result.end, result.status, result.records) for i, result in zip(order, results)}

    order = list(range(len(codes)))
    shuffled = random.Random(1).sample(order, len(order))
    assert seen(1, order) == seen(4, shuffled)


def test_wall_clock_alone_is_retried_once_with_twice_the_time():
    pool = Pool(1)
    try:
        sleeper = "import time\ndef f(): time.sleep(0.7)"
        first, second = pool.run([job(sleeper, JobLimits(wall_s=0.5)), job(sleeper, JobLimits(wall_s=0.2))])
    finally:
        pool.close()
    assert (first.end, first.tries) == ("exit", 2)
    assert (second.end, second.tries) == ("wall", 2)


def kill_workers_while_running(pool: Pool, times: int) -> threading.Thread:
    def run() -> None:
        for _ in range(times):
            before = pool.pids()
            time.sleep(0.3)
            for pid in pool.pids():
                os.kill(pid, signal.SIGKILL)
            while pool.pids() == before:
                time.sleep(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.parametrize(("deaths", "end"), [(1, "exit"), (2, "lost")])
def test_a_job_whose_worker_dies_runs_once_more_alone(deaths, end):
    pool = Pool(1)
    try:
        pool.run([answer(1)])
        thread = kill_workers_while_running(pool, deaths)
        slow, quick = pool.run([job("import time\ntime.sleep(1)\ndef f(): return 1"), answer(2)])
        thread.join()
        assert (slow.end, slow.tries) == (end, 2)
        assert frames(quick.records)[0] == b'["value",0,2]'
    finally:
        pool.close()


def test_without_workers_jobs_are_unavailable_not_failed(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    pool = Pool(2)
    assert [result.end for result in pool.run([answer(1), answer(2)])] == ["unavailable"] * 2
    assert pool.isolation()["level"] == "none"
    pool.close()


@pytest.mark.parametrize("level", ["namespaces", "user", "process"])
def test_every_level_answers_and_says_what_it_leaves_open(level):
    pool = Pool(1, levels=(level,))
    try:
        told = pool.isolation()
        if told["level"] == "none":
            pytest.skip(f"this machine has no such level: {told['fault']}")
        assert told["level"] == level
        assert ("files_read_only" in told["isolated"]) == (level == "namespaces")
        assert set(told["isolated"]).isdisjoint(told["not_isolated"])
        before = scratches()
        kill, _, honest = pool.run([job(HOSTILE[0]), job(HOSTILE[11]), job("import wave\ndef f(): return 3")])
        assert b"PermissionError" in kill.records
        assert frames(honest.records)[0] == b'["value",0,3]'
        assert scratches() == before
        assert len(pool.pids()) == 1
    finally:
        pool.close()
    assert len(scratches()) == len(before) - (level != "namespaces")


def scratches() -> list[str]:
    return sorted(name for name in os.listdir(tempfile.gettempdir()) if name.startswith("rlvr-sandbox-"))


@pytest.mark.parametrize("forked", [False, True], ids=["alone", "while a fork of it holds the pipes"])
def test_workers_end_within_seconds_of_a_killed_parent(forked):
    code = (
        "import os, time; from rlvr_exp.sandbox import calls; from rlvr_exp.sandbox.pool import Pool\n"
        "from rlvr_exp.sandbox.jobs import Job, JobLimits\n"
        "pool = Pool(2); pool.run([Job(calls.pack('', 'f', [()], 100))] * 2)\n"
        f"fork = os.fork() if {forked} else os.getpid()\n"
        "if fork == 0: time.sleep(30); os._exit(0)\n"
        "print(fork, *pool.pids(), flush=True)\n"
        "pool.run([Job(calls.pack('import time; time.sleep(60)', 'f', [()], 100), JobLimits(wall_s=60.0))] * 2)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    fork, *supervisors = [int(word) for word in parent.stdout.readline().split()]
    time.sleep(0.3)
    zygotes = [
        int(word) for pid in supervisors for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]
    assert len(supervisors) == len(zygotes) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    try:
        while any(alive(pid) for pid in supervisors + zygotes):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        if forked:
            os.kill(fork, signal.SIGKILL)


def test_workers_outlive_the_thread_that_started_them():
    pool = Pool(1)
    try:
        thread = threading.Thread(target=pool.run, args=([answer(1)],))
        thread.start()
        thread.join()
        before = pool.pids()
        time.sleep(1.2)
        assert frames(pool.run([answer(2)])[0].records)[0] == b'["value",0,2]'
        assert pool.pids() == before
    finally:
        pool.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_large_payloads_pass_the_pipe():
    pool = Pool(1)
    try:
        result = pool.run([job("def f(x): return len(x)", args=("y" * 3_000_000,))])[0]
    finally:
        pool.close()
    assert frames(result.records)[0] == b'["value",0,3000000]'


def test_negative_workers_are_refused():
    with pytest.raises(InputError, match="sandbox.workers"):
        Pool(-1)


def test_a_closed_pool_refuses_work():
    pool = Pool(1)
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        pool.run([answer(1)])
