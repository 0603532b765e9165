"""The harness of `pytest`: a suite and a solution in a candidate's own process, the verdict in neither's hands.

In the zygote pytest is configured and warmed, and a guard is put around what tests are judged with (`suite_guard`). In
a fork the suite is compiled, the guard armed, the solution loaded, and only then does a test run. Every record carries
a number and a code made with the job's own key, so that nobody else's bytes are taken for one; a broken rule ends the
process on the spot. Records, as JSON after their code: ["rule", rule, detail], ["solution", kind, text],
["collected", tests], ["test", name, outcome, message], ["broken", text], ["done"]. With a peer the solution lives there
(`suite_remote`). Standard library and pytest only.
"""

import importlib
import json
import linecache
import multiprocessing.pool
import multiprocessing.synchronize
import os
import sys
import tempfile
import threading
import unittest.mock  # noqa: F401  loaded here, free in every fork
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from rlvr_exp.sandbox import suite_equal, wire
from rlvr_exp.sandbox import suite_rules as rules
from rlvr_exp.sandbox import suite_session as sessions
from rlvr_exp.sandbox.suite_given import Given
from rlvr_exp.sandbox.suite_guard import Guard
from rlvr_exp.sandbox.suite_keys import code_of
from rlvr_exp.sandbox.suite_remote import Remote, serve, write_files

__all__ = ["run", "serve"]
Send = Callable[[bytes], None]
for _name in (
    "abc argparse array ast asyncio base64 bisect calendar cmath collections contextlib copy csv dataclasses datetime "
    "decimal difflib enum fractions functools hashlib heapq html importlib.util inspect io itertools json logging math "
    "numbers operator os pathlib pickle platform pprint queue random re secrets shutil statistics string struct "
    "subprocess tempfile textwrap threading time traceback types typing unicodedata unittest uuid warnings weakref"
).split():
    importlib.import_module(_name)


multiprocessing.synchronize.Lock = lambda *, ctx=None: threading.Lock()
multiprocessing.synchronize.RLock = lambda *, ctx=None: threading.RLock()
"""There is no second process, and no shared memory to lock one out: what pools of threads ask for."""


class Channel:
    """Records that nobody without the key can write, in an order that nobody can change."""

    __slots__ = ("_count", "_key", "_send")

    def __init__(self, key: bytes, send: Send):
        self._key, self._send, self._count = key, send, 0

    def record(self, *record: Any) -> None:
        text = _dumps(record).encode("ascii")
        self._count += 1
        self._send(code_of(self._key, self._count, text) + text)

    def refuse(self, rule: str, detail: str) -> None:
        """The end: the rule that was broken, and no further instruction."""
        try:
            self.record("rule", rule, detail[:200])
        finally:
            _exit(1)


_dumps, _exit = json.JSONEncoder(ensure_ascii=True).encode, os._exit


def run(payload: bytes, send: Send, peer: int | None = None) -> None:
    """Judge-side contract: called once in a fresh fork, which ends right after."""
    job = wire.decode_native(payload)
    channel = Channel(job.pop("key"), send)
    (_Run(job, channel) if peer is None else _Separate(job, channel, peer)).run()


