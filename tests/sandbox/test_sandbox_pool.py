"""The pool: order, threads that submit, workers' lives, and leftovers."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from pools import (
    HARNESS,
    alive,
    answer,
    begin_counting,
    descendants,
    job,
    pool_of,
    resident_kb,
    settled,
    told,
)

from rlvr_exp.core.errors import InputError
from rlvr_exp.sandbox.isolation.process_tree import Processes
from rlvr_exp.sandbox.jobs import Job, JobLimits
from rlvr_exp.sandbox.pool import Pool


@pytest.fixture(scope="module")
def pool():
    """One worker, for tests that leave it as it was."""
    with pool_of() as pool:
        yield pool


@pytest.fixture(autouse=True)
def own_processes():
    begin_counting()


HOSTILE = (
    "os.kill(os.getppid(), 9)",
    "os.kill(-1, 9)",
    "os.killpg(0, 9)",
    "while True: pass",
    "while True: os.fork()",
    "while True: print('x' * 1000)",
    "import ctypes\nctypes.string_at(0)",
    "os._exit(0)",
    "os.closerange(0, 100)",
    "x = bytearray(1 << 40)",
    "while True: os.write(90, b'x' * 1000)",
    "open('left', 'w').write('x')\nos.makedirs('a/b')",
    "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n",
)


def test_results_come_in_the_order_of_the_jobs():
    with pool_of(3) as pool:
        values = [
            told(result) for result in pool.run([job(f"time.sleep({0.05 * (i % 3)})\ntell({i})") for i in range(9)])
        ]
    assert values == [[str(i)] for i in range(9)]


def test_one_slow_candidate_does_not_hold_up_those_behind_it():
    with pool_of(2) as pool:
        pool.run([answer(0)] * 2)
        began = time.monotonic()
        slow, *quick = [pool.submit(job("time.sleep(4)")), *(pool.submit(answer(i)) for i in range(40))]
        assert [told(future.result()) for future in quick] == [[str(i)] for i in range(40)]
        assert time.monotonic() - began < 3 and not slow.done()


def test_several_threads_ask_at_once():
    answers: dict[int, list[str]] = {}

    def ask(pool: Pool, number: int) -> None:
        results = pool.run([answer(number * 100 + i) for i in range(25)])
        answers[number] = [told(result)[0] for result in results]

    with pool_of(2) as pool:
        threads = [threading.Thread(target=ask, args=(pool, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {number: [str(number * 100 + i) for i in range(25)] for number in range(4)}


def test_workers_stay_busy_while_the_caller_computes(pool):
    pool.run([answer(0)])
    futures = [pool.submit(answer(i)) for i in range(30)]
    until = time.monotonic() + 2
    while time.monotonic() < until and not futures[-1].done():
        sum(range(1000))
    assert all(future.done() for future in futures)


def test_a_waiting_job_can_be_cancelled(pool):
    futures = [pool.submit(job("time.sleep(0.01)")) for _ in range(80)]
    assert futures[-1].cancel()
    with pytest.raises(CancelledError):
        futures[-1].result()
    assert all(future.result().end == "exit" for future in futures[:-1])


@pytest.fixture
def interruptible():
    """A shell's background jobs begin with SIGINT ignored: the tests may be one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_caller_leaves_the_pool_usable(interruptible):
    with pool_of(1) as pool:
        pool.run([answer(0)])
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            pool.run([job("time.sleep(1)")] + [job("time.sleep(0.2)")] * 300)
        began = time.monotonic()
        assert told(pool.run([answer(5)])[0]) == ["5"]
        assert time.monotonic() - began < 20


def test_a_callback_that_waits_for_other_jobs_is_an_error(pool):
    faults: list[str] = []

    def wait(_: object) -> None:
        try:
            pool.run([answer(1)])
        except RuntimeError as fault:
            faults.append(str(fault))

    future = pool.submit(answer(1))
    future.add_done_callback(wait)
    future.result()
    pool.run([answer(2)])
    assert len(faults) == 1 and "callback" in faults[0]


