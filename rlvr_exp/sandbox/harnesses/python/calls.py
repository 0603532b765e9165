"""The harness of `python_io`: it runs inside a candidate's own process. Reports data, judges nothing.

The candidate is compiled once and executed freshly for each case: as the module `candidate` whose entry point is
called, or, without an entry point, as a complete program. A case's record is sent as soon as it is known, so that a
later hang does not lose earlier answers. Expected values never enter this process; the inputs of later cases do, but
stay undecoded until their turn. Nothing here is trusted: code in the same process can send any records, and gains
nothing by it, since it does not know the values that it would have to send.

A program runs as `__main__` with its own standard input and output, like from the shell. Descriptors 0 and 1 are files
without a name, so that every way to read and write them works, below Python too; the output on 1 is the answer, standard
error goes to the log. A case ends like a process: threads that are no daemons are waited for, exit handlers run, files
are flushed. Exit code 0 is a normal end, any other a fault.

State is restored between cases only if the code could leave any (`has_side_effects`). Scalars of numpy count as the
numbers that they hold. Standard library only.
"""

import _io
import atexit
import builtins
import errno
import fcntl
import gc
import io
import os
import posix
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dis import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.python import state_reset
from rlvr_exp.sandbox.harnesses.python.reporter import (
    LOADING,
    SOURCE,
    CaseTimeout,
    OutputCap,
    Reporter,
    Send,
    not_plain,
)

_exit = os._exit
MODULE = "candidate"
"""A candidate's `__name__`: blocks under `if __name__ == "__main__"` do not run."""
_REPLACED = ("builtins", "__main__", MODULE)
_REHEARSED = (
    "def solve(a, b):\n    return a, b, {a: b}\n",
    "def solve(a, b):\n    return a.b\n",
    "def solve(a, b:\n",
)
_TURNS = 16
"""Number of calls until Python's interpreter adapts a function to its argument types."""
_spare_cap: list[OutputCap] = []


def pack_case(given: Any) -> bytes:
    """One case's arguments (a tuple), or a program's standard input (text). Raises wire.NotPlain."""
    data = wire.encode(given)
    return len(data).to_bytes(4, "big") + data


def pack(code: str, entry_point: str, cases: Sequence[bytes], limit: int, cap: int, case_cpu_s: float = 0.0) -> bytes:
    """The payload of one job. `cases`: from `pack_case`. `limit`: bytes of all records. `cap`: bytes that are
    kept of its output besides its answers. `case_cpu_s`: 0 for none."""
    head = wire.encode([code, entry_point, limit, cap, float(case_cpu_s)])
    return b"".join((len(head).to_bytes(4, "big"), head, *cases))


