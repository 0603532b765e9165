"""Many mixed candidates in a row leave nothing behind in the judge: no process, no descriptor, no memory.

    python tests/attacks/python/endurance.py [COUNT] [WORKERS]

judges COUNT (10000) candidates in batches of 500 with WORKERS (2) workers, prints one line a batch, and exits 1 where
something grew.
"""

import gc
import os
import sys
import time
from collections import Counter
from pathlib import Path

from python_arena import HONEST, LIMITS, PROBLEM, double, judge, make, unseen

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.python_io import PythonProblem
from rlvr_exp.verifiers.base import Request
from rlvr_exp.verifiers.python_io import PythonIO

TINY = PythonProblem("double", PROBLEM.cases, limits=type(LIMITS)(cpu_s=0.05, wall_s=5.0))
BATCH, SLACK_KB = 500, 4096
KINDS = {
    "honest": HONEST,
    "wrong": double("return x"),
    "honest_with_a_class": double("return V(x).n * 2", "class V:\n    def __init__(s, n): s.n = n"),
    "parse": "def double(x",
    "resolve": "def triple(x): return x",
    "raises": double("return 1 // (x - 3)"),
    "exits": double("os._exit(0)", "import os"),
    "crashes": double("ctypes.string_at(0)", "import ctypes"),
    "forks": double("os.fork(); return 2 * x", "import os"),
    "floods": double("print('x' * 100000); return 2 * x"),
    "eats_memory": double("return bytearray(1 << 40)"),
    "leaves_files": double("open('left', 'w').write('x' * 9999); os.makedirs('a/b/c', exist_ok=True)", "import os"),
    "leaves_threads": double(
        "threading.Thread(target=time.sleep, args=(9,), daemon=True).start(); return 2 * x", "import threading, time"
    ),
    "leaks_descriptors": double("K.extend(os.pipe()); return x", "import os\nK = []"),
    "forges": double("os.write(90, b'\\0\\0\\0\\x08[\"done\"]'); return 2 * x", "import os"),
    "large_answer": double("return 'x' * 500000"),
    "not_plain": double("return object()"),
}
HANGS = double("while True: pass")
HANGS_EVERY = 100


def mixture(index: int) -> str:
    """Candidate number `index`: all kinds in turn."""
    return f"{list(KINDS.values())[index % len(KINDS)]}\n# {index}"


def requests(first: int, count: int) -> list[Request]:
    return [
        Request(TINY, Candidate(f"{HANGS} # {index}"))
        if index % HANGS_EVERY == 0
        else Request(PROBLEM, Candidate(mixture(index)))
        for index in range(first, first + count)
    ]


def held(verifier: PythonIO, others: set[int]) -> tuple[int, int, int]:
    """(processes below this one besides the workers and `others`, open descriptors, resident KB)."""
    gc.collect()
    workers = verifier._pool.pids()
    below = descendants(os.getpid()) - others
    for worker in workers:
        below -= {worker, *children(worker)}  # a supervisor and its zygote
    status = Path("/proc/self/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0])
    return len(below), len(os.listdir("/proc/self/fd")), resident


def children(pid: int) -> set[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return {int(word) for task in tasks for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()}
    except OSError:  # it is gone
        return set()


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    ahead = children(pid)
    while ahead:
        found |= ahead
        ahead = set().union(*map(children, ahead)) - found
    return found


def unchanged(count: int, workers: int, tell=lambda line: None) -> list[str]:
    """What grew over `count` candidates: names of resources, with the figures; empty if nothing did."""
    with make(workers) as verifier:
        return grown(verifier, requests, lambda: judge(verifier, unseen(HONEST)), count, tell)


def grown(verifier, make_requests, judge_honest, count: int, tell=lambda line: None) -> list[str]:
    """The same for any verifier. `make_requests(first, count)`: its candidates; `judge_honest()`: an honest one's
    verdict."""
    others = descendants(os.getpid())
    verifier.verify(make_requests(-2 * BATCH, BATCH))  # caches, threads and workers exist by now
    begin, began, outcomes = held(verifier, others), time.monotonic(), Counter()
    for first in range(0, count, BATCH):
        verdicts = verifier.verify(make_requests(first, min(BATCH, count - first)))
        outcomes.update(verdict.bucket or verdict.outcome for verdict in verdicts)
        tell(f"{first + len(verdicts)}: {held(verifier, others)} after {time.monotonic() - began:.0f} s")
    end = held(verifier, others)
    honest = judge_honest().outcome
    verifier.close()
    tell(f"processes, descriptors, KB: {begin} before, {end} after; {dict(outcomes)}")
    grew = [
        f"{name}: {one} before, {other} after"
        for name, one, other in zip(NAMES, begin, end, strict=True)
        if other > one
    ]
    if grew and grew[-1].startswith("resident") and end[2] - begin[2] <= SLACK_KB + count:
        grew.pop()  # about 1 KB a cached verdict
    if honest != "passed" or outcomes["no_verdict"]:
        grew.append(f"the honest candidate after it: {honest}; {dict(outcomes)}")
    if descendants(os.getpid()) - others:
        grew.append(f"processes after the end: {descendants(os.getpid()) - others}")
    return grew


NAMES = ("processes", "descriptors", "resident KB")

if __name__ == "__main__":
    number, size = [*map(int, sys.argv[1:]), *(10000, 2)[len(sys.argv) - 1 :]]
    faults = unchanged(number, size, tell=print)
    sys.exit("\n".join(faults))
