"""State that two processes share besides calls: output, logging, environment, folder, random state, patches.

Each message carries the changes on its sender's side since the last message, and only of state that the suite's text
mentions. The solution's output is written at the current place in the suite's. Standard library only; numpy and torch
if they are already imported.
"""

import io
import logging
import os
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import partial, wraps
from importlib import import_module
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest.values import PLAIN, Unbridgeable

_FLOOD = 1 << 20
"""Bytes of output that wait for a message; more is written at once, so that the limit on output counts it."""
WORD = re.compile(r"\w+")
DRAWS = frozenset(
    "choice choices gauss integers normal permutation rand randint randn randrange sample shuffle uniform".split()
)
VOCABULARY = DRAWS | frozenset(
    "random manual_seed numpy np torch environ getenv setenv delenv chdir caplog assertLogs logging getLogger capfd"
    " capfdbinary as_cwd".split()
)
"""Words in a suite's text that decide the state that the two processes share."""
STATES = ("random", "environ", "folder")
"""State that a solution changes here only if the reference does: a suite may draw its data from it, or expect it."""
_MOVES = "random numbers of "
_SETTERS = {"seed", "setstate", "set_state", "manual_seed", "set_rng_state"}
_BLOCK, _BLOCKS, _SET = 4 * 624, 1000, 200
"""Bytes of a twister's state, how many times so many may have been drawn between two messages, and how many states that a
reference sets are kept."""
_write = os.write


