"""A whole program on one case: run as `__main__` with its own standard input and output, as the shell would run it.

Descriptors 0 and 1 are files without a name, so that every way to read and write them works, below Python too; what is
written to 1 is the answer, standard error goes to the log. A case ends as a process does: threads that are no daemons
are waited for, exit handlers run, files are flushed. Exit code 0 is a normal end, another one a fault. Standard
library only.
"""

import atexit
import errno
import fcntl
import gc
import os
import sys
import threading
from types import CodeType
from typing import Any

from rlvr_exp.sandbox import fresh, wire
from rlvr_exp.sandbox.reporter import CaseTimeout, Reporter

_OWN_STREAMS = sys.stdin, sys.stdout
_STREAM = ".stream"
_DEVICES = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_DEVICES |= {f"/dev/fd/{number}": number for number in range(3)} | {
    f"/proc/self/fd/{number}": number for number in range(3)
}


class Left(SystemExit):
    """The program called os._exit: its case ends there and then, and the next one can still run."""


class Program:
    """Runs cases of one program and reports the text that each wrote, or the fault."""

    def __init__(self, code: CodeType, reporter: Reporter):
        self._code, self._reporter = code, reporter

    def __call__(self, index: int, stdin: str) -> bool:
        """True: the next case can run."""
        output = _open_streams(stdin.encode("utf-8", "surrogateescape"))
        module = fresh.new_module("__main__")
        sys.modules["builtins"].open = _open
        try:
            self._report(index, self._run(module.__dict__), output)
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
            _close_streams(output)
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
        for stream in (sys.stdout, original):
            if stream is not None and fresh.is_open(stream):
                stream.flush()
        names.clear()  # a file that nobody closed is flushed by its end
        gc.collect()
        return code

    def _report(self, index: int, code: int, output: int) -> None:
        if code:
            self._reporter.error(index, "exception", f"exit code {code}")
            return
        data = os.pread(output, os.fstat(output).st_size, 0)
        self._reporter.value(index, data.decode("utf-8", "surrogateescape"))


def _open_streams(stdin: bytes) -> int:
    """The descriptor of what will be written to standard output."""
    given, output = _nameless_file(), _nameless_file()
    view = memoryview(stdin)
    while view:
        view = view[os.write(given, view) :]
    os.lseek(given, 0, os.SEEK_SET)
    os.dup2(given, 0)
    os.dup2(output, 1)
    os.close(given)
    how: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": "\n", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, **how)
    sys.stdout = sys.__stdout__ = open(1, "w", **how)
    return output


def _nameless_file() -> int:
    """A file in the scratch without a name; not one of the standard descriptors, where the case before closed them."""
    low = os.open(_STREAM, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(_STREAM)
    high = fcntl.fcntl(low, fcntl.F_DUPFD, 3)
    os.close(low)
    return high


def _close_streams(output: int) -> None:
    """What still holds text is flushed now, so that it does not reach the next case's output."""
    sys.stdin, sys.stdout = sys.__stdin__, sys.__stdout__ = _OWN_STREAMS
    gc.collect()
    os.close(output)


def _open(file: Any, *args: Any, **options: Any) -> Any:
    """The builtin, for programs that name their streams as files: /proc, through which these lead, is closed."""
    return open(os.dup(_DEVICES[file]) if type(file) is str and file in _DEVICES else file, *args, **options)


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
    """As the interpreter does at its end. Executors would then refuse work for ever: theirs is taken back."""
    for call in reversed(threading._threading_atexits):
        call()
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    executors = sys.modules.get("concurrent.futures.thread")
    if executors is not None:
        executors._shutdown = False