def test_two_hundred_hostile_candidates_leave_nothing_behind():
    with pool_of(2) as pool:
        pool.run([answer(1)] * 40 + [job(code) for code in HOSTILE])
        pids, files = sorted(descendants()), sorted(os.listdir("/proc/self/fd"))
        memory = resident_kb(pids)
        codes = [code for code in HOSTILE if "while True: pass" not in code] * 17
        results = pool.run([job(code) for code in codes[:200]])
        assert len(results) == 200 and not {result.end for result in results} & {"lost", "unavailable"}
        assert sorted(descendants()) == pids
        assert sorted(os.listdir("/proc/self/fd")) == files
        assert resident_kb(pids) < memory * 1.1 + 1000
        assert told(pool.run([answer(7)])[0]) == ["7"]


def test_verdicts_do_not_depend_on_workers_or_order():
    codes = [f"tell({i} // {i % 4})" for i in range(12)] + [code for code in HOSTILE if "while" not in code]

    def seen(workers: int, order: list[int]) -> dict[int, tuple]:
        with pool_of(workers) as pool:
            results = pool.run([job(codes[i]) for i in order])
        return {i: (result.end, result.status, result.records) for i, result in zip(order, results, strict=True)}

    order = list(range(len(codes)))
    shuffled = random.Random(1).sample(order, len(order))
    assert seen(1, order) == seen(4, shuffled)


def test_who_falls_to_the_wall_clock_at_work_is_tried_once_more(pool):
    (result,) = pool.run([job("while True: pass", JobLimits(cpu_s=20, wall_s=0.3))])
    assert (result.end, result.tries, result.idled) == ("wall", 2, False)


def test_the_second_try_has_twice_the_time():
    with pool_of(processes=1) as pool:  # for a tree it is not known whether it idled
        first, second = pool.run([job("time.sleep(0.7)", JobLimits(wall_s=wall_s)) for wall_s in (0.5, 0.2)])
    assert (first.end, first.tries) == ("exit", 2)
    assert (second.end, second.tries) == ("wall", 2)


@pytest.mark.parametrize("code", ["time.sleep(60)", "import signal\nos.kill(os.getpid(), signal.SIGSTOP)"])
def test_who_idled_until_the_wall_clock_is_not_tried_again(pool, code):
    (result,) = pool.run([job(code, JobLimits(wall_s=1.5))])
    assert (result.end, result.tries, result.idled) == ("wall", 1, True)


def test_a_thread_that_ended_may_have_waited_so_its_candidate_is_tried_again(pool):
    code = (
        "import threading\nt = threading.Thread(target=sum, args=(range(99999),))\nt.start()\nt.join()\ntime.sleep(60)"
    )
    (result,) = pool.run([job(code, JobLimits(wall_s=0.3))])
    assert (result.end, result.tries, result.idled) == ("wall", 2, False)


def test_time_without_a_core_is_seen():
    core = min(os.sched_getaffinity(0))
    work = f"import os, time\nos.sched_setaffinity(0, [{core}])\nuntil = time.monotonic() + 30\n"
    work += "while time.process_time() < 0.2: pass\nprint(1, flush=True)\n"
    rivals = [start(work + "while time.monotonic() < until: pass") for _ in range(3)]
    worker = start(work + "time.sleep(30)")
    try:
        worker.stdout.readline()
        waited = tried_until_told(worker.pid)
        assert waited is not None and 0.1 < waited < 30
    finally:
        for process in (*rivals, worker):
            process.kill()
            process.communicate()


def tried_until_told(pid: int) -> float | None:
    """The state of a process that is about to sleep."""
    table, pidfd = Processes(), os.pidfd_open(pid)
    until = time.monotonic() + 10
    try:
        while time.monotonic() < until:
            waited = table.waited_s(pidfd, time.clock_gettime((~pid << 3) | 2))
            if waited is not None:
                return waited
            time.sleep(0.05)
        return None
    finally:
        os.close(pidfd)


def test_what_a_candidate_puts_in_place_of_its_end_does_not_prevent_it(pool):
    code = "os._exit = lambda code: None\nos.write = lambda *given: 0\ntell(1)"
    broken, honest = pool.run([job(code), answer(2)])
    assert (broken.end, broken.status, told(broken)) == ("exit", 0, ["1"])
    assert told(honest) == ["2"]


