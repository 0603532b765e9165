"""Verdicts are cached: across runs and processes, through kills, damage and full disks, within the size limit."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_exp.verifiers import cache as module
from rlvr_exp.verifiers.base import BUCKETS, Verdict
from rlvr_exp.verifiers.cache import NAME, Cache, default_folder, key_of, packed, unpacked

ROOT = Path(__file__).parents[2]
FAILED = Verdict("failed", "wrong_answer", passed=1, total=3, seconds=0.25, log="case 2: f(1) gave 2")


@dataclass
class Options:
    enabled: bool = True
    path: str = ""
    max_mb: int = 64


def key(number: int) -> bytes:
    return key_of(b"test", str(number).encode())


def opened(folder: Path, **options) -> Cache:
    return Cache(Options(path=str(folder), **options))


def written(folder: Path, count: int = 1, **options) -> None:
    cache = opened(folder, **options)
    for number in range(count):
        cache.put(key(number), FAILED)
    cache.close()


def known(folder: Path, count: int = 1) -> int:
    cache = opened(folder)
    found = sum(cache.get(key(number)) == FAILED for number in range(count))
    cache.close()
    return found


def in_child(folder: Path, body: str, **kwargs) -> subprocess.Popen:
    code = f"""
    import time
    from types import SimpleNamespace
    from rlvr_exp.verifiers.base import Verdict
    from rlvr_exp.verifiers.cache import Cache, key_of
    FAILED = {FAILED!r}
    cache = Cache(SimpleNamespace(enabled=True, path={str(folder)!r}, max_mb=64))
    def key(number): return key_of(b"test", str(number).encode())
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(code) + textwrap.dedent(body)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, **kwargs)


def test_a_later_run_finds_it_on_disk_and_then_in_memory(tmp_path):
    written(tmp_path)
    cache = opened(tmp_path)
    assert cache.get(key(0)) == cache.get(key(0)) == FAILED and cache.get(key(1)) is None
    assert cache.metrics() == {"hits_disk": 1, "hits_memory": 1, "misses": 1, "hit_rate": pytest.approx(2 / 3)}
    cache.close()