class Ambient:
    """The shared state of one end.

    Args:
        words: the words of `VOCABULARY` in the suite's text.
        rules: they decide what the other end may change here; without rules, everything.
    """

    def __init__(self, side: int, words: Iterable[str], rules: Any = None):
        self._rules = rules
        self._side, self._words = side, frozenset(words)
        self.watched: Watched | None = None
        self._patched = Patched()
        self._random = _generators(self._words) if "random" in self._words or "manual_seed" in self._words else []
        # The suite's go out with its first message: both processes draw from one state.
        self._states: list[Any] = [state() if side else None for state, _, _ in self._random]
        self._set = 0
        if side == 0:
            for at, (_, _, name) in enumerate(self._random):
                self._watch_seeds(at, name)
        self._environment = dict(os.environ) if self._words & {"environ", "getenv", "setenv", "delenv"} else None
        self._folder = os.getcwd() if self._words & {"chdir", "as_cwd"} else None
        self._logs = bool(self._words & {"caplog", "assertLogs", "logging", "getLogger"})
        self._levels: dict[str, int] = {}
        self._output: list[list[Any]] = []
        self._size = 0
        self._descriptors: dict[str, tuple[int, int]] = {}
        """Of the solution's own outputs: the file, and how many bytes of it were read."""

    def _watch_seeds(self, at: int, name: str) -> None:
        """Where the suite seeds a generator, the solution's gets the same state, even if that is no new one here."""
        module = import_module({"numpy": "numpy.random"}.get(name, name))
        for setter in _SETTERS & vars(module).keys():
            sets = getattr(module, setter)

            @wraps(sets)
            def seeds(*args: Any, sets: Callable[..., Any] = sets, **kwargs: Any) -> Any:
                self._states[at] = None
                return sets(*args, **kwargs)

            setattr(module, setter, seeds)

    def run(self, does: Callable[[], Any]) -> Any:
        """Serve a request."""
        try:
            return does()
        finally:
            if self._side:
                sys.stdout.flush()
                sys.stderr.flush()

    def news(self, peer: Any) -> list[Any]:
        """The changes that the other end does not know yet."""
        for name, (number, read) in self._descriptors.items():
            if data := os.pread(number, _FLOOD, read):
                self._descriptors[name] = number, read + len(data)
                self._keep(name, data)
        items, self._output, self._size = self._output, [], 0
        for at, (state, _, _) in enumerate(self._random):
            if (now := state()) != self._states[at]:
                self._states[at] = now
                items.append(["random", at, peer.values.code(now)])
        if self._environment is not None and self._environment != os.environ:
            self._environment = dict(os.environ)
            items.append(["environ", self._environment])
        if self._folder is not None and self._folder != os.getcwd():
            self._folder = os.getcwd()
            items.append(["folder", self._folder])
        if self._side == 0 and self._logs and (levels := _levels()) != self._levels:
            known, self._levels = self._levels, levels
            items.append(["levels", {name: level for name, level in levels.items() if known.get(name, 0) != level}])
        return items + (self.watched.news(peer) if self.watched is not None else [])

    def take(self, peer: Any, items: list[Any]) -> None:
        """Apply the changes that the other end reports."""
        for kind, *parts in items:
            if kind in STATES and self._side == 0 and not self._accepts(peer, kind, parts):
                continue
            getattr(self, f"_take_{kind}")(peer, *parts)

    def _accepts(self, peer: Any, kind: str, parts: list[Any]) -> bool:
        """Whether the solution may change a state of the suite's."""
        if kind != "random":
            return self._rules.may(peer.moment, kind)
        at, coded = parts
        return self._moves(peer, at, self._random[at][2], peer.values.value(coded))

    def _moves(self, peer: Any, at: int, name: str, state: Any) -> bool:
        """Whether a generator of the suite's gets the state to which the solution's came by drawing or seeding."""
        rules, moment = self._rules, peer.moment
        if rules.recording:
            drawn = _drawn(name, self._states[at], state)
            if drawn is None:
                self._set += 1
            kept = ["drawn", *drawn] if drawn is not None else ["state", state] if self._set <= _SET else ["any"]
            rules.has(moment, _MOVES + name, kept)
            return True
        if not rules.bound:
            return name == "torch" or not self._words & DRAWS  # What no suite draws from decides nothing.
        return rules.has(moment, _MOVES + name) == ["any"] or not rules.strict

    def settle(self, moment: Any) -> None:
        """At the end of a request, move the suite's generators as far as the reference moved them, whether the solution drew or
        not: it could choose by that what the suite draws next."""
        if self._side or not (self._rules.bound and self._rules.strict):
            return
        for at, (read, write, name) in enumerate(self._random):
            how, *parts = self._rules.moments.of_reference(moment, _MOVES + name) or ["any"]
            if how != "any":
                self._states[at] = None
                write(_moved(name, read(), *parts) if how == "drawn" else _state(name, *parts))

    def _take_random(self, peer: Any, at: int, state: Any) -> None:
        if self._random:
            self._random[at][1](peer.values.value(state))
            self._states[at] = self._random[at][0]()

    def _take_environ(self, peer: Any, environment: dict[str, str]) -> None:
        if self._environment is not None:
            os.environ.clear()
            os.environ.update(environment)
            self._environment = dict(environment)

    def _take_folder(self, peer: Any, folder: str) -> None:
        if self._folder is not None:
            os.chdir(folder)
            self._folder = os.getcwd()

    def _take_output(self, peer: Any, name: str, text: str) -> None:
        stream = sys.stdout if name == "stdout" else sys.stderr
        if stream is not None and self._side == 0:
            stream.write(text)

    def _take_record(self, peer: Any, record: Any) -> None:
        if self._side == 0:
            rebuilt = logging.makeLogRecord(dict(peer.values.value(record)))
            logging.getLogger(rebuilt.name).handle(rebuilt)

    def _take_patch(self, peer: Any, *parts: Any) -> None:
        if self._side:
            self._patched.patch(peer, *parts)

    def _take_stubs(self, peer: Any, stubs: dict[str, Any]) -> None:
        if self._side:
            self._patched.stubs(peer, stubs)

    def _take_warning(self, peer: Any, message: Any, filename: str, lineno: int) -> None:
        fault = peer.values.value(message)
        if self._side == 0 and isinstance(fault, Warning):
            warnings.warn_explicit(fault, type(fault), filename, lineno)

    def _take_levels(self, peer: Any, levels: dict[str, int]) -> None:
        if self._side:
            for name, level in levels.items():
                logging.getLogger(name or None).setLevel(level)

    # The solution's process

    def capture(self, peer: Any) -> None:
        """Keep output and log records for the next message."""
        for name in ("stdout", "stderr"):
            stream = io.TextIOWrapper(_Raw(self._keep, name), "utf-8", "backslashreplace", "\n", write_through=True)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        if self._words & {"capfd", "capfdbinary"}:
            for number, name in ((1, "stdout"), (2, "stderr")):
                file = tempfile.TemporaryFile(buffering=0)
                os.dup2(file.fileno(), number)
                self._descriptors[name] = os.dup(file.fileno()), 0
        if self._logs:
            logging.getLogger().addHandler(
                _Forward(lambda record: self._output.append(["record", peer.values.code(record)]))
            )
        warnings.simplefilter("always")
        warnings.showwarning = partial(self._warned, peer)

    def _warned(self, peer: Any, message: Warning, category: type, filename: str, lineno: int, *_: Any) -> None:
        self._output.append(["warning", peer.values.code(message), filename, lineno])

    def _keep(self, name: str, data: bytes) -> None:
        self._size += len(data)
        if self._size > _FLOOD:
            _write(1, data)
        else:
            self._output.append(["output", name, data.decode("utf-8", "replace")])


