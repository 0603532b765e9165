"""One file and several processes: two write while a third reads; a killed one leaves all that it had committed."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program import ENVIRONMENT
from solution_samples import solutions
from thinning import tries

from rlvr_exp.solutions.record import Solution
from rlvr_exp.solutions.store import Keeping, Query, SolutionStore, faults

BATCH, PER_TASK = 20, 10_000
HERE = Path(__file__).parent
PATHS = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([ENVIRONMENT["PYTHONPATH"], str(HERE)])}


def writer(path: Path, name: str, first: int, batches: int, per_task: int = PER_TASK) -> subprocess.Popen[str]:
    numbers = map(str, (first, BATCH, batches, per_task))
    words = [sys.executable, str(HERE / "writer.py"), str(path), name, *numbers]
    return subprocess.Popen(words, env=PATHS, stdout=subprocess.PIPE, text=True)


def batches_in(store: SolutionStore) -> Counter[tuple[str, int]]:
    return Counter((one.run, one.step) for one in store.find())


def test_two_write_while_a_third_reads(tmp_path: Path) -> None:
    """They make the file at the same moment, and every batch that is seen is seen whole."""
    path = tmp_path / "s"
    writers = [writer(path, name, first, 15) for name, first in (("one", 0), ("two", 10**6))]
    seen, counts, running = 0, [0], True
    while running:
        running = any(process.poll() is None for process in writers)
        if path.exists():
            with SolutionStore(path, read_only=True) as store:
                for _ in range(5):
                    found = batches_in(store)
                    assert set(found.values()) <= {BATCH}, "a reader saw a part of a transaction"
                    counts.append(sum(found.values()))
                    seen += len({name for name, _ in found}) == 2
        time.sleep(0.02)
    assert [process.communicate()[0].count("\n") for process in writers] == [15, 15]
    assert [process.returncode for process in writers] == [0, 0]
    assert counts == sorted(counts) and counts[-1] == 2 * 15 * BATCH
    assert len(set(counts)) > 3 and seen, "the reader was there while both wrote"
    with SolutionStore(path) as store:
        assert faults(store) == []


def test_two_that_write_to_the_same_tasks_stay_within_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "s"
    writers = [writer(path, name, first, 8, per_task=5) for name, first in (("one", 0), ("two", 10**6))]
    assert [process.wait(timeout=120) for process in writers] == [0, 0]
    with SolutionStore(path) as store:
        assert Counter(one.task for one in store.find()) == {f"t{n}": 5 for n in range(7)} and faults(store) == []


@settings(max_examples=tries(40))  # Each commit waits for the disk.
@given(st.lists(st.lists(solutions(), max_size=5), max_size=4), st.lists(solutions(), min_size=1, max_size=5))
@pytest.mark.property(31)
@pytest.mark.slow
def test_whatever_was_committed_is_there_whole_after_a_kill(parts: list[list[Solution]], last: list[Solution]) -> None:
    """A forked child commits the parts, and is killed inside the transaction of the last one."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        if (child := os.fork()) == 0:
            try:
                store = SolutionStore(path, Keeping(PER_TASK))
                for part in parts:
                    store.add_many(part)
                store._evict = lambda task: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
                store.add_many(last)
            finally:
                os._exit(1)  # never back into the tests
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        expected: dict[str, Solution] = {}
        for one in itertools.chain.from_iterable(parts):
            expected.setdefault(one.key, one)
        with SolutionStore(path) as store:
            assert store.find() == list(expected.values()) and faults(store) == []


@pytest.mark.property(31)
@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_kill_in_mid_write_loses_no_committed_row(tmp_path: Path, after: int) -> None:
    path = tmp_path / "s"
    process = writer(path, "killed", 0, 100_000)
    assert process.stdout is not None
    printed = [process.stdout.readline() for _ in range(after)]
    time.sleep(0.001 * after)
    process.send_signal(signal.SIGKILL)
    printed += process.stdout.read().splitlines()
    assert process.wait(timeout=60) == -signal.SIGKILL
    committed = [int(line) for line in printed if line.strip()]
    assert (tmp_path / "s-wal").stat().st_size > 0, "it died with a log that no one had folded in"
    with SolutionStore(path, read_only=True) as store:
        found = batches_in(store)
    assert {("killed", start): BATCH for start in committed}.items() <= found.items()
    assert len(found) <= len(committed) + 1 and set(found.values()) == {BATCH}, (
        "the batch at the kill is whole or absent"
    )
    with SolutionStore(path, Keeping(PER_TASK)) as store:
        assert faults(store) == [] and batches_in(store) == found
        numbers = [one.program for one in store.find(Query(limit=3))]
        assert numbers == [f"def solve(g):\n    return {n}\n" for n in range(3)]


def test_a_kill_in_the_middle_of_a_transaction_leaves_nothing_of_it(tmp_path: Path) -> None:
    """Stopped between the first row of a transaction and its commit, for certain."""
    path = tmp_path / "s"
    SolutionStore(path).close()
    code = f"""
import os, signal
from pathlib import Path
from solution_samples import solution
from rlvr_exp.solutions.store import SolutionStore
store = SolutionStore(Path({str(path)!r}))
store.add(solution(number=1))
store._evict = lambda task: os.kill(os.getpid(), signal.SIGKILL)
store.add_many([solution(number=2), solution(number=3)])
"""
    assert subprocess.run([sys.executable, "-c", code], env=PATHS, timeout=60).returncode == -signal.SIGKILL
    with SolutionStore(path) as store:
        assert [one.program for one in store.find()] == ["def solve(g):\n    return 1\n"] and faults(store) == []
