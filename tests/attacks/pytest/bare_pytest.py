"""Runs suites with bare pytest, each in a fork of one warm process: no bridge, no sandbox.

    python tests/attacks/pytest/bare_pytest.py < rows.jsonl > results.jsonl

A row is {code, tests, files}. Its result is an empty text if a test passed and none failed, else the end of pytest's
output. Slow packages are imported before the first fork.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

_WARM = "hypothesis.stateful numpy pandas sympy scipy.optimize unittest.mock asyncio sqlite3 zoneinfo doctest".split()
_SECONDS = 60


class Bare:
    """The process, for other processes: `outcome` of one row after another."""

    def __init__(self) -> None:
        self._process = Popen([sys.executable, __file__], stdin=PIPE, stdout=PIPE, text=True)

    def outcome(self, code: str, tests: str, files: dict[str, str]) -> str:
        """The result of a row."""
        row = {"code": code, "tests": tests, "files": files}
        print(json.dumps(row), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def results(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Run each row in a fork."""
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {"solution.py": row["code"], "test_solution.py": row["tests"], **row["files"]}.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            log = Path(folder, "output")
            child = os.fork()
            if not child:
                os._exit(_run(folder, log))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            yield f"exit code {status}\n{log.read_text(errors='replace')[-3000:]}" if status else ""


def _run(folder: str, log: Path) -> int:
    signal.alarm(_SECONDS)
    os.chdir(folder)
    sys.path.insert(0, folder)
    output = os.open(log, os.O_CREAT | os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    passed = _Passed()
    options = ["-q", "-p", "no:cacheprovider", "--disable-plugin-autoload", "--rootdir", folder, "-c", os.devnull]
    code = pytest.main([*options, folder], [passed])
    sys.stdout.flush()
    return int(code) or int(not passed.count)


class _Passed:
    """A pytest plugin that counts the tests that passed."""

    count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.count += report.when == "call" and report.passed


def main() -> None:
    """Read rows from standard input, write results to standard output."""
    for name in _WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    for result in results(map(json.loads, sys.stdin)):
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
