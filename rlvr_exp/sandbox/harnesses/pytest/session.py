"""pytest itself, inside a candidate's fork: a configuration built in the zygote, suites collected from memory.

Owns the definition of a passed test: its function was called by this module and ran to its end, and pytest's own
reports of set-up, call and teardown say passed. pytest finds fixtures, parameters and classes and runs the protocol; it
reads no file, loads no plugin by itself and writes no report. Standard library and pytest only.
"""

import asyncio
import io
import os
import pathlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from _pytest import runner, tmpdir
from _pytest.compat import is_async_function
from _pytest.config import Config, _prepareconfig, create_terminal_writer
from _pytest.debugging import pytestPDB
from _pytest.legacypath import TempdirFactory
from _pytest.main import Session
from _pytest.runner import collect_one_node
from _pytest.skipping import evaluate_condition
from _pytest.tmpdir import TempPathFactory
from _pytest.unittest import TestCaseFunction

_BLOCKED = "cacheprovider pastebin doctest stepwise faulthandler unraisableexception threadexception"
_ARGS = ["-s", "-c", "/dev/null", "--rootdir=/", "--assert=plain", "--tb=native", "--basetemp=/unused", "--noconftest"]
_ARGS += [part for name in _BLOCKED.split() for part in ("-p", f"no:{name}")]
_FRAMES = 60
"""Frames searched from the outermost on; the suite's own are among them."""
_LAST = ("last_type", "last_value", "last_traceback", "last_exc")
"""Attributes for the last failure, set by pytest: its message shows the expected value."""
MESSAGE = 600
"""Characters of a failure's message that leave the process."""

Report = Callable[[str, str, str], None]
"""(test, outcome, message)."""


def configure() -> Config:
    """A configuration like that of `pytest -p no:cacheprovider`, without third-party plugins. For the zygote.

    A solution finds nothing that shows the tests: no environment variable and no folder is named after a test, and
    pytest's own plugin for asserts, which keeps the configuration in a global, is removed.
    """
    # In place of pytest's own long form, which reads sources and every frame.
    pytest.Function.repr_failure = pytest.Function._repr_failure_py = lambda item, excinfo, style=None: short(
        excinfo.value
    )
    runner._update_current_test_var = lambda item, when: None
    tmpdir._mk_tmp = lambda request, factory: factory.mktemp("test", numbered=True)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    config = _prepareconfig(list(_ARGS))
    config._do_configure()
    manager = config.pluginmanager
    manager.unregister(name="terminalreporter")
    manager.register(_Silent(config), name="terminalreporter")
    manager.unregister(name="assertion")
    return config


class _Silent:
    """In place of the terminal: pytest's writer for colours, and no output."""

    def __init__(self, config: Config):
        self._tw = create_terminal_writer(config, io.StringIO())
        self.verbosity = 0


class _Memory(pytest.Module):
    """A test file in memory."""

    load: Callable[[], ModuleType]

    def _getobj(self) -> ModuleType:
        try:
            return self.load()
        except pytest.skip.Exception:
            raise
        except BaseException as fault:  # SystemExit, too, is a result
            raise self.CollectError(short(fault)) from fault

    def collect(self) -> Iterator[Any]:
        return iter(super().collect())