@pytest.mark.parametrize("options", [None, Options(enabled=False)])
def test_without_the_disk_nothing_is_written(options, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = Cache(options)
    cache.put(key(0), FAILED)
    cache.close()
    assert cache.get(key(0)) == FAILED and not list(tmp_path.iterdir())


def test_the_users_cache_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Cache(Options()).close()
    assert (tmp_path / "rlvr_exp" / "verdicts" / NAME).is_file()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == Path.home() / ".cache" / "rlvr_exp" / "verdicts"


def test_tests_have_a_cache_of_their_own():
    assert Path.home() not in default_folder().parents


FIELDS = st.fixed_dictionaries(
    {
        "passed": st.integers(0, 9),
        "total": st.integers(0, 9),
        "seconds": st.floats(0, 1e6),
        "log": st.text(max_size=50) | st.just("\ud800 \x00"),
    }
)
VERDICTS = (
    FIELDS.map(lambda fields: Verdict("passed", **fields))
    | st.builds(lambda bucket, fields: Verdict("failed", bucket, **fields), st.sampled_from(BUCKETS), FIELDS)
    | st.builds(lambda rule, fields: Verdict("rejected", rule=rule, **fields), st.text(min_size=1), FIELDS)
)


@given(VERDICTS)
def test_a_verdict_comes_back_as_it_was(verdict):
    assert unpacked(packed(verdict)) == verdict


@given(VERDICTS, st.data())
def test_a_flipped_bit_is_never_another_verdict(verdict, data):
    stored = bytearray(packed(verdict))
    stored[data.draw(st.integers(0, len(stored) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert unpacked(bytes(stored)) is None


@pytest.mark.heavy
def test_what_is_written_is_found_by_another_process_while_both_run(tmp_path):
    cache = opened(tmp_path)
    child = in_child(tmp_path, "cache.put(key(0), FAILED); time.sleep(1.5); print('done', flush=True); time.sleep(60)")
    assert child.stdout.readline() == "done\n"
    deadline = time.monotonic() + 20
    while cache.get(key(0)) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cache.peek(key(0)) == FAILED
    child.kill()
    child.communicate()
    cache.close()


@pytest.mark.slow
def test_many_processes_write_at_once(tmp_path):
    body = "for n in range(400 * {0}, 400 * {0} + 400): cache.put(key(n), FAILED)\ncache.close()"
    children = [in_child(tmp_path, body.format(number)) for number in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4
    assert known(tmp_path, 1600) == 1600


@pytest.mark.heavy
def test_kill_9_at_any_time_leaves_a_file_that_works(tmp_path):
    body = "n = 0\nwhile True:\n    cache.put(key(n), FAILED); n += 1\n    if n == 600: print('on', flush=True)"
    for delay in (0.0, 0.05, 0.3):
        child = in_child(tmp_path, body)
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Nothing is renamed: a killed writer damages nothing.
            written(tmp_path, 700)
            assert known(tmp_path, 700) == 700
    assert sqlite3.connect(tmp_path / NAME).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("damage", ["garbage", "foreign", "cut", "header", "deep"])
def test_a_damaged_or_foreign_file_is_put_aside_and_begun_anew(damage, tmp_path):
    path = tmp_path / NAME
    if damage == "foreign":
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE mine (x)")
    elif damage == "garbage":
        path.write_bytes(b"not a database at all" * 1000)
    else:
        written(tmp_path, 2000)
        data = path.read_bytes()
        deep = data[: 4096 * 5] + b"\xab" * (len(data) - 4096 * 5)
        path.write_bytes({"cut": data[:20_000], "header": b"\0" * 4096 + data[4096:], "deep": deep}[damage])
    before = path.read_bytes()
    with pytest.warns(RuntimeWarning, match="was renamed to"):
        written(tmp_path, 5)
        known(tmp_path, 2000)  # Deeper damage is met here.
        written(tmp_path, 5)
    assert known(tmp_path, 5) == 5
    assert before in [file.read_bytes() for file in tmp_path.glob(f"{NAME}.damaged-*")] or damage in ("cut", "deep")
    assert len(list(tmp_path.glob(f"{NAME}.damaged-*[0-9]"))) == 1


def test_a_folder_that_cannot_be_made_costs_a_warning_and_no_verdict(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="not remembered on disk"):
        cache = opened(tmp_path / "file" / "below")
    cache.put(key(0), FAILED)
    assert cache.get(key(0)) == FAILED
    cache.close()


def test_a_disk_that_fails_while_writing_costs_a_warning_and_no_verdict(tmp_path):
    cache = opened(tmp_path)
    cache._store._writer.execute("PRAGMA query_only = ON")
    with pytest.warns(RuntimeWarning, match="not remembered on disk"):
        cache.put(key(0), FAILED)
        cache.close()
    assert cache.get(key(0)) == FAILED


def test_a_busy_file_is_a_miss_at_once_and_no_fault(tmp_path, monkeypatch):
    """Like on a network file system, where a writer blocks readers."""
    monkeypatch.setattr("rlvr_exp.verifiers.cache._NETWORK", "")
    written(tmp_path)
    cache = opened(tmp_path)
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    other.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    cache.get(key(0))
    assert time.monotonic() - began < 2
    other.close()
    assert cache.get(key(0)) == FAILED
    cache.close()


def test_what_was_used_longest_ago_leaves_first(tmp_path, monkeypatch):
    from rlvr_exp.verifiers import cache as store

    big = Verdict("failed", "parse", log="x" * 3000)
    now = 1_000_000_000
    monkeypatch.setattr(store.time, "time", lambda: now)
    monkeypatch.setattr(module, "_MEMORY_SLOTS", 1)
    for number in range(600):
        now += 10_000
        if number % 50 == 0:
            cache = opened(tmp_path, max_mb=1)
        cache.get(key(0))  # In use all the time.
        cache.put(key(number), big)
        if number % 50 == 49:
            cache.close()
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert sum(sizes) < 1.5 * 2**20
    cache = opened(tmp_path)
    there = [number for number in range(600) if cache.get(key(number)) is not None]
    assert 0 in there and 599 in there and 150 < len(there) < 400
    assert set(range(450, 600)) <= set(there), "the newest stay"
    cache.close()


def test_a_smaller_bound_shrinks_the_file(tmp_path):
    cache = opened(tmp_path)
    for number in range(3000):
        cache.put(key(number), Verdict("failed", "parse", log=f"{number}" * 500))
    cache.close()
    assert (tmp_path / NAME).stat().st_size > 4 << 20
    written(tmp_path, max_mb=2)
    assert (tmp_path / NAME).stat().st_size <= 2 << 20


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_MEMORY_SLOTS", 3)
    cache = Cache()
    for number in range(5):
        cache.put(key(number), FAILED)
        cache.get(key(0))
    assert [cache.peek(key(number)) is not None for number in range(5)] == [True, False, False, True, True]


def test_many_threads_use_one_cache(tmp_path):
    cache = opened(tmp_path)

    def use(number):
        cache.put(key(number), FAILED)
        return cache.get(key(number)) == FAILED

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(2000)))
    cache.close()
    assert known(tmp_path, 2000) == 2000


@pytest.mark.heavy
def test_a_fork_goes_on_with_the_memory_and_leaves_the_parents_file_alone(tmp_path):
    cache = opened(tmp_path)
    cache.put(key(0), FAILED)
    cache._lock.acquire()  # Held by a thread of the parent at the time of the fork.
    child = os.fork()
    if child == 0:
        good = cache.get(key(0)) == FAILED
        cache.put(key(1), FAILED)
        cache.close()
        os._exit(0 if good else 1)
    cache._lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    cache.put(key(2), FAILED)
    cache.close()
    assert known(tmp_path, 3) == 2


def test_hits_are_fast(tmp_path):
    written(tmp_path, 2000)
    cache = opened(tmp_path)
    disk = min(_seconds(cache, range(start, start + 200)) for start in range(0, 2000, 200))
    memory = min(_seconds(cache, range(start, start + 200)) for start in range(0, 2000, 200))
    assert disk < 200e-6 and memory < 20e-6
    cache.close()


def _seconds(cache, numbers):
    keys = [key(number) for number in numbers]
    began = time.perf_counter()
    for one in keys:
        assert cache.get(one)
    return (time.perf_counter() - began) / len(keys)


def test_what_finds_the_file_busy_is_written_later(tmp_path):
    cache = opened(tmp_path)
    cache._store._writer.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    cache.put(key(1), FAILED)
    time.sleep(1.5)
    other.execute("ROLLBACK")
    other.close()
    cache.close()
    assert opened(tmp_path).get(key(1)) == FAILED


def test_a_reader_that_drops_the_file_does_not_end_the_writer(tmp_path):
    cache = opened(tmp_path)
    store, real = cache._store, cache._store._writer

    class Racing:
        """A connection under which a reader meets a fault."""

        def __enter__(self):
            store._recover(sqlite3.OperationalError("disk I/O error"))
            return real.__enter__()

        def __exit__(self, *fault):
            return real.__exit__(*fault)

        def __getattr__(self, name):
            return getattr(real, name)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store._writer = Racing()
        cache.put(key(1), FAILED)
        deadline = time.monotonic() + 10
        while store._usable and time.monotonic() < deadline:
            time.sleep(0.05)
    time.sleep(0.2)
    assert store._thread.is_alive()
    cache.close()


def test_leaving_the_disk_is_told_and_keeps_the_memory(tmp_path):
    cache = opened(tmp_path)
    cache.put(key(1), FAILED)
    with pytest.warns(RuntimeWarning, match="because I say so"):
        cache.leave_disk("because I say so")
    cache.put(key(2), FAILED)
    assert cache.get(key(1)) == cache.get(key(2)) == FAILED
    later = opened(tmp_path)
    assert (later.get(key(1)), later.get(key(2))) == (FAILED, None)
