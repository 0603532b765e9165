"""One end of the bridge: sends requests for operations on the other end's objects, and serves requests on its own.

A `Channel` carries the messages: frames of JSON on one stream, sorted by conversation. A conversation is the requests of
one thread of either side, with all requests back meanwhile: it is served by one thread on the other side, so that locks,
recursion and thread-locals behave like in one process. A waiting thread reads, and passes on messages for others.

A request is [conversation, "?", what, target, name, args, kwargs, news]; its answer is [conversation, "=" or "!",
result or exception, news]. Requests nest: while one is pending, the other end may send requests back. `news` are
changes of shared containers, objects no longer held, and the reports of `Ambient`. `rules` decides about
requests and answers.

Awaiting an object of the other end creates a task for it there, and the task reports when it is done: each end runs its own
coroutines in its own event loop (`Coroutines`). Standard library only.
"""

import asyncio
import copy
import inspect
import itertools
import json
import os
import pickle
import select
import socket
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest import objects, values
from rlvr_exp.sandbox.harnesses.pytest.containers import Shared
from rlvr_exp.sandbox.harnesses.pytest.mirrors import Place, State, is_failure
from rlvr_exp.sandbox.harnesses.pytest.moments import Moment
from rlvr_exp.sandbox.harnesses.pytest.objects import Objects
from rlvr_exp.sandbox.harnesses.pytest.values import Unbridgeable, Values

MAX_BYTES = 64 << 20
"""Largest message."""
MAIN = 0
"""The conversation of the two main threads."""
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().decode
_Thread = threading.Thread


class Gone(RuntimeError):
    """The other process ended, or sent invalid data."""


class Channel:
    """One end. `stray` is called with the first message of a conversation that the other end began."""

    def __init__(self, fd: int):
        self._socket = socket.socket(fileno=os.dup(fd))
        self._inboxes: dict[int, deque[list[Any]]] = {MAIN: deque()}
        self._state, self._sending = threading.Condition(), threading.Lock()
        self._reading, self._fault = False, ""
        self.stray: Callable[[int], None] = lambda conversation: None

    def send(self, message: list[Any]) -> None:
        """[conversation, kind, ...]. Raises Gone; ValueError for a message that is too long."""
        data = _encode(message).encode("ascii")
        if len(data) > MAX_BYTES:
            raise ValueError(f"a message of {len(data)} bytes, allowed {MAX_BYTES}")
        try:
            with self._sending:
                self._socket.sendall(len(data).to_bytes(4, "big") + data)
        except OSError as fault:
            raise Gone("the other process ended") from fault

    def receive(self, conversation: int) -> list[Any]:
        """The next message of a conversation. Raises Gone."""
        inbox = self._inboxes[conversation]
        while True:
            with self._state:
                while not inbox and self._reading and not self._fault:
                    self._state.wait()
                if inbox:
                    return inbox.popleft()
                if self._fault:
                    raise Gone(self._fault)
                self._reading = True
            self._read_one()

    def open(self, conversation: int) -> None:
        """Register a conversation: its messages are received here."""
        self._inboxes.setdefault(conversation, deque())

    def watch(self) -> None:
        """Read also while nobody waits: for threads and event loops that are busy elsewhere."""
        _Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._fault:
            select.select([self._socket], [], [])
            with self._state:
                if self._reading:
                    self._state.wait(0.05)
                    continue
                self._reading = True
            self._read_one()

    def _read_one(self) -> None:
        message, fault = None, ""
        try:
            message = _decode(self._read(int.from_bytes(self._read(4), "big")).decode("ascii"))
            if type(message) is not list or len(message) < 2 or type(message[0]) is not int:
                raise ValueError("no message")
        except (Gone, ValueError, RecursionError, MemoryError, OSError) as broken:
            message, fault = None, f"the other process ended, or broke the bridge ({type(broken).__name__}: {broken})"
        new = False
        with self._state:
            self._reading = False
            if message is None:
                self._fault = fault
            else:
                new = message[0] not in self._inboxes
                self._inboxes.setdefault(message[0], deque()).append(message)
            self._state.notify_all()
        if new:
            self.stray(message[0])

    def _read(self, size: int) -> bytes:
        if size > MAX_BYTES:
            raise ValueError(f"a message of {size} bytes, allowed {MAX_BYTES}")
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise Gone("end of stream")
            data += part
        return bytes(data)


