"""Honest code that a sandbox easily breaks: locks and pools of multiprocessing, temporary files, odd Unicode."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from thinning import thinned

from rlvr_exp.core.errors import InputError
from rlvr_exp.sandbox.isolation.jail import LEVELS
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem, StdinCase
from rlvr_exp.verifiers.base import Request, Verdict
from rlvr_exp.verifiers.python_io import PythonIO

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=LEVELS)
def verifier(request):
    options = {"cpu_s": 5.0, "wall_s": 20.0, "memory_mb": 300, "output_kb": 16, "level": request.param, "require": ""}
    with PythonIO(SimpleNamespace(workers=1, **options)) as verifier:
        try:
            verifier.isolation()
        except InputError as fault:
            pytest.skip(str(fault))
        yield verifier


def judge(verifier: PythonIO, code: str, *cases: Case | StdinCase, entry_point: str = "f") -> Verdict:
    problem = PythonProblem(entry_point, cases, strict=True)
    return verifier.verify([Request(problem, Candidate(code))])[0]


def passes(verifier: PythonIO, body: str, expected: object, head: str = "") -> None:
    inside = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    verdict = judge(verifier, f"{head}\ndef f(x):\n{inside}", Case((2,), expected), Case((2,), expected))
    assert verdict.outcome == "passed", verdict.log


THREADS = """
import threading
def together(work, count=8):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
POOLS = {
    "thread_pool": ("from multiprocessing.pool import ThreadPool", "return ThreadPool(4).map(abs, [-x, x])", [2, 2]),
    "thread_pool_of_context": (
        "import multiprocessing.pool as p",
        "with p.ThreadPool() as t: return t.apply(abs, (-x,))",
        2,
    ),
    "dummy": ("from multiprocessing.dummy import Pool", "with Pool(2) as pool: return pool.map(str, [x])", ["2"]),
    "queue": ("import multiprocessing as m", "q = m.Queue(2)\nq.put(x)\nreturn [q.get(timeout=5), q.qsize()]", [2, 0]),
    "simple_queue": ("import multiprocessing as m", "q = m.SimpleQueue()\nq.put(x)\nreturn q.get()", 2),
    "value": ("import multiprocessing as m", "v = m.Value('i', 1)\nwith v.get_lock(): v.value += x\nreturn v.value", 3),
    "array": ("import multiprocessing as m", "a = m.Array('i', [x, 1])\na[1] = 5\nreturn list(a)", [2, 5]),
    "event": ("import multiprocessing as m", "e = m.Event()\ntogether(e.set, 1)\nreturn e.wait(5)", True),
    "barrier": ("import multiprocessing as m", "b = m.Barrier(2)\ntogether(b.wait, 2)\nreturn b.n_waiting", 0),
    "condition": ("import multiprocessing as m", "c = m.Condition()\nwith c: return c.wait(0.01)", False),
}


@pytest.mark.parametrize("name", POOLS)
def test_multiprocessing_serves_threads(verifier, name):
    head, body, expected = POOLS[name]
    passes(verifier, body, expected, f"{head}\n{THREADS}")


@pytest.mark.parametrize("kind", ["Lock", "RLock", "Semaphore", "BoundedSemaphore"])
def test_a_lock_excludes_and_is_released(verifier, kind):
    body = """
lock, count = getattr(multiprocessing, kind)(), [0]
def work():
    for _ in range(20):
        with lock:
            seen = count[0]
            time.sleep(0.00001)
            count[0] = seen + 1
together(work)
return count[0]
"""
    passes(verifier, body, 160, f"import multiprocessing, time\nkind = {kind!r}\n{THREADS}")


def test_locks_keep_multiprocessings_own_rules(verifier):
    body = """
lock, mutex, many = m.Lock(), m.RLock(), m.BoundedSemaphore(x)
found = [lock.acquire(), lock.acquire(False), lock.acquire(timeout=0.01), mutex.acquire(), mutex.acquire()]
for bad in (many.release, lambda: together(mutex.release, 1)):
    try: bad()
    except ValueError: found.append('bound')
together(lambda: found.append(mutex.acquire(False)), 1)
lock.release()
return found + [lock.acquire(False), many.get_value()]
"""
    expected = [True, False, False, True, True, "bound", False, True, 2]
    passes(verifier, body, expected, f"import multiprocessing as m, threading\nthreading.excepthook = print\n{THREADS}")