class _Raw(io.RawIOBase):
    def __init__(self, keep: Callable[[str, bytes], None], name: str):
        self._keep, self._name = keep, name

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._keep(self._name, bytes(data))
        return len(data)


class _Forward(logging.Handler):
    def __init__(self, send: Callable[[dict[str, Any]], None]):
        super().__init__()
        self._forward = send

    def emit(self, record: logging.LogRecord) -> None:
        parts = {name: part for name, part in vars(record).items() if type(part) in PLAIN or name == "args"}
        if record.exc_info and record.exc_info[0] is not None:
            parts["exc_text"] = logging.Formatter().formatException(record.exc_info)
        try:
            self._forward(parts)
        except Unbridgeable:
            self._forward(parts | {"msg": record.getMessage(), "args": ()})


def _levels() -> dict[str, int]:
    known = {"": logging.getLogger().level}
    for name, logger in logging.getLogger().manager.loggerDict.items():
        if isinstance(logger, logging.Logger):
            known[name] = logger.level
    return known


def _generators(words: frozenset[str]) -> list[tuple[Callable[[], Any], Callable[[Any], None], str]]:
    """(read, write, name) of each generator of random numbers that the suite may seed."""
    found: list[tuple[Callable[[], Any], Callable[[Any], None], str]] = [(random.getstate, random.setstate, "random")]
    if words & {"numpy", "np"}:
        np = import_module("numpy")

        def read() -> tuple[Any, ...]:
            return tuple(part.tolist() if hasattr(part, "tolist") else part for part in np.random.get_state())

        found.append((read, lambda state: np.random.set_state(tuple(state)), "numpy"))
    if "torch" in words:
        torch = import_module("torch")

        def write(state: list[int]) -> None:
            torch.set_rng_state(torch.tensor(state, dtype=torch.uint8))

        found.append((lambda: torch.get_rng_state().tolist(), write, "torch"))
    return found


def _drawn(name: str, state: Any, other: Any) -> tuple[int, Any] | None:
    """How many words lead from one state of a Mersenne twister to another, and the second's kept normal number. It renews
    its words a block at a time. None if no draws lead there, as after a return to an earlier state."""
    try:
        if name == "numpy":
            twister = import_module("numpy").random.RandomState()
            twister.set_state(tuple(state))
            words, first, last, kept = list(other[1]), state[2], other[2], list(other[3:])

            def reached() -> bool:
                return twister.get_state()[1].tolist() == words or not twister.bytes(_BLOCK)

        elif name == "random":
            plain = random.Random()
            plain.setstate(state)
            words, first, last, kept = tuple(other[1][:-1]), state[1][-1], other[1][-1], other[2]

            def reached() -> bool:
                return plain.getstate()[1][:-1] == words or not plain.randbytes(_BLOCK)

        else:
            return None
        blocks = next((block for block in range(_BLOCKS) if reached()), None)
        drawn = -1 if blocks is None else blocks * _BLOCK // 4 + last - first
        return (drawn, kept) if drawn >= 0 else None
    except (TypeError, ValueError, IndexError, AttributeError):  # no state
        return None


def _state(name: str, parts: Any) -> Any:
    """As the generator takes it, from JSON."""
    return (parts[0], tuple(parts[1]), parts[2]) if name == "random" else parts