_ASKED, _IN_LOOP, _ANSWER, _FAULT = "?", "?~", "=", "!"
_NEVER = Moment()
_OWN_TARGETS = ("h", "k", "m")
"""Tags of objects that an end has handed over."""


class Peer:
    """One end.

    Args:
        channel: the channel to the other end.
        side: 0 for the suite's process, 1 for the solution's.
        rules: `rules.Rules`, or `rules.Trusting`.
        ambient: state that is exchanged besides calls.
        own_modules: modules whose classes are not a library's.
    """

    def __init__(self, channel: Channel, side: int, rules: Any, ambient: Any, own_modules: frozenset[str]):
        self._channel, self.side, self.rules, self._ambient = channel, side, rules, ambient
        self.objects = Objects(side, self, own_modules)
        self.values = Values(self.objects)
        self._shared = Shared(side, self.values)
        self.coroutines = Coroutines(self)
        self._patches = _Patches()
        self._released: list[list[int]] = []
        self._local = threading.local()
        self._local.conversation = MAIN
        self.unpickled: Any = None
        self.bound: weakref.WeakSet[Any] = weakref.WeakSet()
        """Bound methods of the other end's objects."""
        self._conversations, self._free = itertools.count(2 + side, 2), []
        channel.stray = self._serve_stray
        self._does: dict[str, Callable[..., Any]] = {
            "call": lambda target, name, args, kwargs: target(*args, **kwargs),
            "method": lambda target, name, args, kwargs: getattr(target, name)(*args, **kwargs),
            "get": lambda target, name, args, kwargs: _attribute(target, name),
            "set": lambda target, name, args, kwargs: self._patches.set(target, name, *args),
            "delete": lambda target, name, args, kwargs: self._patches.delete(target, name),
            "special": lambda target, name, args, kwargs: _special(target, name, args),
            "dir": lambda target, name, args, kwargs: [entry for entry in dir(target) if type(entry) is str],
            "isinstance": lambda target, name, args, kwargs: isinstance(args[0], target),
            "issubclass": lambda target, name, args, kwargs: issubclass(args[0], target),
            "describe": lambda target, name, args, kwargs: self.objects.describe(name),
            "hints": lambda target, name, args, kwargs: objects.hints_of(self.objects.mine(name)),
            "content": lambda target, name, args, kwargs: (
                values.content_of(target) if values.base_of(type(target)) is not None else None
            ),
            "pickle": lambda target, name, args, kwargs: pickle.dumps(target),
            "spawn": lambda target, name, args, kwargs: self.coroutines.start(target, name),
            "cancel": lambda target, name, args, kwargs: self.coroutines.cancel(name),
            "settle": lambda target, name, args, kwargs: self.coroutines.settle(name, *args),
        }

    def serves(self, what: str, does: Callable[..., Any]) -> None:
        """Register a further request that this end serves: `does(target, name, args, kwargs)`."""
        self._does[what] = does

    # Requests

    def request(self, what: str, name: Any = "", target: Any = None, args: Any = (), kwargs: Any = None) -> Any:
        """The answer to a request. Raises the other end's exception; Gone; Unbridgeable if an argument cannot cross."""
        return self._request(what, name, target, args, kwargs or {}, None)

    def _request(
        self, what: str, name: Any, target: Any, args: Any, kwargs: dict[str, Any], place: Place | None
    ) -> Any:
        if len(args) > 2 and self.side == 0 and is_failure(args[-2]):  # as to `__exit__`, under whatever name
            self.request(what, name, target, (*args[:-3], None, None, None), kwargs)
            return False
        released, self._released = self._released, []  # before coding anything that could be dropped meanwhile
        code, spot = self._shared.code, self.rules.spot(what, target, name)
        given = [code(arg, f"argument {at} of {spot}") for at, arg in enumerate(args, 1)]
        named = [[key, code(arg, f"argument {key} of {spot}")] for key, arg in kwargs.items()]
        coded = [None if target is None else self.values.code(target), name, given, named]
        conversation = self._conversation()
        for arg in (*args, *kwargs.values()):
            if type(arg) in (types.FunctionType, types.MethodType):
                self.rules.hands(arg)
        outer, self._local.moment = self.moment, self.rules.moment(spot, [given, named], _encode)
        outer_asked, self._local.asked = getattr(self._local, "asked", None), [given, named]
        mark = _IN_LOOP if self.side == 0 and asyncio._get_running_loop() is not None else _ASKED
        try:
            self._channel.send([conversation, mark, what, *coded, self._news(released)])
            while True:
                message = self._channel.receive(conversation)
                if message[1] not in (_ASKED, _IN_LOOP):
                    value = self._result(message, place or Place())
                    return value if place is None else self.rules.believed(place, value, self.moment)
                self._answer(message)
        finally:
            self._ambient.settle(self.moment)
            self.rules.settle()
            self._shared.settle()
            self._local.moment, self._local.asked = outer, outer_asked

    def _result(self, message: list[Any], place: Place) -> Any:
        outer = self.place
        try:
            _, kind, coded, news = message
            self._take(news)
            self._local.place = place if kind == _ANSWER else self.rules.place_of_fault(place)
            value = self._shared.value(coded, f"the result of {self.moment.spot}")
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as fault:
            raise Gone(f"the other process broke the bridge ({type(fault).__name__}: {fault})") from fault
        finally:
            self._local.place = outer
        if kind == _FAULT:
            self.rules.raised(value)
            raise value if isinstance(value, BaseException) else Gone("the other process broke the bridge")
        return value

    @property
    def place(self) -> Place:
        """The place of the value that is being decoded."""
        return getattr(self._local, "place", Place())

    @property
    def moment(self) -> Moment:
        """The moment of the request that waits in this thread."""
        return getattr(self._local, "moment", _NEVER)

    def _conversation(self) -> int:
        known = getattr(self._local, "conversation", None)
        if known is None:
            self._local.holder = _Holder(self._free, self._free.pop() if self._free else next(self._conversations))
            known = self._local.conversation = self._local.holder.number
            self._channel.open(known)
        return known

    # Requests of mirrors

    def get(self, target: Any, name: str) -> Any:
        self.rules.ask(target, name)
        place = self.rules.place(target, f".{name}")
        value = self._request("get", name, target, (), {}, place)
        self.rules.named(value, name)
        return value

    def set(self, target: Any, name: str, value: Any) -> None:
        self.request("set", name, target, (value,))

    def delete(self, target: Any, name: str) -> None:
        self.request("delete", name, target)

    def names(self, target: Any) -> list[str]:
        return self.request("dir", "", target)

    def call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = self.rules.place(target, "()")
        return self._request("call", "", target, args, kwargs, place)

    def method(self, target: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.rules.ask(target, name, args)
        place = self.rules.place(target, f".{name}()")
        return self._request("method", name, target, args, kwargs, place)

    def special(self, target: Any, name: str, args: tuple[Any, ...]) -> Any:
        if name == "__await__":
            return self.coroutines.awaited(target).__await__()
        if self.rules.refuses(target, name, args):
            return self._by_content(target, name, args)
        place = self.rules.place(target, f".{name}", args)

        def ask(target: Any, other: Any) -> Any:
            return self.request("special", name, target, (other,))

        with self._examined(name, target, args[0] if args else None, ask):
            return self._request("special", name, target, args, {}, place)

    def _examined(self, name: str, target: Any, other: Any, ask: Callable[[Any, Any], Any]) -> Any:
        if self.side or name not in ("__eq__", "__ne__", "isinstance"):
            return nullcontext()
        return self.rules.examination.around(name, target, other, ask)

    def _by_content(self, target: Any, name: str, args: tuple[Any, ...]) -> Any:
        """The answer of plain data with the object's content, if it has any."""
        base = values.base_of(type(target))
        content = target if base is not None else self.request("content", "", target)
        if content is None:
            return (
                any(item is args[0] or item == args[0] for item in target) if name == "__contains__" else NotImplemented
            )
        return getattr(base or type(content), name, lambda *_: NotImplemented)(content, *args)

    def pickled(self, target: Any) -> Any:
        """How `pickle` reduces an object of the other end: as that end's own pickle reduces it."""
        return self.unpickled, (self.request("pickle", "", target),)

    def is_kind(self, what: str, value: Any, kind: Any) -> bool:
        """Whether a class that checks by itself says so."""
        if not self.rules.checks(what):
            return False

        def ask(kind: Any, value: Any) -> Any:
            return self.request(what, "", kind, (value,))

        with self._examined(what, kind, value, ask):
            return ask(kind, value) is True

    def skips(self, trace: types.TracebackType | None) -> bool:
        """Whether an exception that a context manager swallows prevented an assertion."""
        return bool(self.rules.skips(trace))

    def driven(self, target: Any) -> Coroutine[Any, Any, Any] | None:
        """The coroutine that awaits `target` in the running event loop; None without a loop."""
        return self.coroutines.awaited(target) if asyncio._get_running_loop() is not None else None

    def derive(self, kind: Any, name: str, bases: Any, namespace: dict[str, Any], options: dict[str, Any]) -> State:
        """The original of a class that is derived here from a class of the other end."""
        parts = []
        for key, part in namespace.items():
            if key in _NOT_SENT:
                continue
            if isinstance(part, (staticmethod, classmethod)):
                parts.append([key, type(part).__name__, part.__func__])
            elif isinstance(part, property):
                parts.append([key, "property", [part.fget, part.fset, part.fdel]])
            else:
                parts.append([key, "value", part])
        number = self.request("derive", name, None, (list(bases), parts, kind.__module__), options)
        self.rules.derived(kind)
        return self.objects.adopt(number, kind)

    def dropped(self, number: int, times: int) -> None:
        """A mirror is gone."""
        self._released.append([number, times])

    # Serving

    def serve(self, conversation: int = MAIN) -> None:
        """Serve requests until the other end is gone. Raises Gone."""
        self._local.conversation = conversation
        while True:
            self._answer(self._channel.receive(conversation))

    def _serve_stray(self, conversation: int) -> None:
        """Serve a conversation that the other end began, in a thread."""

        def serve() -> None:
            try:
                self.serve(conversation)
            except Gone:
                return

        threading.Thread(target=serve, daemon=True).start()

    def _answer(self, message: list[Any]) -> None:
        conversation, mark, what, target, name, args, kwargs, news = message
        released, self._released = self._released, []
        outer = self.as_given
        try:
            self._take(news)
            if self.moment is _NEVER:  # no request of this thread waits, at whose end they would be undone
                self.rules.settle()
                self._shared.settle()
            if target is not None:
                if self.side == 0 and (type(target) is not dict or not set(target) <= set(_OWN_TARGETS)):
                    raise ValueError("not an object of this process")
                target = self.values.value(target)
            given = [self._shared.value(arg) for arg in args]
            named = {key: self._shared.value(arg) for key, arg in kwargs}
            self.rules.allow(what, target, name)
            self._local.as_given = what == "call" and self._passes_on(args, kwargs)
            does = partial(self.rules.act, target, partial(self._does[what], target, name, given, named), self.moment)
            result = self._ambient.run(partial(self.coroutines.within, does) if mark == _IN_LOOP else does)
            label = type(target).__qualname__
            code, handed = partial(self._shared.code, label=label), set(self.objects.handed)
            answer = [conversation, _ANSWER, self.values.code(result) if what in ("describe", "dir") else code(result)]
            if what == "describe":  # naming a class does not hand it over
                self.objects.handed.intersection_update(handed)
        except Gone:
            raise
        except BaseException as fault:  # any exception is the answer
            self.rules.leaves(fault)
            try:
                coded = self.values.code(fault)
            except Unbridgeable:
                coded = self.values.code(RuntimeError(f"{type(fault).__name__}: {fault}"))
            answer = [conversation, _FAULT, coded]
        finally:
            self._local.as_given = outer
        self._channel.send([*answer, self._news(released)])

    @property
    def as_given(self) -> bool:
        """Whether the request that is served has the arguments of the request that waits for it."""
        return getattr(self._local, "as_given", False)

    def _passes_on(self, args: list[Any], kwargs: list[Any]) -> bool:
        asked = getattr(self._local, "asked", None)
        return self.side == 0 and asked is not None and asked != [[], []] and _bare(asked) == _bare([args, kwargs])

    # News

    def _news(self, released: list[list[int]]) -> Any:
        changes, ambient = self._shared.changes(), self._ambient.news(self)
        return [changes, released, ambient] if changes or released or ambient else 0

    def _take(self, news: Any) -> None:
        if news == 0:
            return
        changes, released, ambient = news
        self._shared.apply(changes, partial(self.rules.stays, self.moment))
        for number, times in released:
            self.objects.release(number, times)
        self._ambient.take(self, ambient)


def _bare(coded: Any) -> Any:
    """Coded arguments in the form that both directions have in common: objects and containers by their numbers."""
    if type(coded) is list:
        return [_bare(part) for part in coded]
    if type(coded) is not dict:
        return coded
    ((tag, body),) = coded.items()
    return [tag, *body[: {"@": 1, "h": 2, "b": 2}[tag]]] if tag in ("@", "h", "b") else [tag, _bare(body)]


def _attribute(target: Any, name: str) -> Any:
    if name == "__signature__":
        return objects.signature_of(target)
    return objects.hints_of(target) if name == "__annotations__" else getattr(target, name)


class _Patches:
    """Attributes of modules and classes that the other end sets. It does not see their dicts, and so resets what it
    set by deleting it; then the previous value is restored."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, str], list[Any]] = {}

    def set(self, target: Any, name: str, value: Any) -> None:
        if isinstance(target, (type, types.ModuleType)) and name in vars(target):
            self._before.setdefault((id(target), name), []).append(vars(target)[name])
        setattr(target, name, value)

    def delete(self, target: Any, name: str) -> None:
        before = self._before.get((id(target), name))
        if before:
            setattr(target, name, before.pop())
        else:
            delattr(target, name)


class _Holder:
    """Releases a thread's conversation when the thread ends."""

    def __init__(self, free: list[int], number: int):
        self._free, self.number = free, number

    def __del__(self) -> None:
        self._free.append(self.number)


_NOT_SENT = ("__module__", "__qualname__", "__classcell__", "__doc__", "__static_attributes__", "__firstlineno__")


def _special(target: Any, name: str, args: list[Any]) -> Any:
    """Call a special method of an object that is no class, like the interpreter: by its class."""
    if name == "__copy__":
        return copy.copy(target)
    if name == "__deepcopy__":
        return copy.deepcopy(target)
    if name in ("__repr__", "__str__", "__format__", "__hash__", "__bool__"):
        return {"__repr__": repr, "__str__": str, "__format__": format, "__hash__": hash, "__bool__": bool}[name](
            target, *args
        )
    found = inspect.getattr_static(type(target), name)  # bound as the interpreter does: a mock gets no `self`
    if not hasattr(type(found), "__get__"):
        return found(*args)
    return type(found).__get__(found, target, type(target))(*args)


class Coroutines:
    """One end's tasks, and the futures of the tasks that it awaits. `peer` is the end itself."""

    def __init__(self, peer: Any):
        self._peer, self._tokens = peer, itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[Any]]] = {}
        self._tasks: dict[int, Future[Any]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    async def awaited(self, target: Any) -> Any:
        """The result of an awaitable of the other end."""
        loop = asyncio.get_running_loop()
        if self._peer.side == 0:
            self._loop = loop
        token, future = next(self._tokens), loop.create_future()
        self._waiting[token] = loop, future
        self._peer.request("spawn", token, target)
        try:
            return self._peer.rules.awaited(target, await future)
        except asyncio.CancelledError:
            if self._waiting.pop(token, None) is not None:
                self._peer.request("cancel", token)
            raise
        finally:
            self._waiting.pop(token, None)

    def settle(self, token: int, succeeded: bool, result: Any) -> None:
        """The other end's message that a task is done."""
        waiting = self._waiting.pop(token, None)
        if waiting is not None:
            waiting[0].call_soon_threadsafe(_settle, waiting[1], succeeded, result)

    def start(self, target: Any, token: int) -> None:
        """Create a task for an object of this end."""
        self._tasks[token] = asyncio.run_coroutine_threadsafe(self._run(target, token), self._running())

    def cancel(self, token: int) -> None:
        """End a task."""
        task = self._tasks.pop(token, None)
        if task is not None:
            task.cancel()

    def within(self, call: Callable[[], Any]) -> Any:
        """Call a function of this end where its event loop runs, so that it finds the loop."""
        done: Future[Any] = Future()

        def run() -> None:
            try:
                done.set_result(call())
            except BaseException as fault:  # any exception belongs to the caller
                done.set_exception(fault)

        self._running().call_soon_threadsafe(run)
        return done.result()

    async def _run(self, target: Any, token: int) -> None:
        try:
            outcome = (True, await target)
        except BaseException as fault:  # as above
            outcome = (False, fault)
        self._tasks.pop(token, None)
        self._peer.request("settle", token, None, outcome)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self._loop.is_running():
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop


def _settle(future: asyncio.Future[Any], succeeded: bool, result: Any) -> None:
    if future.done():
        return
    if succeeded:
        future.set_result(result)
    elif isinstance(result, asyncio.CancelledError):
        future.cancel()
    else:
        future.set_exception(result if not isinstance(result, StopIteration) else RuntimeError(str(result)))
