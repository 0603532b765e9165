"""The harness of `pytest`: two processes. The suite's alone reports; the solution is in the other (`serve`).

In the zygote pytest is configured and warmed. In a fork the solution is loaded over the bridge (`Bridge`: a module whose
attributes are requested from the other process), the suite compiled and its tests run. Records, JSON each:
["compiled", bytes for the suite's next runs], ["solution", kind, text], ["collected", tests, those left out by marks of their parameters], ["test", name, outcome,
message], ["broken", text], ["fault", text] (the suite's own), ["wrong", text], ["effects", text] (of the solution, and not of
the reference), ["profile", what the reference did], ["decided", own, all], ["done"]. Without a bridge (`shared`) both are in
this process, and nothing is guarded. Standard library and pytest only.
"""

import base64
import hashlib
import importlib
import json
import linecache
import opcode
import os
import pickle
import re
import sys
import tempfile
import threading
import types
import unittest.mock  # noqa: F401  loaded here, at no cost in every fork
from collections.abc import Callable
from functools import cached_property, partial
from types import CodeType, ModuleType
from typing import Any

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.pytest import session as sessions
from rlvr_exp.sandbox.harnesses.pytest import texts
from rlvr_exp.sandbox.harnesses.pytest.ambient import DRAWS, WORD, Ambient, Watched
from rlvr_exp.sandbox.harnesses.pytest.compiled import EMPTY, Assertions, Compiled, compiled, read
from rlvr_exp.sandbox.harnesses.pytest.doctests import Doctests
from rlvr_exp.sandbox.harnesses.pytest.mirrors import ROOT, STATE, Mirror, State
from rlvr_exp.sandbox.harnesses.pytest.peer import Channel, Gone, Peer
from rlvr_exp.sandbox.harnesses.pytest.rules import Rules, Trusting
from rlvr_exp.sandbox.harnesses.pytest.texts import Given, settle, write_files

_DEPTH = 3000
"""Frames that a suite may nest: alternating callbacks and calls take several each."""
_LIVES = re.compile(r"\b(del|finalize|gc|getrefcount|tracemalloc|weakref|Weak\w+)\b")
"""Suites that may notice how long an object lives."""
_ALIASES = {"np": "numpy", "pd": "pandas"}


class Bridge:
    """The bridge's end in the suite's process."""

    def __init__(self, fd: int, job: dict[str, Any]):
        own = frozenset(name.removesuffix(".py") for name in job["tests"])
        self.rules = Rules(job["classes"], job["profile"], job["recording"], own, job["strict"])
        channel, self._job = Channel(fd), job
        ambient = Ambient(0, job["words"], self.rules)
        self._peer = Peer(channel, 0, self.rules, ambient, own)
        self.rules.handed = self._peer.objects.handed
        self._peer.serves("derive", self._derive)
        self._root = Mirror()
        object.__setattr__(self._root, STATE, State(self._peer, 1, ROOT))
        self._module: _Solution | None = None
        self._doctests: Any = None
        self._assertions: Assertions = EMPTY.assertions
        self._own = own
        if job["threads"]:
            channel.watch()
        self._ambient = ambient
        sys.setrecursionlimit(_DEPTH)

    def load(self, path: str, compiled: Compiled) -> types.ModuleType:
        """The solution's module. Raises the exception of the solution."""
        for name in self._job["imports"]:
            _try_import(name)
        if self._job["patches"]:
            words = frozenset(word for text in self._job["tests"].values() for word in WORD.findall(text))
            self._ambient.watched = Watched(words, self._own)
        shown = self._peer.request("load")
        folder = path.rpartition("/")[0]
        suite = {f"{folder}/{name}": text for name, text in self._job["tests"].items()}
        self.rules.managed, self._assertions = compiled.managed, compiled.assertions
        self.rules.asserting = compiled.assertions.all
        self.rules.moments.paths = frozenset(suite)
        if any("hypothesis" in text for text in suite.values()):
            texts.repeat_examples()
        examination = self.rules.examination
        examination.on = self._job["examines"]
        examination.secret = hashlib.sha256(repr([*self._job["tests"].items()]).encode("utf-8", "replace")).hexdigest()
        beside = examination.on and (self.rules.bound or self.rules.recording)
        examination.keeps = beside and not any(map(_LIVES.search, suite.values()))
        self.rules.moments.random = not DRAWS.isdisjoint(self._job["words"])

        received = self._peer.values.received = {}

        def elsewhere(what: str, args: tuple[Any, ...]) -> Any:
            return self.rules.believed(self.rules.place(None, what), self._peer.request(what, "", None, args))

        texts.Evaluating(suite, compiled.texts, received, elsewhere).take_over()
        # The names of the solution that the suite's text reads and does not bind.
        read = set(self._job["stars"])
        stars = [name for name in dict.fromkeys(shown) if name in read and not _is_module(name)]
        stars = self.rules.shown(stars)
        self._module = _Solution(self._peer, self._root, path, stars)
        self._peer.unpickled = self._module.__dict__["_unpickled"]
        if any(word in text for text in suite.values() for word in ("doctest", "runpy")):
            self._doctests = Doctests(
                self._module, self.rules.texts, self.rules.bound or self.rules.recording, elsewhere
            )
            self._doctests.take_over()
        return self._module

    def ended(self, path: str, key: str) -> None:
        """A function of the suite came to its end."""
        if (path, key) in self._assertions.all:
            asynchronous = (path, key) in self._assertions.asynchronous
            by_itself = asynchronous or threading.current_thread() is not threading.main_thread()
            served = by_itself or bool(self._peer.moment.spot)
            if served or self.rules.bound:  # a decorator may hand the function back as it is
                self.rules.ended(path, key, asynchronous, self._peer.as_given or not served)

    def profile(self) -> dict[str, Any]:
        """What the reference did in this run."""
        return self.rules.profile() | {"texts": self._doctests.seen if self._doctests is not None else {}}

    def _derive(self, target: Any, name: str, args: list[Any], options: dict[str, Any]) -> int:
        """A class here, which the solution derives from a class of the suite. Its number."""
        bases, parts, module = args
        made = _derived(name, bases, self.rules.derives(self._peer.moment, parts), module, options)
        self.rules.made.add(made)
        return self._peer.objects.number_of(made)

    def reload(self) -> None:
        """Load the solution afresh. Raises the same."""
        self._peer.request("load")

    @cached_property
    def names(self) -> dict[str, Any]:
        """Names of a test module besides its own."""
        names = {}
        for name in filter(_is_module, self._job["stars"]):
            _try_import(_ALIASES.get(name, name))
            names[name] = sys.modules.get(_ALIASES.get(name, name))
        return names


