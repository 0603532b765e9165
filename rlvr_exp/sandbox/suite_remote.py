"""A solution in a process of its own: `serve` runs it there, `Remote` is the module that the suite sees in its place.

What crosses between the two is plain data in `wire`'s encoding, both ways: arguments, results, constants, what was
printed, changes that a call made to the lists, dicts and sets it was given, and exceptions by name. The suite's process
holds none of the solution's code, the solution's none of the suite's. Standard library only.
"""

import builtins
import io
import os
import socket
import sys
import tempfile
import threading
from types import ModuleType
from typing import Any

from rlvr_exp.sandbox import wire

MAX_BYTES = 64 << 20
"""Of one message."""
_ONLY = "verifier.separate=true is for functions of plain data"
_CHANGEABLE = (list, dict, set)
_TEXT = 400


class Gone(RuntimeError):
    """The solution's process ended."""


class _Line:
    """Messages over the stream between the two."""

    def __init__(self, fd: int):
        self._socket = socket.socket(fileno=os.dup(fd))

    def send(self, message: Any) -> None:
        data = wire.encode(message, MAX_BYTES)
        self._socket.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self) -> Any:
        """Raises Gone, ValueError."""
        size = int.from_bytes(self._read(4), "big")
        if size > MAX_BYTES:
            raise ValueError(f"a message of {size} bytes, allowed {MAX_BYTES}")
        return wire.decode_native(self._read(size))

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(min(size - len(data), 1 << 20))
            except ConnectionError:
                part = b""
            if not part:
                raise Gone("the solution's process ended")
            data += part
        return bytes(data)


# The solution's process


def serve(peer: bytes, fd: int) -> None:
    """Load the solution, say what it holds, then answer calls until the other end closes."""
    job, line = wire.decode_native(peer), _Line(fd)
    folder = os.getcwd()
    sys.path.insert(0, folder)
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    write_files(folder, job["files"] | {"solution.py": job["solution"]})
    module = ModuleType("solution")
    module.__dict__["__file__"] = os.path.join(folder, "solution.py")
    sys.modules["solution"] = module
    try:
        exec(compile(job["solution"], module.__file__, "exec", dont_inherit=True), module.__dict__)
    except BaseException as fault:  # whatever a candidate raises, SystemExit too, is its answer
        kind = "parse" if isinstance(fault, SyntaxError) else "exception"
        line.send(["fault", "memory" if isinstance(fault, MemoryError) else kind, f"{_name(fault)}: {_text(fault)}"])
        return
    line.send(["loaded", [[name, *_described(value)] for name, value in vars(module).items() if _shown(name, value)]])
    while True:
        name, args, kwargs = line.receive()
        line.send(_answer(getattr(module, name), args, kwargs))


def write_files(folder: str, files: dict[str, str]) -> None:
    """The files of a run, their names checked by whoever sends them."""
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)


def _shown(name: str, value: Any) -> bool:
    """Modules that the solution imports are its own matter: a suite's star import keeps the suite's."""
    return not isinstance(value, ModuleType) and (not name.startswith("__") or name in ("__all__", "__doc__"))