TEMPORARY = {
    "mkdtemp": "d = tempfile.mkdtemp()\nopen(os.path.join(d, 'a'), 'w').write('b')\nreturn os.listdir(d)",
    "named_file": "with tempfile.NamedTemporaryFile('w+', dir=None) as t:\n    t.write('a'); t.flush(); return [open(t.name).read()]",
    "directory": "with tempfile.TemporaryDirectory() as d: return [d.startswith(tempfile.gettempdir())]",
    "environment": "open(os.environ['TMPDIR'] + '/a', 'w').write('a'); return [os.path.exists(os.environ['TMPDIR'] + '/a')]",
    "elsewhere": "os.chdir('/')\nwith tempfile.TemporaryFile() as t: return [t.write(b'a')]",
    "spooled": "with tempfile.SpooledTemporaryFile(1) as t:\n    t.write(b'abc'); t.seek(0); return [t.read()]",
}
FILES = {"mkdtemp": ["a"], "named_file": ["a"], "elsewhere": [1], "spooled": [b"abc"]}


@pytest.mark.parametrize("name", TEMPORARY)
def test_there_is_a_temporary_folder(verifier, name):
    passes(verifier, TEMPORARY[name], FILES.get(name, [True]), "import os, pathlib, tempfile")


PROBE = """
import sys
sys.path[:0] = [{root!r}, {tests!r}, {above!r}]
from test_python_io_honest import TEMPORARY, FILES, passes
from types import SimpleNamespace
from rlvr_exp.verifiers.python_io import PythonIO
limits = dict(cpu_s=5.0, wall_s=20.0, memory_mb=300, output_kb=16, level={level!r}, require="")
with PythonIO(SimpleNamespace(workers=1, **limits)) as verifier:
    for name, body in TEMPORARY.items():
        passes(verifier, body, FILES.get(name, [True]), "import os, pathlib, tempfile")
"""


@pytest.mark.slow
@pytest.mark.parametrize("folder", thinned(["nowhere", "read_only", "closed"]))
def test_wherever_the_trainers_temporary_folder_lies(verifier, tmp_path, folder):
    place = tmp_path / "closed" / "inner" if folder == "closed" else tmp_path / folder
    if folder != "nowhere":
        place.mkdir(parents=True)
        (tmp_path / folder).chmod(0o700 if folder == "closed" else 0o500)
    tests, above = Path(__file__).parent, Path(__file__).parents[1]
    level = verifier.isolation()["level"]
    probe = PROBE.format(root=str(ROOT), tests=str(tests), above=str(above), level=level)
    environment = {key: value for key, value in os.environ.items() if key != "HOME"} | {"TMPDIR": str(place)}
    done = subprocess.run([sys.executable, "-c", probe], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PAIR = "\ud83d\ude00"
"""Two halves of a surrogate pair: two characters, not merged into one as elsewhere."""
ODD = ["\ud800", "\udc80", PAIR, "a\udfffb", PAIR + "\U0001f600", "\udcc3\udca9", "é", "\\ud800", "\x00\x1f"]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_every_text_keeps_its_length_and_equals_itself_alone(verifier, text):
    echo = "def f(x): return [x, len(x), {x: {x}}]"
    assert judge(verifier, echo, Case((text,), [text, len(text), {text: {text}}])).outcome == "passed"
    for other in ODD + ["?", "\ufffd", "\U0001f600", ""]:
        verdict = judge(verifier, f"def f(): return {other!a}", Case((), text))
        assert (verdict.outcome == "passed") == (other == text), (other, verdict.log)


ECHOES = {
    "text": "import sys\nsys.stdout.write(sys.stdin.read())",
    "bytes": "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())",
    "input": "print(input(), end='')",
}


@pytest.mark.parametrize("text", [one for one in ODD if "\x00" not in one], ids=ascii)
def test_programs_read_and_write_every_text(verifier, text):
    for code in ECHOES.values():
        assert judge(verifier, code, StdinCase(text, text), entry_point="").outcome == "passed"
    for other in ODD + ["?", "\ufffd", "\U0001f600"]:
        verdict = judge(verifier, f"print({other!a}, end='')", StdinCase("", text), entry_point="")
        assert (verdict.outcome == "passed") == (other == text), (other, verdict.log)


def test_bytes_that_are_no_text_equal_no_text(verifier):
    code = r"import sys; sys.stdout.buffer.write(b'\x80')"
    for text in ("\udc80", "\ufffd", "", "?"):
        verdict = judge(verifier, code, StdinCase("", text), entry_point="")
        assert (verdict.bucket, "not UTF-8" in verdict.log) == ("wrong_answer", True)


def test_printing_odd_text_costs_no_verdict(verifier):
    assert judge(verifier, f"def f(x):\n    print({PAIR!a}, x)\n    return x", Case(("\ud800",), "\ud800")).score == 1