def run(payload: bytes, send: Send) -> None:
    """Called once in a fresh fork that ends right after."""
    head, *cases = _unpack(payload)
    source, entry_point, limit, shown, case_cpu_s = wire.decode_native(head)
    source = source.removeprefix("\ufeff")
    reporter = Reporter(send, limit, source)
    try:
        code = compile(source, SOURCE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as fault:
        # The parser reports its own full stack as MemoryError.
        reporter.error(LOADING, "parse", reporter.describe(fault))
        return
    state_reset.begin(source)
    if _spare_cap:
        cap = _spare_cap.pop()
        cap.limit = shown
    else:
        cap = OutputCap(shown)
        cap.open()
    one = _Function(code, entry_point, reporter) if entry_point else _Program(code, reporter)
    baseline = state_reset.Baseline(cap) if len(cases) > 1 and has_side_effects(code) else None
    for index, case in enumerate(cases):
        if index and baseline is not None:
            baseline.restore()
        if not state_reset.in_own_context(_timed, case_cpu_s, one, index, wire.decode_native(case), reporter):
            break
    else:
        reporter.done()
    os._exit = _exit  # even if the candidate replaced it: this process must end


def rehearse() -> None:
    """In the zygote, before any fork: run sample candidates and keep spare parts, so that a fork shares the objects that
    it would otherwise create or adapt itself. Most of a fork's cost is the kernel's copies of pages that it writes to."""
    before = [sys.modules.get(name) for name in _REPLACED]
    cases = [pack_case((number, [float(number), "x", None, True])) for number in range(4)]
    for code in _REHEARSED:
        for _ in range(_TURNS):
            run(pack(code, "solve", cases, 1 << 20, 0), lambda record: None)
    for name, module in zip(_REPLACED, before, strict=True):
        sys.modules.pop(name)
        if module is not None:
            sys.modules[name] = module
    state_reset.keep_spares()
    _spare_cap.append(OutputCap(0))
    _spare_cap[0].open()


def _unpack(payload: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(payload):
        end = at + 4 + int.from_bytes(payload[at : at + 4], "big")
        parts.append(payload[at + 4 : end])
        at = end
    return parts


def _timed(case_cpu_s: float, one: Callable[[int, Any], bool], index: int, given: Any, reporter: Reporter) -> bool:
    """One case, within its own limit: Python code is interrupted repeatedly, a call into C when it returns."""
    if not case_cpu_s:
        return one(index, given)

    def expire(*_: Any) -> None:
        if not reporter.reported:  # a record that is being sent, or was sent, stands
            raise CaseTimeout

    reporter.reported = False
    signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, case_cpu_s, 0.05)
    try:
        continues = one(index, given)
        signal.setitimer(signal.ITIMER_PROF, 0)
        return continues
    except CaseTimeout:
        signal.setitimer(signal.ITIMER_PROF, 0)
        reporter.error(index, "timeout", f"stopped at its own CPU limit of {case_cpu_s:g} s")
        return True


class _Function:
    """A candidate that is called. False from a call: no case of it can be judged."""

    def __init__(self, code: CodeType, entry_point: str, reporter: Reporter):
        self._code, self._entry_point, self._reporter = code, entry_point, reporter

    def __call__(self, index: int, args: tuple[Any, ...]) -> bool:
        reporter = self._reporter
        loading = LOADING if index == 0 else index
        module = state_reset.new_module(MODULE)
        try:
            exec(self._code, module.__dict__)
            function = self._resolve(module.__dict__)
        except CaseTimeout:
            raise
        except BaseException as fault:  # whatever a candidate raises, SystemExit too, is its answer
            reporter.fault(loading, fault)
            return index > 0
        if isinstance(function, str):
            reporter.error(loading, "resolve", function)
            return index > 0
        self._call(function, index, args)
        return True

    def _resolve(self, names: dict[str, Any]) -> Callable[..., Any] | str:
        """The entry point, or why there is none. For `Class.method` the class is instantiated without arguments."""
        first, *rest = self._entry_point.split(".")
        if first not in names:
            return f"{first} is not defined"
        found = names[first]
        for name in rest:
            owner = found() if isinstance(found, type) else found
            if not hasattr(owner, name):
                return f"{self._entry_point} is not defined"
            found = getattr(owner, name)
        return found if callable(found) else f"{self._entry_point} is not callable"

    def _call(self, function: Callable[..., Any], index: int, args: tuple[Any, ...]) -> None:
        reporter, returned = self._reporter, None
        try:
            returned = function(*args)
            try:
                reporter.value(index, returned)
            except wire.NotPlain:
                reporter.value(index, _to_plain(returned))
        except CaseTimeout:
            raise
        except wire.TooLarge as fault:
            reporter.error(index, "output", f"returned more than can be taken: {fault}")
        except wire.NotPlain as fault:
            reporter.error(index, "type", not_plain(returned, str(fault)))
        except BaseException as fault:  # as above
            reporter.fault(index, fault)


_SEQUENCES = (list, tuple, set, frozenset)


def _to_plain(value: Any) -> Any:
    """`value` with numpy's scalars replaced by their content; anything else, arrays too, stays unchanged.

    Raises:
        wire.NotPlain: nested too deep.
    """
    numpy = sys.modules.get("numpy")
    generic = getattr(numpy, "generic", None)
    return _plain(value, generic, 0) if isinstance(generic, type) else value


def _plain(value: Any, generic: type, depth: int) -> Any:
    kind = type(value)
    if depth > wire.MAX_DEPTH:
        raise wire.NotPlain(f"nested deeper than {wire.MAX_DEPTH}")
    if issubclass(kind, generic):  # a class of the candidate's own is not numpy's
        return generic.item(value) if kind.__module__ == "numpy" else value
    for base in _SEQUENCES:
        if issubclass(kind, base):
            return base(_plain(item, generic, depth + 1) for item in base.__iter__(value))
    if issubclass(kind, dict):
        items = dict.items(value)
        return {_plain(key, generic, depth + 1): _plain(item, generic, depth + 1) for key, item in items}
    return value


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


class _Left(SystemExit):
    """The program called os._exit: its case ends at once, and the next case can still run."""


class _Program:
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
        except _Left as left:
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
    """The builtin, for programs that name their streams as files: these lead through /proc, and that is closed."""
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
    raise _Left(code)


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


_WRITES = {
    opmap[name]
    for name in ("IMPORT_NAME", "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_BUILD_CLASS")
    if name in opmap
}
_COMPUTING = set(
    "abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float format frozenset"
    " hash hex int isinstance issubclass iter len list map max min next oct ord pow print range repr reversed round set"
    " slice sorted str sum tuple zip".split()
)
_OTHERS = {
    name for name, value in vars(builtins).items() if not (isinstance(value, type) and issubclass(value, BaseException))
} - _COMPUTING


def has_side_effects(code: CodeType) -> bool:
    """Whether the compiled code can change its process: an import, a written attribute or global, a name that begins with
    an underscore, a builtin that does more than compute. Conservative.

    A wrong "no" would keep state for the next case of the same candidate, without effect on the verdict
    (state_reset explains why): this decides speed alone.
    """
    if _WRITES & set(code.co_code[::2]):
        return True
    if any(name.startswith("_") or name in _OTHERS for name in code.co_names):
        return True
    return any(has_side_effects(part) for part in code.co_consts if isinstance(part, CodeType))