def _moved(name: str, state: Any, words: int, kept: Any) -> Any:
    """The state after so many words more."""
    if name == "numpy":
        twister = import_module("numpy").random.RandomState()
        twister.set_state(tuple(state))
        twister.bytes(4 * words)  # one word for four bytes
        return (*twister.get_state()[:3], *kept)
    plain = random.Random()
    plain.setstate(state)
    if words:
        plain.getrandbits(32 * words)
    return (*plain.getstate()[:2], kept)


_NOT = {("sys", "stdout"), ("sys", "stderr"), ("sys", "modules"), ("sys", "path"), ("os", "environ")}
_OURS = ("pytest", "_pytest", "unittest", "hypothesis", "solution", "typing", "collections", "rlvr_exp", "__main__")


class Watched:
    """In the suite's process: attributes of libraries that the suite patches, and modules that it puts into `sys.modules`, so that
    the solution's process follows.

    Only attributes that the suite's text names count: they are compared with their values before it ran.

    Args:
        words: words of the suite's text.
        own: modules of the suite itself.
    """

    def __init__(self, words: frozenset[str], own: Iterable[str]):
        self._attributes: list[tuple[Any, list[str], Any]] = []
        self._patched: dict[int, Any] = {}
        self._skipped = skipped = {*_OURS, *own}
        self._modules: dict[str, Any] | None = dict(sys.modules) if "modules" in words else None
        self._stubs: dict[str, Any] = {}
        for name, module in list(sys.modules.items()):
            parts = name.split(".")
            if parts[0] not in skipped and words.issuperset(parts):
                self._watch(module, name, "", words)

    def _watch(self, owner: Any, module: str, path: str, words: frozenset[str]) -> None:
        for name in words & vars(owner).keys():
            part = vars(owner)[name]
            if (module, name) not in _NOT:
                self._attributes.append((owner, [module, path, name], part))
            if not path and isinstance(part, type) and part.__module__.partition(".")[0] == module.partition(".")[0]:
                self._watch(part, module, name, words)

    def news(self, peer: Any) -> list[Any]:
        """["patch", module, class, name, value] of each changed attribute, without the value if it is restored."""
        items = []
        for at, (owner, named, original) in enumerate(self._attributes):
            now = vars(owner).get(named[2])
            if now is not self._patched.get(at, original):
                self._patched[at] = now
                items.append(["patch", *named, *([] if now is original else [peer.values.code(now)])])
        if self._modules is not None and (stubs := self._put_there(self._modules)) != self._stubs:
            self._stubs = stubs
            items.append(["stubs", {name: peer.values.code(stub) for name, (_, stub) in stubs.items()}])
        return items

    def _put_there(self, before: dict[str, Any]) -> dict[str, tuple[int, Any]]:
        """What the suite put into `sys.modules` by itself, under its name, with its identity."""
        now = [(name, part) for name, part in sys.modules.items() if before.get(name, self) is not part]
        return {
            name: (id(part), part)
            for name, part in now
            if name.partition(".")[0] not in self._skipped and getattr(part, "__spec__", None) is None
        }


class Patched:
    """In the solution's process."""

    def __init__(self) -> None:
        self._originals: dict[tuple[str, str, str], Any] = {}
        self._modules: dict[str, Any] = {}

    def stubs(self, peer: Any, stubs: dict[str, Any]) -> None:
        """Put these modules into `sys.modules`, and what was there before back for those not named any more."""
        for name in self._modules.keys() - stubs.keys():
            sys.modules[name] = self._modules.pop(name)
            if sys.modules[name] is self:
                del sys.modules[name]
        for name, stub in stubs.items():
            self._modules.setdefault(name, sys.modules.get(name, self))
            sys.modules[name] = peer.values.value(stub)

    def patch(self, peer: Any, module: str, path: str, name: str, *value: Any) -> None:
        """Replace an attribute's value; without a value, restore the original."""
        owner = getattr(import_module(module), path) if path else import_module(module)
        original = self._originals.setdefault((module, path, name), vars(owner).get(name))
        setattr(owner, name, peer.values.value(value[0]) if value else original)
