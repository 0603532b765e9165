"""The lines of a script that its own run executes: the script runs as `__main__` under the package coverage. Judges nothing.

Lines count as they do under coverage 7.3 with the settings of CanItEdit, whatever later versions leave out by default:
statements that a comment `pragma: no cover` or `@abstractmethod` marks are left out. A script can falsify its own lines, and
nothing but a figure depends on them. Records, encoded with `wire`: ["lines", listed, statements, not run], the first with the
gaps inside ranges of statements that did not run, the others whatever the script's pragmas say; or ["fault", text]. Standard
library and coverage only.
"""

import os
import sys
from collections.abc import Callable
from types import ModuleType

from coverage import Coverage

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.pytest.texts import settle

PRAGMA = r"#\s*(pragma|PRAGMA)[:\s]?\s*(no|NO)\s*(cover|COVER)"
ABSTRACT = r"@(abc\.)?abstractmethod"
_MOST_TEXT = 300


def run(payload: bytes, send: Callable[[bytes], None]) -> None:
    """Called once in a fresh fork that ends right after. `payload`: the script's text."""
    text, path = wire.decode_native(payload), os.path.join(os.getcwd(), "program.py")
    settle(os.getcwd(), importing=True)
    _write(path, text)
    watched = Coverage(data_file=None, config_file=False, include=[path])
    try:
        code = compile(text, path, "exec", dont_inherit=True)
        watched.start()
        try:
            _execute(code, path)
        finally:
            watched.stop()
    except BaseException as fault:  # whatever a script raises, SystemExit too, ends its measurement
        send(wire.encode(["fault", type(fault).__name__[:_MOST_TEXT]]))
        return
    _write(path, text)  # The script may have written there.
    send(wire.encode(["lines", *_lines(watched, path)]))


def _execute(code, path: str) -> None:
    """Raises the script's exception, SystemExit only for an exit code other than 0."""
    module = ModuleType("__main__")
    module.__dict__["__file__"] = path
    sys.modules["__main__"], sys.argv = module, [path]
    try:
        exec(code, module.__dict__)
    except SystemExit as leave:
        if leave.code not in (None, 0):
            raise


def _lines(watched: Coverage, path: str) -> list[list[int]]:
    """The lines that the report with `-m` lists, all statements, and those that did not run."""
    watched.clear_exclude()
    watched.exclude(ABSTRACT)
    _, statements, _, not_run, _ = watched.analysis2(path)
    watched.exclude(PRAGMA)
    return [_listed(watched.analysis2(path)[4]), statements, not_run]


def _listed(ranges: str) -> list[int]:
    """The line numbers of `4, 17-18, 26`."""
    ends = [part.partition("-") for part in ranges.split(", ") if part]
    return [line for first, _, last in ends for line in range(int(first), int(last or first) + 1)]


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        file.write(text)
