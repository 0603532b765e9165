"""The harness of `python_io`: what runs inside a candidate's own process. Reports data, judges nothing.

Loads the candidate as a module, calls its entry point once per case, and sends one record a case as soon as it is
known, so that a later hang does not take earlier answers away. Expected values never enter this process. Nothing here
is trusted: code in the same process can send any records it likes, and wins nothing by it, since it does not know the
values that it would have to send.

Records, encoded with `wire`: ["value", case, value], ["error", case, kind, text], ["done"]. Case -1 is the loading;
kinds are `parse`, `resolve`, `exception`, `memory`, `output`, `type`. Standard library only.
"""

import builtins
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from rlvr_exp.sandbox import wire

# What short programs import most: loaded once here, free in every fork.
for (
    _name
) in "bisect collections copy dataclasses functools heapq itertools math operator random re string typing".split():
    importlib.import_module(_name)

Send = Callable[[bytes], None]
LOADING = -1


def pack(code: str, entry_point: str, cases: list[tuple[Any, ...]], limit: int) -> bytes:
    """The payload of one job. `limit`: bytes of all records together. Raises wire.NotPlain."""
    return wire.encode({"code": code, "entry_point": entry_point, "cases": cases, "limit": limit})


def run(payload: bytes, send: Send) -> None:
    """Judge-side contract: called once in a fresh fork, which ends right after."""
    job = wire.decode_native(payload)
    reporter = _Reporter(send, job["limit"])
    function = _load(job["code"], job["entry_point"], reporter)
    if function is None:
        return
    for index, args in enumerate(job["cases"]):
        _call(function, args, index, reporter)
    reporter.record(["done"])


class _Reporter:
    def __init__(self, send: Send, limit: int):
        self._send = send
        self._left = limit

    def record(self, record: list[Any]) -> None:
        data = wire.encode(record, max(self._left, 1024))
        self._left -= len(data) + 4
        self._send(data)

    def error(self, case: int, kind: str, text: str) -> None:
        self.record(["error", case, kind, text[:400]])


def _load(code: str, entry_point: str, reporter: _Reporter) -> Callable[..., Any] | None:
    module = _fresh_module()
    try:
        compiled = compile(code, "candidate.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as fault:
        # The parser reports its own full stack as MemoryError.
        reporter.error(LOADING, "parse", _describe(fault))
        return None
    try:
        exec(compiled, module.__dict__)
    except MemoryError as fault:
        reporter.error(LOADING, "memory", _describe(fault))
        return None
    except BaseException as fault:  # whatever a candidate raises, SystemExit too, is its answer
        reporter.error(LOADING, "exception", _describe(fault))
        return None
    function = module.__dict__.get(entry_point)
    if not callable(function):
        what = "is not callable" if entry_point in module.__dict__ else "is not defined"
        reporter.error(LOADING, "resolve", f"{entry_point} {what}")
        return None
    return function


def _fresh_module() -> types.ModuleType:
    """An empty module with builtins of its own, so that a candidate which patches them does not break the harness."""
    own = types.ModuleType("builtins")
    own.__dict__.update(builtins.__dict__)
    module = types.ModuleType("candidate")
    module.__dict__["__builtins__"] = own
    sys.modules.update(builtins=own, candidate=module)
    return module


def _call(function: Callable[..., Any], args: tuple[Any, ...], index: int, reporter: _Reporter) -> None:
    try:
        reporter.record(["value", index, function(*args)])
    except MemoryError as fault:
        reporter.error(index, "memory", _describe(fault))
    except wire.TooLarge as fault:
        reporter.error(index, "output", _describe(fault))
    except wire.NotPlain as fault:
        reporter.error(index, "type", f"returned what is not plain data: {fault}")
    except BaseException as fault:  # as above
        reporter.error(index, "exception", _describe(fault))


def _describe(fault: BaseException) -> str:
    line, trace = 0, fault.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "candidate.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(fault, SyntaxError):
        line = fault.lineno or 0
    try:
        text = str(fault)
    except BaseException:  # a candidate's own __str__
        text = ""
    return f"{type(fault).__name__}: {text}" + (f" (line {line})" if line else "")