class Suite:
    """One run: its session opened in the zygote, begun in a fork."""

    def __init__(self, config: Config):
        self.session = Session.from_config(config)
        self._config = config
        self._ran_through: set[str] = set()
        self._faults: dict[str, tuple[str, str]] = {}
        self.broken: list[str] = []
        """Disturbances of the session's regular course."""
        config.pluginmanager.register(_Recorder(self), name="recorder")
        config.hook.pytest_sessionstart(session=self.session)

    def forget(self) -> None:
        """Release pytest's own objects."""
        pytestPDB._config = pytestPDB._pluginmanager = pytest.mark._config = None
        self.__dict__.clear()

    def begin(
        self,
        folder: str,
        report: Report,
        of_the_suite: Callable[[Any], bool],
        unfinished: Callable[[Any], str],
        swallowed: Callable[[], list[AssertionError]],
        begins: Callable[[str, bool], None],
    ) -> None:
        """
        Args:
            folder: of the run.
            report: receives each test's outcome.
            of_the_suite: whether a test is the suite's own.
            unfinished: why the test that ran last did not run as it should; empty if it did.
            swallowed: failures that may still fail a test that returned.
            begins: is told each test's name, and whether Hypothesis draws for it.
        """
        self._root, self._report, self._of_the_suite = (pathlib.Path(folder), report, of_the_suite)
        self._swallowed, self._begins, self._unfinished = swallowed, begins, unfinished
        self._config._rootpath = self.session.path = self._root
        self._config.option.basetemp = str(self._root / ".tmp")
        factory = self._config._tmp_path_factory = TempPathFactory.from_config(self._config, _ispytest=True)
        self._config._tmpdirhandler = TempdirFactory(factory, _ispytest=True)
        self.session._bestrelpathcache = type(self.session._bestrelpathcache)(self._root)

    def conftest(self, module: ModuleType) -> None:
        """Fixtures and hooks of the suite's own conftest.py, for all its files."""
        self._config.pluginmanager.register(module, name="suite_conftest")

    def collect(self, name: str, load: Callable[[], ModuleType]) -> list[pytest.Item]:
        """The tests of one file, in its order; failures to collect are in `broken`."""
        node = _Memory.from_parent(self.session, path=self._root / name)
        node.load = load
        found = collect_one_node(node)
        node.ihook.pytest_collectreport(report=found)
        if not found.passed:
            return []
        items = [item for child in found.result for item in self.session.genitems(child)]
        return [item for item in items if self._of_the_suite(item)]

    def run(self, items: list[pytest.Item]) -> None:
        """Every test in turn. Causes of an early end are in `broken`."""
        hook, session = self._config.hook, self.session
        session.items, session.testscollected = items, len(items)
        hook.pytest_collection_modifyitems(session=session, config=self._config, items=session.items)
        hook.pytest_collection_finish(session=session)
        following = [*session.items[1:], None][: len(session.items)]
        try:
            for item, next_item in zip(list(session.items), following, strict=True):
                self._begins(name_of(item), hasattr(getattr(item, "function", None), "hypothesis"))
                hook.pytest_runtest_protocol(item=item, nextitem=next_item)
                for name in _LAST:
                    if hasattr(sys, name):
                        delattr(sys, name)
                self._report(name_of(item), *self._outcome(item, self._swallowed()))
                if session.shouldfail or session.shouldstop:
                    self.broken.append(f"stopped: {session.shouldfail or session.shouldstop}")
                    break
            hook.pytest_sessionfinish(session=session, exitstatus=0)
        except BaseException as fault:  # pytest.exit, SystemExit, KeyboardInterrupt: no regular end
            self.broken.append(short(fault))

    def call(self, item: pytest.Item, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a test's function; only that it returned counts."""
        result = function(*args, **kwargs)
        self._ran_through.add(str(item.nodeid))
        return result

    async def call_async(self, item: pytest.Item, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The same for a coroutine function of unittest."""
        result = await function(*args, **kwargs)
        self._ran_through.add(str(item.nodeid))
        return result

    def note(self, nodeid: str, outcome: str, message: str) -> None:
        """Something went wrong for a test; the first cause stays."""
        self._faults.setdefault(nodeid, (outcome, message))

    def _outcome(self, item: pytest.Item, swallowed: list[AssertionError]) -> tuple[str, str]:
        nodeid, unfinished = str(item.nodeid), self._unfinished(item)
        if nodeid in self._faults:
            return self._faults[nodeid]
        if unfinished or nodeid not in self._ran_through:
            return "failed", unfinished or "did not run to its end"
        if swallowed:
            return "failed", short(swallowed[0])
        return "passed", ""


class _Recorder:
    """The plugin that calls tests and reads pytest's reports."""

    def __init__(self, suite: Suite):
        self._suite = suite

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        function = pyfuncitem.obj
        args = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        if is_async_function(function):  # as with pytest's plugins for asyncio
            asyncio.run(self._suite.call_async(pyfuncitem, function, **args))
            return True
        result = self._suite.call(pyfuncitem, function, **args)
        if hasattr(result, "__await__") or hasattr(result, "__aiter__"):
            pytest.fail("a test returned an awaitable that nobody awaits", pytrace=False)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        if isinstance(item, TestCaseFunction):
            function = item.obj
            call = self._suite.call_async if is_async_function(function) else self._suite.call
            item.obj = _like(function, _calling(call, item, function))
            if is_async_function(function):  # pytest takes it from the instance
                setattr(item.instance, item.name, item.obj)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        if report.outcome != "passed" or hasattr(report, "wasxfail"):
            message = short(call.excinfo.value) if call.excinfo is not None else str(report.longrepr or "")[:MESSAGE]
            self._suite.note(str(item.nodeid), _kind(report), message)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":  # of subtests, too
            self._suite.note(str(report.nodeid), _kind(report), str(report.longrepr or "").strip()[-MESSAGE:])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            self._suite.broken.append(str(report.longrepr or report.outcome)[-MESSAGE:])


def _kind(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed"
    if report.outcome == "skipped":
        return "skipped"
    return "failed" if report.when == "call" else "error"


def _calling(call: Callable[..., Any], item: pytest.Item, function: Any) -> Any:
    """A new function, which takes attributes and is a coroutine function if the test is one."""
    if not is_async_function(function):
        return lambda *args, **kwargs: call(item, function, *args, **kwargs)

    async def calling(*args: Any, **kwargs: Any) -> Any:
        return await call(item, function, *args, **kwargs)

    return calling


def _like(function: Any, wrapper: Any) -> Any:
    """The wrapper with the attributes that unittest reads from a test method."""
    wrapper.__name__ = getattr(function, "__name__", "test")
    wrapper.__doc__ = getattr(function, "__doc__", None)
    for name in ("__unittest_skip__", "__unittest_skip_why__", "__unittest_expecting_failure__", "pytestmark"):
        if hasattr(function, name):
            setattr(wrapper, name, getattr(function, name))
    return wrapper


def left_out(item: pytest.Item) -> bool:
    """Whether marks of the test's own parameters skip it, or let it fail."""
    for mark in getattr(getattr(item, "callspec", None), "marks", ()):
        given = mark.args or [mark.kwargs[name] for name in ("condition",) if name in mark.kwargs]
        if mark.name == "skip" or (mark.name == "xfail" and not given):
            return True
        holds = (evaluate_condition(item, mark, one)[0] if isinstance(one, str) else one for one in given)
        if mark.name in ("skipif", "xfail") and any(holds):
            return True
    return False


def name_of(item: pytest.Item) -> str:
    """FILE::CLASS::TEST[PARAMETERS]."""
    return "::".join(node.name for node in item.listchain()[1:])


def short(fault: BaseException) -> str:
    """Type, message and the suite's line of an exception, however hostile its own methods are."""
    try:
        text = str(fault)
    except BaseException:  # a candidate's own __str__
        text = ""
    if not isinstance(text, str):
        text = ""
    text = (
        text if isinstance(fault, AssertionError) and text.startswith("assert") else f"{type(fault).__name__}: {text}"
    )
    line, trace = 0, fault.__traceback__
    for _ in range(_FRAMES):
        if trace is None:
            break
        line = trace.tb_lineno if is_suite_file(trace.tb_frame.f_code.co_filename) else line
        trace = trace.tb_next
    return text[:MESSAGE] + (f" (line {line})" if line else "")


def is_suite_file(path: str) -> bool:
    return os.path.basename(path).startswith("test_") and not path.startswith(sys.prefix)
