"""Plain Python's results on programs of `programs.py`: run in a child process, without a sandbox.

Requests on standard input and answers on standard output are lines of hexadecimal `wire` data. `functions`: [code,
[arguments, ...]] gives for each call [key, value] or a fault's name; equal keys are equal answers, by rules written
here independently of the verifier. `suites`: [code, tests] gives whether pytest passes it, each in its own fork.
"""

import contextlib
import copy
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rlvr_exp.sandbox import wire

_SECONDS = 10


def ask(mode: str, requests: Iterable[Any]) -> Iterator[Any]:
    """The answers of a child, in order. `mode`: `functions` or `suites`."""
    lines = "".join(f"{wire.encode(request).hex()}\n" for request in requests)
    command = [sys.executable, "-m", __name__, mode]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, env=environment)
    for line in done.stdout.splitlines():
        yield wire.decode_native(bytes.fromhex(line))


def key(value: Any) -> str:
    """A text that is equal for answers that are equal under strict types. Raises TypeError for values that are no plain data."""
    if isinstance(value, complex):
        return f"complex {key(value.real)} {key(value.imag)}"
    if isinstance(value, float):
        return f"float {value + 0.0!r}"  # 0.0 for -0.0
    for plain in (bool, int, str, bytes):
        if isinstance(value, plain):
            return f"{plain.__name__} {plain.__repr__(value)}"
    if value is None:
        return "None"
    for base in (list, tuple):
        if isinstance(value, base):
            return f"{base.__name__} [{', '.join(map(key, base.__iter__(value)))}]"  # type: ignore[arg-type]
    if isinstance(value, dict):
        return f"dict {sorted((key(one), key(other)) for one, other in dict.items(value))}"
    if isinstance(value, set | frozenset):
        kind = "frozenset" if isinstance(value, frozenset) else "set"
        return f"{kind} {sorted(map(key, value))}"
    raise TypeError(f"a {type(value).__name__} is no data")


def _called(code: str, args: tuple[Any, ...]) -> Any:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            names: dict[str, Any] = {"__name__": "candidate"}
            exec(compile(code, "candidate.py", "exec"), names)
            value = names["f"](*copy.deepcopy(args))
            return [key(value), value]
    except Exception as fault:  # what the program raises is its answer
        return type(fault).__name__


def _functions(request: Any) -> Any:
    code, calls = request
    return [_called(code, args) for args in calls]


def _suite(request: Any) -> bool:
    """Whether a run of pytest ends with exit code 0."""
    import pytest

    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    signal.alarm(_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zip(("solution.py", "test_solution.py"), request, strict=True):
            Path(folder, name).write_text(text, encoding="utf-8")
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        code = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", folder, folder])
    os._exit(int(code))


def main() -> None:
    answer = {"functions": _functions, "suites": _suite}[sys.argv[1]]
    for line in sys.stdin:
        given = wire.encode(answer(wire.decode_native(bytes.fromhex(line))))
        print(given.hex(), flush=True)


if __name__ == "__main__":
    main()