def test_an_idle_pool_of_more_workers_than_cores_costs_next_to_nothing():
    threads = threading.active_count()
    with pool_of(8) as pool:
        assert [told(result) for result in pool.run([answer(i) for i in range(80)])] == [[str(i)] for i in range(80)]
        assert len(pool.pids()) == 8 and threading.active_count() == threads + 1
        until = time.monotonic() + 60
        while not all(link.facts for link in pool._dispatcher.links.values()):
            assert time.monotonic() < until
            time.sleep(0.05)
        pids = descendants()
        assert len(pids) == 16 and resident_kb(pids) / 8 < 40_000
        began, before = time.monotonic(), switches(pids)
        time.sleep(2)
        per_second = (switches(pids) - before) / (time.monotonic() - began)
        assert per_second < 8 * 3  # each supervisor checks for its parent once a second


def switches(pids: list[int]) -> int:
    """How often these processes gave up their core by themselves."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def parent(pid: int) -> int:
    """The parent of a process; 0 if the process has ended."""
    try:
        return int(re.search(r"^PPid:\t(\d+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def candidates_workers() -> list[int]:
    """The supervisors under which a candidate runs: zygote and candidate below, and not only while it starts."""
    own = [pid for pid in descendants() if parent(pid) == os.getpid()]
    before = {pid: descendants(pid) for pid in own}
    time.sleep(0.5)
    return [pid for pid in own if len(before[pid]) > 1 and descendants(pid) == before[pid]]


@pytest.mark.parametrize(("deaths", "end", "seconds"), [(1, "exit", 2.5), (2, "lost", 8)])
def test_a_job_whose_worker_dies_runs_once_more_alone(deaths, end, seconds):
    with pool_of() as pool:
        pool.run([answer(1)])
        future = pool.submit(job(f"time.sleep({seconds})", JobLimits(wall_s=30)))
        for _ in range(deaths):
            until = time.monotonic() + 20
            while not (at := candidates_workers()):
                assert time.monotonic() < until
                time.sleep(0.02)
            for pid in at:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)
        assert (future.result().end, future.result().tries) == (end, 2)
        assert told(pool.run([answer(2)])[0]) == ["2"]


def test_jobs_behind_a_lost_worker_are_not_suspects():
    with pool_of() as pool:
        pool.run([answer(1)])
        slow, *queued = [pool.submit(job("time.sleep(1)")), *(pool.submit(answer(i)) for i in range(10))]
        time.sleep(0.3)
        os.kill(pool.pids()[0], signal.SIGKILL)
        assert [told(future.result()) for future in queued] == [[str(i)] for i in range(10)]
        assert {future.result().tries for future in queued} == {1} and slow.result().tries == 2


def test_without_workers_jobs_are_unavailable_not_failed(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pool_of(2) as pool:
        assert [result.end for result in pool.run([answer(1), answer(2)])] == ["unavailable"] * 2
        assert pool.isolation()["level"] == "none"


@pytest.mark.parametrize("forked", [False, True], ids=["alone", "while a fork of it holds the queue"])
def test_workers_end_within_seconds_of_a_killed_parent(forked):
    code = (
        "import os, time; from rlvr_exp.sandbox.pool import Pool\n"
        "from rlvr_exp.sandbox.jobs import Job, JobLimits\n"
        f"pool = Pool(2, {HARNESS!r}); pool.run([Job(b'time.sleep(0.2)')] * 4)\n"
        f"fork = os.fork() if {forked} else os.getpid()\n"
        "if fork == 0: time.sleep(30); os._exit(0)\n"
        "print(fork, *pool.pids(), flush=True)\n"
        "pool.run([Job(b'time.sleep(60)', JobLimits(wall_s=60.0))] * 2)\n"
    )
    parent = start(code)
    fork, *supervisors = [int(word) for word in parent.stdout.readline().split()]
    time.sleep(0.3)
    below = [pid for supervisor in supervisors for pid in descendants(supervisor)]
    assert len(supervisors) == 2 and len(below) >= 4
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    try:
        while any(alive(pid) for pid in supervisors + below):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        if forked:
            os.kill(fork, signal.SIGKILL)


def start(code: str) -> subprocess.Popen:
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(__file__).parent)])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize(
    "last", ["", "pool.run([Job(b'')])", "[pool.submit(Job(b'time.sleep(60)')) for _ in range(99)]"]
)
def test_the_interpreter_ends_though_nobody_closed_the_pool(last):
    code = (
        "from rlvr_exp.sandbox.pool import Pool\nfrom rlvr_exp.sandbox.jobs import Job\n"
        f"pool = Pool(2, {HARNESS!r})\n{last}\nprint('end', flush=True)"
    )
    process = start(code)
    try:
        assert process.communicate(timeout=20)[0] == "end\n"
        assert process.returncode == 0
    finally:
        process.kill()


def test_a_forgotten_pool_ends_its_workers():
    pool = Pool(1, HARNESS)
    pool.run([answer(1)])
    pids = pool.pids()
    del pool
    assert not any(alive(pid) for pid in pids)


def test_a_fork_of_the_owner_is_refused_and_harms_nothing():
    with pool_of() as pool:
        pool.run([answer(1)])
        pid = os.fork()
        if pid == 0:
            try:
                pool.submit(answer(2))
            except RuntimeError:
                pool.close()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert told(pool.run([answer(3)])[0]) == ["3"]


def test_workers_outlive_the_thread_that_started_them():
    with pool_of() as pool:
        thread = threading.Thread(target=pool.run, args=([answer(1)],))
        thread.start()
        thread.join()
        before = pool.pids()
        time.sleep(1.2)
        assert told(pool.run([answer(2)])[0]) == ["2"]
        assert pool.pids() == before


def test_large_payloads_and_results_pass(pool):
    long = f"text = {'y' * 3_000_000!r}\nsend(text[:3 << 18].encode())\ntell(len(text))"
    result = pool.run([job(long)])[0]
    assert told(result) == ["y" * (3 << 18), "3000000"]


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_peer_is_reached_over_its_stream_and_has_no_results(size):
    ask = f"import socket\ns = socket.socket(fileno=fd)\ns.sendall(b'x' * {size})\ntell(s.recv(100))\ntell(s.recv(100))"
    serve = f"import socket\ns = socket.socket(fileno=fd)\nleft = {size}\nwhile left: left -= len(s.recv(left))\n"
    serve += "try: os.write(90, b'forged')\nexcept OSError: s.sendall(b'no results here')\n"
    serve += "#" * size
    with pool_of() as pool:
        asked, alone = pool.run([job(ask, peer=serve), answer(1)])
        assert told(asked) == ["b'no results here'", "b''"], asked
        assert told(alone) == ["1"] and settled(2)


def test_a_peers_time_counts_and_it_ends_with_its_candidate():
    with pool_of() as pool:
        busy, ended = pool.run([job("time.sleep(9)", peer="while True: pass"), job("", peer="time.sleep(60)")])
        assert (busy.end, ended.end) == ("cpu", "exit") and ended.wall_s < 4
        assert settled(2)


def test_packages_are_there_where_wanted_and_the_project_never():
    look = "def can(name):\n    try: __import__(name); return True\n    except ImportError: return False\n"
    look += "tell([can(name) for name in ('pytest', 'numpy', 'rlvr_exp', 'exec_harness')])"
    limits = JobLimits(cpu_s=5, wall_s=30, memory_mb=2000)
    with pool_of() as bare, pool_of(packages=True) as full:
        assert told(bare.run([job(look, limits)])[0]) == ["[False, False, False, False]"]
        assert told(full.run([job(look, limits)])[0]) == ["[True, True, False, False]"]


def test_negative_workers_are_refused():
    with pytest.raises(InputError, match="sandbox.workers"):
        Pool(-1)


def test_a_limit_out_of_range_is_the_askers_fault(pool):
    with pytest.raises(ValueError, match="memory_mb=-1"):
        pool.submit(Job(b"", JobLimits(memory_mb=-1)))


def test_a_closed_pool_refuses_work():
    pool = Pool(1, HARNESS)
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        pool.run([answer(1)])


def test_jobs_without_a_result_at_closing_are_unavailable():
    pool = Pool(1, HARNESS)
    futures = [pool.submit(job("time.sleep(30)", JobLimits(wall_s=60))) for _ in range(40)]
    time.sleep(0.5)
    pool.close()
    assert {future.result(timeout=1).end for future in futures} == {"unavailable"}
    assert settled(0)
