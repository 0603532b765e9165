"""A complete program on one case: run as `__main__` with its own standard input and output, like from the shell.

Descriptors 0 and 1 are files without a name, so that every way to read and write them works, below Python too; the
output on 1 is the answer, standard error goes to the log. A case ends like a process: threads that are no daemons
are waited for, exit handlers run, files are flushed. Exit code 0 is a normal end, any other a fault. Standard
library only.
"""

import _io
import atexit
import errno
import fcntl
import gc
import io
import os
import posix
import sys
import threading
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.python import state_reset
from rlvr_exp.sandbox.harnesses.python.reporter import CaseTimeout, Reporter

_OWN_STDIN = sys.stdin
_open_file, _open_descriptor, _stat_path = open, os.open, os.stat
_STREAM = ".stream"
_ERRORS = "surrogatepass"
"""Each text has its own bytes, and these decode to that text, lone surrogates included."""
_CODE = (FunctionType, BuiltinFunctionType, type, ModuleType)
_DEVICES = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_DEVICES |= {f"/dev/fd/{number}": number for number in range(3)} | {
    f"/proc/self/fd/{number}": number for number in range(3)
}


class Left(SystemExit):
    """The program called os._exit: its case ends at once, and the next case can still run."""


class Program:
    """Runs cases of one program and reports the text that each wrote, or the fault."""

    def __init__(self, code: CodeType, reporter: Reporter):
        self._code, self._reporter = code, reporter
        self._stdout = sys.stdout
        real = sys.modules["builtins"]
        real.open = io.open = _io.open = _open
        os.open = posix.open = _os_open
        os.stat = posix.stat = _os_stat

    def __call__(self, index: int, stdin: str) -> bool:
        """Run one case; True: the next case can run."""
        output = _open_streams(stdin.encode("utf-8", _ERRORS))
        module = state_reset.new_module("__main__")
        sys.modules["builtins"].open = _open  # the candidate's own, of this case
        try:
            if code := self._run(module.__dict__):
                self._reporter.error(index, "exception", f"exit code {code}")
            else:
                data = os.pread(output, os.fstat(output).st_size, 0)
                self._reporter.value(index, _decoded(data))
        except CaseTimeout:
            raise
        except wire.TooLarge:
            self._reporter.error(index, "output", "wrote more to standard output than it may")
        except BaseException as fault:  # whatever a candidate raises is its answer
            if isinstance(fault, OSError) and fault.errno == errno.EFBIG:
                self._reporter.error(index, "output", "wrote more to standard output than it may")
            else:
                self._reporter.fault(index, fault)
        finally:
            module.__dict__.clear()
            # Streams that still hold text are flushed, so that it does not reach the next case's output.
            sys.stdin = sys.__stdin__ = _OWN_STDIN
            sys.stdout = sys.__stdout__ = self._stdout
            gc.collect()
            os.close(output)
        return True

    def _run(self, names: dict[str, Any]) -> int:
        """The exit code."""
        os._exit = _leave
        original, code = sys.stdout, 0
        try:
            exec(self._code, names)
        except Left as left:
            return _exit_code(left)
        except SystemExit as leave:
            code = _exit_code(leave)
        _wait_for_threads()
        atexit._run_exitfuncs()
        _flush(sys.stdout, original)
        _end(names, sys.stdout, original)
        _flush(original)  # another object may need an object that is gone now
        return code


def _decoded(data: bytes) -> str | bytes:
    """The text; bytes that are no UTF-8 stay bytes."""
    try:
        return data.decode("utf-8", _ERRORS)
    except UnicodeDecodeError:
        return data


def _flush(*streams: Any) -> None:
    for stream in streams:
        if stream is not None and state_reset.is_open(stream):
            stream.flush()


def _end(names: dict[str, Any], *streams: Any) -> None:
    """The module's end: finalizers run while the objects that they use exist, and a file that nobody closed is flushed."""
    for name in [name for name, value in names.items() if hasattr(type(value), "__del__")]:
        del names[name]
    gc.collect()
    _flush(*streams)
    for name in [name for name, value in names.items() if not isinstance(value, _CODE) and name != "__builtins__"]:
        del names[name]
    gc.collect()
    names.clear()
    gc.collect()


def _open_streams(stdin: bytes) -> int:
    """The descriptor of the file for standard output."""
    given, output = _nameless_file(), _nameless_file()
    view = memoryview(stdin)
    while view:
        view = view[os.write(given, view) :]
    os.lseek(given, 0, os.SEEK_SET)
    os.dup2(given, 0)
    os.dup2(output, 1)
    os.close(given)
    how: dict[str, Any] = {"encoding": "utf-8", "errors": _ERRORS, "newline": "\n", "closefd": False}
    sys.stdin = sys.__stdin__ = _open_file(0, **how)
    sys.stdout = sys.__stdout__ = _open_file(1, "w", **how)
    return output


def _nameless_file() -> int:
    """A file in the scratch without a name; not one of the standard descriptors, if the case before closed them."""
    low = _open_descriptor(_STREAM, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(_STREAM)
    high = fcntl.fcntl(low, fcntl.F_DUPFD, 3)
    os.close(low)
    return high


def _open(file: Any, *args: Any, **options: Any) -> Any:
    """The builtin, for programs that name their streams as files: these lead through /proc, which is closed."""
    stream = _stream_of(file)
    return _open_file(file if stream is None else os.dup(stream), *args, **options)


def _os_open(path: Any, *args: Any, **options: Any) -> int:
    """The same for os.open."""
    stream = _stream_of(path)
    return _open_descriptor(path, *args, **options) if stream is None else os.dup(stream)


def _os_stat(path: Any, *args: Any, **options: Any) -> os.stat_result:
    """The same for programs that first check whether the file exists."""
    stream = _stream_of(path)
    return _stat_path(path, *args, **options) if stream is None else os.fstat(stream)


def _stream_of(path: Any) -> int | None:
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    return _DEVICES.get(name) if isinstance(name, str) else None


def _leave(code: int) -> None:
    raise Left(code)


def _exit_code(leave: SystemExit) -> int:
    if leave.code is None:
        return 0
    if isinstance(leave.code, int):
        return leave.code & 0xFF
    print(leave.code, file=sys.stderr)
    return 1


def _wait_for_threads() -> None:
    """Like the interpreter at its end. Executors would then refuse work for ever: this is undone."""
    for call in reversed(threading._threading_atexits):
        call()
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    executors = sys.modules.get("concurrent.futures.thread")
    if executors is not None:
        executors._shutdown = False
