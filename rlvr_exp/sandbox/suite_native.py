"""CPython from below, for the pytest harness: who runs, types that cannot be patched, dicts that were written to.

Owns every use of ctypes on the grader's side. All is looked up once, in the zygote, before any candidate; nothing here
is reachable for one, since its holders are closures. Written for CPython 3.11 and later: the layout of a dict's version
is checked at import. Standard library only.
"""

import ctypes
import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_api = ctypes.pythonapi


def _function(name: str, result: Any, *args: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *args)((name, _api))


_pointer = ctypes.c_void_p
_thread = _function("PyThreadState_Get", _pointer)
_top = _function("PyThreadState_GetFrame", _pointer, _pointer)
_back = _function("PyFrame_GetBack", _pointer, _pointer)
_code = _function("PyFrame_GetCode", ctypes.py_object, _pointer)
_drop = _function("Py_DecRef", None, _pointer)
_function_code = _function("PyFunction_GetCode", _pointer, ctypes.py_object)
_owned = _function("Py_NewRef", ctypes.py_object, _pointer)
_FRAME_AT = object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)  # behind tb_next
_unmarshal = _function("PyMarshal_ReadObjectFromString", ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)
_modified = _function("PyType_Modified", None, ctypes.py_object)


def callers() -> Iterator[CodeType]:
    """The code of this thread's frames, the caller's own first; asks nothing of Python that could be seen."""
    own = _top(_thread())
    frame = _back(own)
    _drop(own)
    try:
        while frame:
            yield _code(frame)
            above = _back(frame)
            _drop(frame)
            frame = above
    finally:
        if frame:
            _drop(frame)


def code_of(function: FunctionType) -> CodeType:
    """`function.__code__`, without the event that reading it raises."""
    return _owned(_function_code(function))


def code_in(frame: FrameType) -> CodeType:
    """`frame.f_code`, without its event."""
    return _code(id(frame))


def frame_of(trace: TracebackType) -> FrameType:
    """`trace.tb_frame`, without its event."""
    return ctypes.py_object.from_address(id(trace) + _FRAME_AT).value


def unmarshalled(data: bytes) -> CodeType:
    """`marshal.loads` of a library's own file, without its event."""
    return _unmarshal(data, len(data))


def replace_attribute(owner: type, name: str, value: Any) -> Any:
    """Put `value` into a type's dictionary, a built-in type's too; returns what was there."""
    table = gc.get_referents(owner.__dict__)[0]
    before = table[name]
    table[name] = value
    _modified(owner)
    return before


def freeze(classes: Iterable[type]) -> None:
    """No attribute of these classes can be set any more, by anyone."""
    offset = type.__dict__["__flags__"]
    for cls in classes:
        flags = offset.__get__(cls)
        if flags & _HEAP and not flags & _IMMUTABLE:
            _flags_of(cls).value = flags | _IMMUTABLE


def _flags_of(cls: type) -> ctypes.c_ulong:
    return ctypes.c_ulong.from_address(id(cls) + _FLAGS_AT)


def _flags_offset() -> int:
    """Where a type keeps its flags: found by looking, on a class made for it."""

    class Probe:
        __slots__ = ()

    for at in range(0, 400, ctypes.sizeof(ctypes.c_ulong)):
        if ctypes.c_ulong.from_address(id(Probe) + at).value == Probe.__flags__:
            return at
    raise ImportError(
        "this interpreter keeps the flags of types elsewhere; the pytest verifier needs CPython 3.11-3.13"
    )


_FLAGS_AT = _flags_offset()


class Watch:
    """Tells whether a dict was written to since, even where the old values were put back."""

    __slots__ = ("_before", "_dict", "_seen", "_version")

    def __init__(self, table: dict[str, Any], keep: bool = False):
        self._dict = table
        self._before = dict(table) if keep else {}
        self._version = ctypes.c_uint64.from_address(id(table) + 24)
        self._seen = self._version.value

    def written(self) -> bool:
        return self._version.value != self._seen

    def only_more(self, cls: type) -> bool:
        """A class's table, kept from the start: all is as it was, and what is new hides nothing that was inherited."""
        now, before = self._dict, self._before
        new = [name for name in now if name not in before]
        bases = type.__dict__["__mro__"].__get__(cls)[1:]
        inherited = any(name in type.__dict__["__dict__"].__get__(base) for name in new for base in bases)
        same = all(name in now and now[name] is value for name, value in before.items())
        return same and not inherited and not any(name.startswith("__") for name in new)

    def accept(self) -> None:
        self._seen = self._version.value


def class_table(cls: type) -> dict[str, Any]:
    """The dict behind a class's read-only view."""
    return gc.get_referents(cls.__dict__)[0]


def _check() -> None:
    table = {"a": 1}
    watch = Watch(table)
    table["a"] = 2
    table["a"] = 1
    trace = TracebackType(None, sys._getframe(), 0, 0)
    if not watch.written() or frame_of(trace) is not sys._getframe() or next(callers()) is not sys._getframe().f_code:
        raise ImportError("this interpreter is laid out differently; the pytest verifier needs CPython 3.11")


_check()