def _described(value: Any) -> list[Any]:
    if isinstance(value, type) and issubclass(value, Exception):
        return ["exception", _builtin_base(value)]
    if isinstance(value, type):
        return ["other", "a class"]
    if callable(value):
        return ["function", str(getattr(value, "__doc__", "") or "")[:_TEXT]]
    try:
        wire.encode(value, MAX_BYTES // 64)
        return ["value", value]
    except (ValueError, RecursionError):
        return ["other", f"a {type(value).__name__}"]


def _answer(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    before = [wire.encode(arg, MAX_BYTES) for arg in args]
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        answer = ["value", function(*args, **kwargs)]
        wire.encode(answer, MAX_BYTES)
    except ValueError as fault:
        plain = isinstance(fault, (wire.NotPlain, wire.TooLarge))
        answer = ["unfit", _text(fault)] if plain else _raised(fault)
    except BaseException as fault:  # as above
        answer = _raised(fault)
    printed = [str(stream.getvalue()) if isinstance(stream, io.StringIO) else "" for stream in (sys.stdout, sys.stderr)]
    sys.stdout, sys.stderr = out, err
    return [answer, printed, _changes(args, before)]


def _changes(args: tuple[Any, ...], before: list[bytes]) -> list[list[Any]]:
    changed = []
    for at, arg in enumerate(args):
        try:
            if isinstance(arg, _CHANGEABLE) and wire.encode(arg, MAX_BYTES) != before[at]:
                changed.append([at, arg])
        except ValueError:
            continue  # made unfit to travel: the caller keeps what it had
    return changed


def _raised(fault: BaseException) -> list[Any]:
    try:
        args = wire.decode_native(wire.encode(fault.args, 1 << 16))
    except ValueError:
        args = (_text(fault),)
    return ["raised", _name(fault), _builtin_base(type(fault)), list(args), _text(fault)]


def _builtin_base(kind: type) -> str:
    return next((base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"), "Exception")


def _name(fault: BaseException) -> str:
    return type(fault).__name__


def _text(fault: BaseException) -> str:
    try:
        return str(fault)[:_TEXT]
    except BaseException:  # a candidate's own __str__
        return ""


# The suite's process


class Remote:
    """The solution as the suite sees it: `module`, or None with the `fault` (kind, text) that its loading ended in."""

    def __init__(self, fd: int):
        self._line, self._lock = _Line(fd), threading.Lock()
        self._exceptions: dict[str, type[Exception]] = {}
        self.module: ModuleType | None = None
        self.fault: tuple[str, str] = ("exception", "its process ended while it was loaded")
        try:
            kind, *rest = self._line.receive()
            if kind == "loaded":
                self.module = self._module(rest[0])
            elif rest[0] in ("parse", "exception", "memory"):
                self.fault = (rest[0], str(rest[1])[:_TEXT])
        except (Gone, ValueError, TypeError, IndexError) as fault:
            self.fault = ("exception", f"{self.fault[1]}: {fault}")

    def _module(self, described: list[list[Any]]) -> ModuleType:
        module = ModuleType("solution")
        for name, kind, what in described:
            module.__dict__[name] = self._member(name, kind, what)
        return module

    def _member(self, name: str, kind: str, what: Any) -> Any:
        if kind == "value":
            return what
        if kind == "function":
            return self._function(name, what)
        if kind == "exception":
            self._exceptions[name] = type(name, (_exception(what),), {"__module__": "solution"})
            return self._exceptions[name]
        return _Unfit(name, str(what))

    def _function(self, name: str, doc: str) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, args, kwargs)

        function.__name__ = function.__qualname__ = name
        function.__module__, function.__doc__ = "solution", doc
        return function

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._lock:
            try:
                self._line.send([name, args, kwargs])
            except wire.NotPlain as fault:
                raise TypeError(f"solution.{name} was called with what is not plain data ({fault}); {_ONLY}") from None
            except OSError:
                raise Gone("the solution's process ended") from None
            answer, printed, changes = self._line.receive()
        for text, stream in zip(printed, (sys.stdout, sys.stderr), strict=True):
            stream.write(str(text))
        for at, content in changes:
            _put_back(args[at], content)
        if answer[0] == "value":
            return answer[1]
        if answer[0] == "unfit":
            raise TypeError(f"solution.{name} returned what is not plain data ({answer[1]}); {_ONLY}")
        raise self._exception_of(*answer[1:])

    def _exception_of(self, name: str, base: str, args: list[Any], text: str) -> Exception:
        kind = self._exceptions.get(name) or _exception(base)
        if kind is RuntimeError and base != "RuntimeError":
            return RuntimeError(f"{name}: {text}")
        try:
            return kind(*args)
        except Exception:  # a type with arguments of its own
            return RuntimeError(f"{name}: {text}")


def _exception(name: str) -> type[Exception]:
    """A built-in exception, never one that would end the session."""
    kind = getattr(builtins, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError


def _put_back(target: Any, content: Any) -> None:
    if type(target) is not type(content):
        return
    if type(target) is list:
        target[:] = content
    elif type(target) in (dict, set):
        target.clear()
        target.update(content)


class _Unfit:
    """In place of what cannot cross: says so when it is used."""

    def __init__(self, name: str, what: str):
        self.__dict__["_said"] = f"solution.{name} is {what}; {_ONLY}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(self._said)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._said)
