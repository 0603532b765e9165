"""The reports of a harness about a candidate: records of plain data, exceptions in words, and its capped output.

Shared by the harness of functions and that of programs, inside the candidate's own process: robust against objects with
their own `__str__`, `__class__` or metaclass's `__name__`, yet trusted by nobody. Standard library only.

Records, encoded with `wire`: ["value", case, value], ["error", case, kind, text, *names], ["done"]. Case LOADING
stands for the time before the first case; names are the built-in classes of an exception; kinds are `parse`, `resolve`,
`exception`, `memory`, `output`, `type`, `timeout`.
"""

import builtins
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rlvr_exp.sandbox import wire

Send = Callable[[bytes], None]
LOADING = -1
SOURCE = "candidate.py"
"""The file name that a candidate's code is compiled under."""
_MAX_TEXT, _MAX_LINE = 300, 80
_ONE_BY_ONE = (
    "generator async_generator map filter zip range dict_keys dict_values dict_items reversed enumerate".split()
)
_SYNTAX_ERRORS = (SyntaxError, IndentationError, TabError)
_name_of = type.__dict__["__name__"].__get__
_bases_of = type.__dict__["__mro__"].__get__
_BUILT_IN = {
    id(kind): name for name, kind in vars(builtins).items() if isinstance(kind, type) and kind.__name__ == name
}
"""By identity: a candidate's metaclass cannot fake it."""


class CaseTimeout(BaseException):
    """A case used up its own share of CPU time. Not caught by handlers that take a candidate's exceptions as its
    answer."""


class Reporter:
    """`limit`: bytes of all records together. `source`: the candidate's text, to quote faulty lines from."""

    def __init__(self, send: Send, limit: int, source: str):
        self._send, self._left, self._source = send, limit, source
        self.reported = False
        """A record is being sent, or was sent: set before the first byte, so that no timer may cut it short."""

    def value(self, case: int, value: Any) -> None:
        """Send a value. Raises wire.NotPlain, wire.TooLarge."""
        self._record(["value", case, value])

    def error(self, case: int, kind: str, text: str, names: Sequence[str] = ()) -> None:
        self._record(["error", case, kind, text[:_MAX_TEXT], *names])

    def done(self) -> None:
        self._record(["done"])

    def fault(self, case: int, fault: BaseException) -> None:
        """Send an exception of the candidate's code; to be called while it is handled."""
        kind = "memory" if isinstance(fault, MemoryError) else "exception"
        names = [_BUILT_IN[id(one)] for one in _bases_of(type(fault)) if id(one) in _BUILT_IN]
        self.error(case, kind, self.describe(fault), names if kind == "exception" else ())

    def describe(self, fault: BaseException) -> str:
        """Type, text, and the last line of the candidate's own code on the way to it."""
        line = _last_line(sys.exc_info()[2])
        if type(fault) in _SYNTAX_ERRORS and fault.filename == SOURCE and type(fault.lineno) is int:
            line = max(0, fault.lineno)
        try:
            message = str(fault)
            message = str.__getitem__(message, slice(0, _MAX_TEXT - 120))
        except BaseException:  # the candidate's own __str__; its exception is no better
            message = ""
        text = _name_of(type(fault)) + (f": {message}" if message else "")
        if not line:
            return text
        lines = self._source.splitlines()
        quoted = lines[line - 1].strip()[:_MAX_LINE] if line <= len(lines) else ""
        return f"{text} (line {line}: {quoted})"

    def _record(self, record: list[Any]) -> None:
        data = wire.encode(record, max(self._left, 1024))
        self._left -= len(data) + 4
        self.reported = True
        self._send(data)


def not_plain(value: Any, fault: str) -> str:
    """Why a returned object is no answer, and a remedy. `fault`: the encoder's exception."""
    kind = _name_of(type(value))
    if kind in _ONE_BY_ONE:
        return f"returned a {kind}, which is not plain data: return a list of its items"
    if kind == "coroutine":
        return "returned a coroutine, which nobody awaited: return asyncio.run(...) of it"
    if fault.startswith("a ndarray "):
        return "returned a numpy array, or what holds one, which is not plain data: return its .tolist()"
    return f"returned a {kind} that is not plain data, or holds what is not"


def _last_line(trace: Any) -> int:
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOURCE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line or 0


FLOOD = 500


class _Capped(io.RawIOBase):
    """Passes output on until all streams of a cap together reach its limit, and once more when it is a flood."""

    def __init__(self, name: str, fd: int, cap: "OutputCap"):
        self.name, self._fd, self._cap = name, fd, cap

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def write(self, data: memoryview) -> int:
        cap = self._cap
        room = max(0, cap.limit - cap.seen)
        cap.seen += len(data)
        shown = bytes(data if cap.seen > FLOOD * cap.limit else data[:room])
        while shown:
            shown = shown[os.write(self._fd, shown) :]
        return len(data)


class OutputCap:
    """`limit`: bytes that standard output and standard error together may pass on.

    Debug prints are no offence: the streams drop the excess, up to `FLOOD` times the limit. Beyond that, and for writes
    to the descriptors below them, the sandbox's own hard cap applies and ends the candidate.
    """

    def __init__(self, limit: int):
        self.limit, self.seen = limit, 0

    def open(self) -> None:
        """Fresh streams in sys; the previous streams are flushed when they end."""
        for name, fd in (("stdout", 1), ("stderr", 2)):
            buffer = io.BufferedWriter(_Capped(f"<{name}>", fd, self))
            stream = io.TextIOWrapper(
                buffer, encoding="utf-8", errors="backslashreplace", newline="\n", line_buffering=fd == 2
            )
            stream.mode = "w"
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