def _imports_star(frame: types.FrameType) -> bool:
    return opcode.opname[frame.f_code.co_code[frame.f_lasti]] in ("IMPORT_STAR", "CALL_INTRINSIC_1")


def _is_module(name: str) -> bool:
    return name in _ALIASES or name in sys.stdlib_module_names


class _Solution(types.ModuleType):
    # `solution`, in the suite's process. Its text is the solution's.

    def __init__(self, peer: Peer, root: Mirror, path: str, shown: list[str]):
        super().__init__("solution")
        del self.__dict__["__doc__"]

        def _unpickled(data: bytes) -> Any:
            return peer.request("unpickle", "", None, (data,))

        _unpickled.__module__, _unpickled.__qualname__ = "solution", "_unpickled"
        self.__dict__.update({"@": (peer, root), "__file__": path, "@shown": shown, "_unpickled": _unpickled})

    @property
    def __doc__(self) -> Any:
        peer, root = self.__dict__["@"]
        return peer.get(root, "__doc__")

    def __getattr__(self, name: str) -> Any:
        asks = sys._getframe(1)
        if name == "__all__" and _imports_star(asks):  # what its module has already stays
            there = asks.f_globals
            rules, names = self.__dict__["@"][0].rules, self.__dict__["@shown"]
            return names if rules.bound or rules.recording else [one for one in names if one not in there]
        if name in ("__path__", "__wrapped__"):
            raise AttributeError(name)
        peer, root = self.__dict__["@"]
        return peer.get(root, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("__spec__", "__loader__"):
            self.__dict__[name] = value
            return
        peer, root = self.__dict__["@"]
        peer.set(root, name, value)

    def __delattr__(self, name: str) -> None:
        peer, root = self.__dict__["@"]
        peer.delete(root, name)

    def __dir__(self) -> list[str]:
        peer, root = self.__dict__["@"]
        return peer.names(root)


def _try_import(name: str) -> None:
    """Import a module in advance; if that fails, the suite's own import will fail."""
    try:
        importlib.import_module(name)
    except BaseException:  # Some modules end the interpreter that imports them.
        return


__all__ = ["run", "serve"]
Send = Callable[[bytes], None]
for _name in (
    "abc argparse array ast asyncio base64 bisect calendar cmath collections contextlib copy csv dataclasses datetime "
    "decimal difflib enum fractions functools hashlib heapq html importlib.util inspect io itertools json logging math "
    "numbers operator os pathlib pickle platform pprint queue random re secrets shutil statistics string struct "
    "subprocess tempfile textwrap threading time traceback types typing unicodedata unittest uuid warnings weakref"
).split():
    importlib.import_module(_name)
_dumps, _exit = json.JSONEncoder(ensure_ascii=True).encode, os._exit


def run(payload: bytes, send: Send, peer: int | None = None) -> None:
    """The trusted side: called once in a fresh fork that ends right after."""
    job = wire.decode_native(payload)
    _Run(job, lambda *record: send(_dumps(record).encode("ascii")), peer).run()


class _Run:
    def __init__(self, job: dict[str, Any], record: Callable[..., None], peer: int | None):
        self._job, self._record = job, record
        self._folder = os.getcwd()
        self._bridge = None if peer is None else Bridge(peer, job)
        self._suite = EMPTY
        self._codes: set[int] = set()
        self._ended: set[tuple[str, str]] = set()
        self._asserts, self._own, self._counted_own = 0, 0, 0

    def run(self) -> None:
        """Run and report the complete suite."""
        if self._prepare() and self._load_solution():
            self._judge()
            if self._bridge is not None:
                self._record("decided", self._own, self._asserts)
                if self._bridge.rules.wrong:
                    self._record("wrong", self._bridge.rules.wrong)
                if self._bridge.rules.effects:
                    self._record("effects", "; ".join([*self._bridge.rules.effects][:5]))
                if self._job["recording"]:
                    self._record("profile", self._bridge.profile())
        self._record("done")

    def _prepare(self) -> bool:
        """Write the run's files and compile the suite; False if that fails."""
        job = self._job
        os._exit = self._leaves
        settle(self._folder, importing=self._bridge is None)
        try:
            self._compile()
        except (ValueError, SyntaxError) as fault:
            self._record("fault", sessions.short(fault))
            return False
        special = {"solution": self._reload}
        sys.meta_path.insert(0, Given(self._folder, job["files"], special))
        if self._bridge is not None:
            texts.guard(self._folder, (*job["tests"], *job["files"]))
        try:
            write_files(self._folder, job["files"] | {"solution.py": job["solution"]})
        except (OSError, ValueError) as fault:
            self._record("fault", sessions.short(fault))
            return False
        return True

    def _compile(self) -> None:
        """The suite, from the bytes of an earlier run if there was one. Raises SyntaxError, ValueError."""
        known = self._job["compiled"]
        self._suite = read(known, self._folder) if known else compiled(self._job["tests"], self._folder, _CONFIG)
        if not known:  # before the solution is there: what the next runs trust
            self._record("compiled", base64.b64encode(self._suite.data).decode("ascii"))
        codes = list(self._suite.codes.values())
        for code in codes:
            codes += [part for part in code.co_consts if type(part) is CodeType]
        self._codes = {id(code) for code in codes}

    def _leaves(self, code: int) -> None:
        self._record("fault", f"the suite calls os._exit({code!r})")
        _exit(code if type(code) is int else 1)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    # The solution

    def _load_solution(self) -> bool:
        text, path = self._job["solution"], self._path("solution.py")
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        try:
            if self._bridge is not None:
                sys.modules["solution"] = self._bridge.load(path, self._suite)
            else:
                module = sys.modules["solution"] = ModuleType("solution")
                module.__dict__["__file__"] = path
                self._execute_here(module)
        except (SyntaxError, MemoryError, ValueError, RecursionError) as fault:
            kind = "memory" if isinstance(fault, MemoryError) else "exception"
            kind = "parse" if isinstance(fault, SyntaxError) or "null bytes" in str(fault) else kind
            self._record("solution", kind, sessions.short(fault))
            return False
        except BaseException as fault:  # whatever a candidate raises, SystemExit too, is its result
            self._record("solution", "exception", sessions.short(fault))
            return False
        return True

    def _reload(self, module: ModuleType) -> None:
        if self._bridge is not None:
            self._bridge.reload()
        else:
            self._execute_here(module)

    def _execute_here(self, module: ModuleType) -> None:
        exec(compile(self._job["solution"], self._path("solution.py"), "exec", dont_inherit=True), module.__dict__)

    # The suite

    def _judge(self) -> None:
        suite = _SUITE
        swallowed = self._bridge.rules.swallowed if self._bridge is not None else list
        begins = self._bridge.rules.moments.begins if self._bridge is not None else lambda test, drawn: None
        own, ended = self._written_in_the_suite, self._unfinished
        suite.begin(self._folder, partial(self._record, "test"), own, ended, swallowed, begins)
        try:
            if "conftest.py" in self._suite.names:
                suite.conftest(self._module("conftest.py"))
        except BaseException as fault:  # as above
            self._record("broken", f"conftest.py: {sessions.short(fault)}")
        items = []
        for name in self._suite.names:
            if name != "conftest.py":
                items += suite.collect(name, lambda name=name: self._module(name))
        left_out = [sessions.name_of(item) for item in items if sessions.left_out(item)]
        self._record("collected", [sessions.name_of(item) for item in items], left_out)
        suite.run(items)
        for text in suite.broken:
            self._record("broken", text)

    def _module(self, name: str) -> ModuleType:
        module = ModuleType(name.removesuffix(".py"))
        module.__dict__.update({"__file__": self._path(name), texts.ASSERTED: self._asserted})
        module.__dict__.update({texts.CAUGHT: self._caught, texts.ENDED: partial(self._has_ended, name)})
        if self._bridge is not None:
            module.__dict__.update(self._bridge.names)
        sys.modules[module.__name__] = module
        exec(self._suite.codes[self._path(name)], module.__dict__)
        return module

    def _caught(self, kind: Any, origin: str) -> Any:
        """A class that the suite catches."""
        return kind if self._bridge is None else self._bridge.rules.caught(kind, origin)

    def _has_ended(self, file: str, key: str, value: Any = None) -> Any:
        """A function of the suite ends with this value."""
        self._ended.add((self._path(file), key))
        if self._bridge is not None:
            self._bridge.ended(self._path(file), key)
        return value

    def _unfinished(self, item: Any) -> str:
        """Why the test did not run as it should, if so: its own code did not come to its end since the last call, or functions
        that assert did not."""
        ended, self._ended = self._ended, set()
        code = getattr(_unwrapped(item), "__code__", None)
        key = (code.co_filename, texts.key_of(code.co_name, code.co_firstlineno)) if code is not None else ("", "")
        rules, name = self._bridge.rules if self._bridge is not None else None, sessions.name_of(item)
        if rules is not None and (missed := rules.missed(name)):
            return missed
        without_reference = rules is not None and not rules.bound and not rules.recording
        if without_reference and rules.handed_assertions and not self._suite.assertions.ran(key, ended):
            return "assertions of the test never ran"
        if key in ended or key not in self._suite.assertions.watched or self._is_state_machine(item):
            return ""
        return "" if rules is not None and rules.leaves_out(name) else "did not run to its end"

    def _asserted(self) -> None:
        """An assertion has held."""
        self._asserts += 1
        if self._bridge is not None and self._bridge.rules.own > self._counted_own:
            self._own, self._counted_own = self._own + 1, self._bridge.rules.own

    def _written_in_the_suite(self, item: Any) -> bool:
        """Whether it is the suite's own test: a solution's functions and classes that look like tests are none."""
        code = getattr(_unwrapped(item), "__code__", None)
        return (code is not None and id(code) in self._codes) or self._is_state_machine(item)

    def _is_state_machine(self, item: Any) -> bool:
        """Whether it runs a state machine of Hypothesis that the suite defines."""
        run = getattr(item, "function", None)
        if getattr(run, "__module__", "") != "hypothesis.stateful":
            return False
        kept = [cell.cell_contents for cell in run.__closure__ or ()]
        return any(isinstance(kind, type) and f"{kind.__module__}.py" in self._suite.names for kind in kept)


def _unwrapped(item: Any) -> Any:
    """A test's own function, below its decorators."""
    function = getattr(item, "function", None)
    for _ in range(50):
        inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
        inner = inner or getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return function


def serve(payload: bytes, fd: int) -> None:
    """The solution's process, next to the suite's: load the solution, then serve the suite's process, until that is gone.

    The suite's text is not here, and nothing here is trusted. `payload`: solution, words of the suite's text.
    """
    global _CONFIG, _SUITE
    _SUITE.forget()
    _CONFIG = _SUITE = None
    job = wire.decode_native(payload)
    settle(os.getcwd(), importing=True)
    channel = Channel(fd)
    ambient = Ambient(1, job["words"])
    peer = Peer(channel, 1, Trusting(), ambient, frozenset(("solution", "__main__")))
    loader = _Loader(job["solution"], os.getcwd(), peer)
    peer.serves("load", loader.load)
    peer.serves("derive", lambda target, name, args, kwargs: peer.objects.number_of(_derived(name, *args, kwargs)))
    peer.serves("eval", lambda target, name, args, kwargs: eval(*args, *([] if args[1:] else [loader.names()])))
    peer.serves("unpickle", lambda target, name, args, kwargs: pickle.loads(*args))
    peer.serves("exec", lambda target, name, args, kwargs: _execute(*args))
    peer.serves("example", lambda target, name, args, kwargs: loader.example(*args))
    peer.serves("program", lambda target, name, args, kwargs: loader.program(*args))
    ambient.capture(peer)
    if job["threads"]:
        channel.watch()
    try:
        peer.serve()
    except Gone:
        return


class _Loader:
    """The solution's module. Its number is 1, the first number."""

    def __init__(self, text: str, folder: str, peer: Peer):
        self._text, self._path = text, os.path.join(folder, "solution.py")
        self._examples: dict[str, Any] | None = None
        self._module = types.ModuleType("solution")
        peer.objects.number_of(self._module)

    def names(self) -> dict[str, Any]:
        """Its namespace."""
        return vars(self._module)

    def example(self, source: str) -> None:
        """Run an example of a doctest."""
        if self._examples is None:
            self._examples = {**vars(self._module)}
        exec(compile(source, "<doctest>", "single"), self._examples)

    def program(self, name: str) -> dict[str, Any]:
        """Run the solution's text as a module of this name. What it defines."""
        space: dict[str, Any] = {"__name__": name, "__file__": self._path}
        exec(compile(self._text, self._path, "exec", dont_inherit=True), space)
        return {key: value for key, value in space.items() if not key.startswith("__")}

    def load(self, *_: Any) -> list[str]:
        """Run the solution's text in its module, or rerun it. The names that it defines."""
        module = self._module
        module.__dict__["__file__"] = self._path
        sys.modules["solution"] = module
        lines = self._text.splitlines(keepends=True)
        linecache.cache[self._path] = (len(self._text), None, lines, self._path)
        exec(compile(self._text, self._path, "exec", dont_inherit=True), module.__dict__)
        listed = getattr(module, "__all__", None)
        names = vars(module) if listed is None else listed
        return [str.__str__(name) for name in names if isinstance(name, str) and (listed or not name.startswith("_"))]


def _execute(text: str, names: dict[str, Any] | None = None, local: dict[str, Any] | None = None) -> None:
    """The names that a text binds in its namespace, without those that `exec` adds."""
    space: dict[str, Any] = {**(names or {})}
    exec(text, space, local)
    space.pop("__builtins__", None)
    if names is not None:
        names.update(space)


def _derived(name: str, bases: list[Any], parts: list[Any], module: str, options: dict[str, Any]) -> type:
    """A class whose functions are the suite's."""
    names: dict[str, Any] = {"__module__": module}
    for key, kind, part in parts:
        names[key] = {"staticmethod": staticmethod, "classmethod": classmethod}.get(kind, lambda part: part)(part)
        if kind == "property":
            names[key] = property(*part)
    return types.new_class(name, tuple(bases), options, lambda space: space.update(names))


_WARM = """
import unittest, pytest
@pytest.fixture
def one(tmp_path): return 1
@pytest.mark.parametrize("x", [1, 2])
def test_ok(x, one, capsys, monkeypatch):
    monkeypatch.setenv("A", "b"); print(x); capsys.readouterr()
def test_raises():
    with pytest.raises(ValueError, match="x"): int("x")
def test_approx(): assert 0.1 + 0.2 == pytest.approx(0.3)
def test_fails(): assert [1, 2] == [1, 3]
class TestIt:
    def test_it(self): assert True
class Case(unittest.TestCase):
    def test_it(self): self.assertEqual(1, 1)
    def test_not(self): self.assertEqual(1, 2)
"""


def _warm() -> None:
    """Run a sample suite, so that whatever pytest loads or compiles late is loaded before the first fork."""
    with tempfile.TemporaryDirectory() as folder:
        config = sessions.configure()
        code = compiled({"test_warm.py": _WARM}, folder, config).codes[os.path.join(folder, "test_warm.py")]
        module = ModuleType("test_warm")
        module.__dict__.update({texts.ASSERTED: lambda: None, texts.CAUGHT: lambda kind, origin: kind})
        module.__dict__[texts.ENDED] = lambda key, value=None: value
        exec(code, module.__dict__)
        outcomes: list[str] = []
        suite = sessions.Suite(config)
        suite.begin(
            folder,
            lambda name, outcome, text: outcomes.append(outcome),
            lambda item: True,
            lambda item: "",
            list,
            lambda test, drawn: None,
        )
        suite.run(suite.collect("test_warm.py", lambda: module))
        config._ensure_unconfigure()
    if sorted(outcomes) != ["failed"] * 2 + ["passed"] * 6 or suite.broken:
        raise ImportError(f"pytest does not work here as it should: {outcomes} {suite.broken}")


_warm()
_CONFIG = sessions.configure()
_SUITE = sessions.Suite(_CONFIG)
