"""Tasks whose cases a program passes that knows nothing of them: one value for every input, or the unchanged argument.

Decided from arguments and expected values; nothing is run. Tests that are programs are checked by `+stage=validate`,
with many more fixed answers. Equality is that of the verifier: Python's own in test files, python_io's on cases.
"""

from collections.abc import Callable
from typing import Any

from rlvr_exp.tasks.formats.python_io import Case, PythonProblem

WEAK = "its cases accept a fixed answer"
"""The reason why a task is left out, before the answer."""
_VALUES: tuple[Any, ...] = (None, True, False, 0, 1, -1, "", [], (), {}, set(), [[]])
_ARGUMENTS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "its first argument": lambda args: args[0] if args else None,
    "its last argument": lambda args: args[-1] if args else None,
    "its arguments": lambda args: args,
}


def fixed_answer(problem: PythonProblem, judge: str) -> str:
    """What a program can return to pass all cases, in words; empty where no fixed answer does."""
    cases = [case for case in problem.cases if isinstance(case, Case)]
    if not cases:
        return ""  # Programs by their output.
    equal = _same if judge == "pytest" else _strictly_same if problem.strict else _same_data
    for value in _VALUES:
        if all(equal(value, case.expected) for case in cases):
            return repr(value)
    return next((name for name, of in _ARGUMENTS.items() if all(equal(of(c.args), c.expected) for c in cases)), "")


def _same(one: Any, other: Any) -> bool:
    return one == other


def _strictly_same(one: Any, other: Any) -> bool:
    return _typed(one, tuple) == _typed(other, tuple)


def _same_data(one: Any, other: Any) -> bool:
    return _typed(one, list) == _typed(other, list)


def _typed(value: Any, sequence: type) -> Any:
    """The kind of a value: bools and texts are distinguished from numbers; tuples are `sequence`."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list | tuple):
        kind = sequence if isinstance(value, tuple) else list
        return (kind.__name__, [_typed(part, sequence) for part in value])
    if isinstance(value, dict):
        return ("dict", {key: _typed(part, sequence) for key, part in value.items()})
    return value
