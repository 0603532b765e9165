"""Doctests of the solution: `doctest` and `runpy` in the suite's process, for a module that another process holds.

`DocTestFinder.find` on the solution, or on a function or class of it, gives examples. Beside a reference they are the reference's,
which its own run recorded: a solution is judged by them, whatever its own texts say. They run here. Without a reference they are
the solution's own, and run in its process; here only their output is compared. Standard library only.
"""

import doctest
import os
import runpy
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest.mirrors import state_of

_MOST = 200
"""Names of a solution whose texts are read."""


class _OfSolution(doctest.DocTest):
    """A test whose text is the solution's."""


class Doctests:
    """
    Args:
        solution: the module, as the suite sees it.
        known: texts of the reference by name; None without a reference, or in its own run.
        trusted: whether the texts may run in this process.
        elsewhere: sends a request to the solution's process.
    """

    def __init__(
        self, solution: ModuleType, known: dict[str, str] | None, trusted: bool, elsewhere: Callable[[str, Any], Any]
    ):
        self._solution, self._known, self._trusted, self._elsewhere = solution, known, trusted, elsewhere
        self.seen: dict[str, str] = {}
        """Texts with examples, by the name of their object."""

    def take_over(self) -> None:
        """Replace the functions of `doctest` and `runpy` for the rest of this process."""
        find, run = doctest.DocTestFinder.find, doctest.DocTestRunner.run

        def found(finder: Any, obj: Any, name: str | None = None, *args: Any, **options: Any) -> Any:
            if obj is not self._solution and state_of(obj) is None:
                return find(finder, obj, name, *args, **options)
            return self._tests(obj, name, finder._parser, options.get("globs"), options.get("extraglobs"))

        def ran(runner: Any, test: Any, *args: Any, **options: Any) -> Any:
            if self._trusted or not isinstance(test, _OfSolution):
                return run(runner, test, *args, **options)
            names = {
                "compile": lambda source, *_: source,
                "exec": lambda source, _: self._elsewhere("example", (source,)),
            }
            vars(doctest).update(names)
            try:
                return run(runner, test, *args, **options)
            finally:
                for one in names:
                    del vars(doctest)[one]

        doctest.DocTestFinder.find, doctest.DocTestRunner.run = found, ran
        self._run_as_program("run_module", lambda name: name == "solution")
        self._run_as_program("run_path", lambda path: os.path.basename(str(path)) == "solution.py")

    def _run_as_program(self, function: str, is_solution: Callable[[Any], bool]) -> None:
        real = getattr(runpy, function)

        def run(target: Any, init_globals: Any = None, run_name: str | None = None, *args: Any, **options: Any) -> Any:
            if not is_solution(target):
                return real(target, init_globals, run_name, *args, **options)
            return self._elsewhere("program", (run_name or ("solution" if function == "run_module" else "<run_path>"),))

        setattr(runpy, function, run)

    def _tests(self, obj: Any, name: str | None, parser: Any, globs: Any, more: Any) -> list[doctest.DocTest]:
        whole = obj is self._solution
        first = "" if whole else str(getattr(obj, "__name__", name))
        texts = dict(self._texts(obj, first))
        self.seen.update(texts)
        if self._known is not None:
            within = f"{first}."
            texts = {at: text for at, text in self._known.items() if whole or at == first or at.startswith(within)}
        names = dict(globs) if globs is not None else self._names()
        names.update(more or {})
        title = name or ("solution" if whole else first)
        tests = []
        for at, text in texts.items():
            space = names.copy()
            shown = f"{title}.{at}" if whole and at else title
            test = parser.get_doctest(text, space, shown, self._solution.__file__, 0)
            if test.examples:
                test.__class__ = _OfSolution
                tests.append(test)
        return sorted(tests)

    def _texts(self, obj: Any, name: str) -> Any:
        """(name, text) of an object and of what it defines."""
        text = getattr(obj, "__doc__", None)
        if type(text) is str and ">>>" in text:
            yield name, text
        if not (obj is self._solution or isinstance(obj, type)):
            return
        for part in sorted(dir(obj))[:_MOST]:
            inner = getattr(obj, part, None) if not part.startswith("__") else None
            if state_of(inner) is not None and getattr(inner, "__module__", "") == "solution":
                yield from self._texts(inner, f"{name}.{part}" if name else part)

    def _names(self) -> dict[str, Any]:
        return {name: getattr(self._solution, name) for name in dir(self._solution) if not name.startswith("__")}
