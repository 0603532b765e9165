"""`from solution import *` in a suite: what the suite judges with stays the suite's.

A wildcard would let a solution bring its own `all`, `math`, `pytestmark`, `setup_module` or fixtures. Names that the
suite has already are kept, pytest's hooks left out, and a function named as a builtin has to agree with it wherever
that has an answer. Standard library only.
"""

import builtins
import sys
from collections.abc import Callable, Iterator
from typing import Any

STAR = "@star"
_HOOKS = frozenset("setup_module teardown_module setup_function teardown_function setUpModule tearDownModule".split())
_HOOKS |= {"pytestmark", "pytest_plugins", "load_tests", "collect_ignore", "__test__"}
_ACTING = frozenset("print open input exec eval compile globals locals vars breakpoint exit quit help".split())
_OWN = frozenset(("hash", "id"))
"""Builtins whose answer is nobody's but the interpreter's."""
Differs = Callable[[str], None]


def star(namespace: dict[str, Any], differs: Differs) -> None:
    """Bind the solution's public names in a suite's namespace. `differs(name)`: told of a function that is not what
    the builtin of its name is."""
    module = sys.modules["solution"]
    content = module.__dict__
    names = content.get("__all__")
    names = [name for name in content if not name.startswith("_")] if names is None else names
    for name in names:
        value = content[name] if name in content else getattr(module, name)
        if name in namespace or name in _HOOKS or name.startswith("pytest_") or _is_fixture(value):
            continue
        if hasattr(builtins, name) and name not in _OWN:
            if name in _ACTING or isinstance(value, type) or not callable(value):
                continue
            value = _agreeing(name, value, differs)
        namespace[name] = value


def _is_fixture(value: Any) -> bool:
    return type(value).__name__ == "FixtureFunctionDefinition"


def _agreeing(name: str, function: Callable[..., Any], differs: Differs) -> Callable[..., Any]:
    plain = getattr(builtins, name)

    def both(*args: Any, **kwargs: Any) -> Any:
        args = tuple(list(arg) if isinstance(arg, Iterator) else arg for arg in args)
        found = function(*args, **kwargs)
        try:
            known = plain(*args, **kwargs)
        except Exception:  # it has no answer to this
            return found
        if isinstance(known, (Iterator, range)):
            known, found = list(known), list(found)
        if type(found) is not type(known) or found != known:
            differs(name)
        return found

    return both
