"""Runs suites with bare pytest, each in a fork of one warm process: no bridge, no sandbox.

    python tests/attacks/pytest/bare_pytest.py < rows.json > results.json

`rows.json`: a list of {code, tests, files}. `results.json`: for each row, an empty text if its tests pass, else the
end of pytest's output. Slow packages are imported once, before the first fork.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

_WARM = ("hypothesis.stateful", "numpy", "pandas", "sympy", "unittest.mock", "asyncio", "sqlite3", "zoneinfo", "doctest")
_SECONDS = 60


class _Passed:
    """A pytest plugin that counts the tests that passed."""

    count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.count += report.when == "call" and report.passed


def result(row: dict[str, Any]) -> str:
    """Run one row in a fork. The result is empty if at least one test passed and none failed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"solution.py": row["code"], "test_solution.py": row["tests"], **row["files"]}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        log = Path(folder, ".log")
        child = os.fork()
        if not child:
            os._exit(_run(folder, log))
        _, status = os.waitpid(child, 0)
        return "" if status == 0 else f"status {status}\n{log.read_text(errors='replace')[-3000:]}"


def _run(folder: str, log: Path) -> int:
    signal.alarm(_SECONDS)
    os.chdir(folder)
    sys.path.insert(0, folder)
    output = os.open(log, os.O_CREAT | os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    passed = _Passed()
    settings = ["-q", "-p", "no:cacheprovider", "--disable-plugin-autoload", "--rootdir", folder, "-c", os.devnull]
    code = pytest.main([*settings, folder], [passed])
    sys.stdout.flush()
    return int(code) or int(not passed.count)


def main() -> None:
    """Read rows, write results."""
    for name in _WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    print(json.dumps([result(row) for row in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