class _Run:
    def __init__(self, job: dict[str, Any], channel: Channel):
        self._job, self._channel = job, channel
        self._folder = os.getcwd()
        self._tests: dict[str, CodeType] = {}
        self._suite_codes: set[int] = set()
        self._solution: ModuleType | None = None
        registry = _GUARD.registry
        self._given = Given(self._folder, job["files"], registry.trust, _GUARD.guard_modules)

    def run(self) -> None:
        self._prepare()
        self._arm()
        if self._load_solution():
            self._judge()
        self._check()
        self._channel.record("done")

    def _check(self) -> None:
        _GUARD.check(self._solution, self._given)

    # Before the solution

    def _prepare(self) -> None:
        """Everything that is read from the suite or for it, before anybody else's code runs."""
        _GUARD.registry.settle()
        sys.path.insert(0, self._folder)
        os.environ["TMPDIR"], tempfile.tempdir = self._folder, None
        sys.meta_path.insert(0, self._given)
        write_files(self._folder, self._job["files"] | {"solution.py": self._job["solution"]})
        for name in self._job["imports"]:
            try:
                importlib.import_module(name)
            except ImportError:
                continue  # the suite will say so itself
        if self._job["imports"]:
            _GUARD.guard_modules()
            _GUARD.freeze()
        for name, text in self._job["tests"].items():
            code = sessions.rewritten(text, self._path(name), _CONFIG)
            _GUARD.registry.trust(code)
            self._tests[name] = code

    def _arm(self) -> None:
        sys.modules["builtins"] = _GUARD.builtins
        names = frozenset(self._tests)
        given = frozenset(self._path(name) for name in self._job["files"])
        files = rules.Files(self._folder, names, given)
        _GUARD.arm(self._channel.refuse, files, names, self._job["imports"], self._job["patches"])

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    # The solution

    def _load_solution(self) -> bool:
        text, path = self._job["solution"], self._path("solution.py")
        module = ModuleType("solution")
        module.__dict__.update(__file__=path, __builtins__=_GUARD.builtins.__dict__)
        sys.modules["solution"] = module
        lines = text.splitlines(keepends=True)
        linecache.cache[path] = (len(text), None, lines, path)
        try:
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        except (SyntaxError, MemoryError, ValueError, RecursionError) as fault:
            kind = "memory" if isinstance(fault, MemoryError) else "exception"
            kind = "parse" if isinstance(fault, SyntaxError) or "null bytes" in str(fault) else kind
            self._channel.record("solution", kind, sessions.short(fault))
            return False
        except BaseException as fault:  # whatever a candidate raises, SystemExit too, is its answer
            self._channel.record("solution", "exception", sessions.short(fault))
            return False
        self._solution = module
        _GUARD.loaded()
        self._check()
        return True

    # The suite

    def _judge(self) -> None:
        suite = _SUITE
        suite.begin(self._folder, self._told, self._written_in_the_suite)
        try:
            if "conftest.py" in self._tests:
                suite.conftest(self._module("conftest.py"))
        except BaseException as fault:  # as above
            self._channel.record("broken", f"conftest.py: {sessions.short(fault)}")
        items = []
        for name in self._tests:
            if name != "conftest.py":
                items += suite.collect(name, lambda name=name: self._module(name))
        self._check()
        self._channel.record("collected", [sessions.name_of(item) for item in items])
        suite.run(items, self._check)
        for text in suite.broken:
            self._channel.record("broken", text)

    def _told(self, name: str, outcome: str, message: str) -> None:
        self._channel.record("test", name, outcome, message)

    def _module(self, name: str) -> ModuleType:
        module = ModuleType(name.removesuffix(".py"))
        module.__dict__.update({"__file__": self._path(name)} | _GUARD.comparer.names())
        sys.modules[module.__name__] = _GUARD.stand_in(module.__name__, self._path(name))
        exec(self._tests[name], module.__dict__)
        return module

    def _written_in_the_suite(self, item: Any) -> bool:
        """A solution's own functions and classes that look like tests are none."""
        function = getattr(item, "function", None)
        for _ in range(50):
            inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
            inner = inner or getattr(function, "__wrapped__", None)
            if inner is None:
                break
            function = inner
        code = getattr(function, "__code__", None)
        return code is not None and any(id(code) == known for known in self._codes())

    def _codes(self) -> set[int]:
        if not self._suite_codes:
            from_suite = (part for code in self._tests.values() for part in _nested(code))
            self._suite_codes = {id(part) for part in from_suite}
        return self._suite_codes


class _Separate(_Run):
    """The solution lives in another process: nothing here needs guarding from it."""

    def __init__(self, job: dict[str, Any], channel: Channel, peer: int):
        super().__init__(job, channel)
        self._peer = peer

    def _arm(self) -> None:
        pass

    def _check(self) -> None:
        pass

    def _load_solution(self) -> bool:
        remote = Remote(self._peer)
        if remote.module is None:
            self._channel.record("solution", *remote.fault)
            return False
        sys.modules["solution"] = remote.module
        return True


def _nested(code: CodeType) -> list[CodeType]:
    found = [code]
    for part in found:
        found += [constant for constant in part.co_consts if type(constant) is CodeType]
    return found


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
    """One suite of our own, so that whatever pytest loads or compiles late is there before the first fork."""
    with tempfile.TemporaryDirectory() as folder:
        config = sessions.configure()
        code = sessions.rewritten(_WARM, os.path.join(folder, "test_warm.py"), config)
        module = ModuleType("test_warm")
        module.__dict__.update(suite_equal.Comparer(lambda function: False, print).names())
        exec(code, module.__dict__)
        outcomes: list[str] = []
        suite = sessions.Suite(config)
        suite.begin(folder, lambda name, outcome, text: outcomes.append(outcome), lambda item: True)
        suite.run(suite.collect("test_warm.py", lambda: module), lambda: None)
        config._ensure_unconfigure()
    if sorted(outcomes) != ["failed"] * 2 + ["passed"] * 6 or suite.broken:
        raise ImportError(f"pytest does not work here as it should: {outcomes} {suite.broken}")


_warm()
_CONFIG = sessions.configure()
_SUITE = sessions.Suite(_CONFIG)
_GUARD = Guard()
for _name in ("ctypes", "_ctypes", "ctypes._endian"):
    sys.modules.pop(_name, None)
