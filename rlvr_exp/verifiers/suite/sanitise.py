"""Suites from task authors and models: made runnable, then validated.

`sanitise_tests` turns a model's text into a test file: chatter, fences, runners and copies of the solution are taken out.
It reads and writes text by its syntax tree and executes nothing. Text that it cannot parse stays as it is; validation
reports it as unsound.

`validate_many` decides whether a suite can judge: the reference passes it, and stub solutions do not. A suite may be empty,
wrong or hostile (`assert True`, a patched solution, an early exit). The verifier runs every suite under the same guards
and cannot know whether it tests anything, so it is run against solutions whose outcome is known.
"""

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlvr_exp.tasks.base import Candidate
from rlvr_exp.tasks.completion import before_lone_fence, suite_blocks, unified, unquoted, without_thoughts
from rlvr_exp.tasks.formats.fields import Limits
from rlvr_exp.tasks.formats.pytest_suite import PytestProblem
from rlvr_exp.verifiers.base import Request, Verdict, Verifier
from rlvr_exp.verifiers.suite.shape import bound_names, dotted

_RUNNERS = ("pytest.main", "unittest.main", "sys.exit", "exit", "quit", "os._exit", "os.abort")
_LINES = 400
"""Longest text at whose ends chatter is searched for line by line."""


@dataclass(frozen=True)
class Sanitised:
    """A suite's text and the changes to it, in words."""

    text: str
    changes: tuple[str, ...]
    fault: str = ""
    """Why the result is still no Python."""


def sanitise_tests(text: str, names: Collection[str] = ()) -> Sanitised:
    """The test file in a model's completion. `names`: the names that the solution defines, if known.

    A definition of one of `names` at the suite's top level is a copy of the solution. It would be tested in its
    place, so it is taken out, and the name imported.
    """
    changes: list[str] = []
    code = _code(unified(text).removeprefix("\ufeff"), changes)
    tree = _parsed(code)
    if isinstance(tree, str):
        return Sanitised(code, tuple(changes), tree)
    drop = dict(_unwanted(tree, frozenset(names)))
    imports = _missing_imports(tree, set(drop), frozenset(names))
    changes += [*drop.values(), *(f"added: {line}" for line in imports)]
    return Sanitised(_edited(code, tree, drop, imports), tuple(changes))


def shadowed_names(text: str, names: Collection[str]) -> tuple[str, ...]:
    """Those of `names` that a suite defines itself at its top level, in place of the solution's. Never raises."""
    tree = _parsed(text)
    if isinstance(tree, str):
        return ()
    return tuple(sorted({name for node in tree.body for name in _defined(node) if name in names}))


def _code(text: str, changes: list[str]) -> str:
    answer = without_thoughts(text)
    if answer != text:
        changes.append("thoughts left out")
    answer, marked = unquoted(answer), answer
    if answer != marked:
        changes.append("marks of a block quote left out")
    if not isinstance(_parsed(answer), str):
        return answer
    if found := suite_blocks(answer):
        changes.append("taken out of its fences")
        return found
    text = before_lone_fence(answer)
    if text != answer:
        changes.append("an unpaired fence left out")
    if not isinstance(_parsed(text), str):
        return text
    lines = text.split("\n")
    for start, end in _cuts(len(lines)):
        part = "\n".join(lines[start:end])
        if "def test" in part and not isinstance(_parsed(part), str):
            changes.append("text around the code left out")
            return part
    return text


def _cuts(count: int) -> Iterator[tuple[int, int]]:
    """Shorter and shorter pieces: first without a head, then without a tail, then without both, by halves."""
    if count > _LINES:
        return
    yield from ((start, count) for start in range(1, count))
    yield from ((0, end) for end in range(count - 1, 0, -1))
    yield from (
        (start, end) for start in range(1, min(count, 12)) for end in range(count - 1, max(start, count - 40), -1)
    )


def _parsed(code: str) -> ast.Module | str:
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        return f"{type(fault).__name__}: {fault}"


def _unwanted(tree: ast.Module, names: frozenset[str]) -> Iterator[tuple[ast.stmt, str]]:
    for node in tree.body:
        copies = [name for name in _defined(node) if name in names]
        tested = list(ast.walk(node.test)) if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) else []
        if any(isinstance(part, ast.Name) and part.id == "__name__" for part in tested):
            yield node, "removed: what runs as a program"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and dotted(node.value.func) in _RUNNERS:
            yield node, f"removed: {dotted(node.value.func)}"
        elif copies and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node, f"removed: a copy of {copies[0]}"


def _missing_imports(tree: ast.Module, drop: set[ast.stmt], names: frozenset[str]) -> list[str]:
    kept = [node for node in tree.body if node not in drop]
    bound = {name for node in kept for part in ast.walk(node) for name in bound_names(part)}
    used = {part.id for node in kept for part in ast.walk(node) if isinstance(part, ast.Name)}
    star = any(
        isinstance(node, ast.ImportFrom) and node.module == "solution" and node.names[0].name == "*" for node in kept
    )
    missing = used - bound - set(dir(builtins))
    lines = [f"import {name}" for name in ("pytest", "unittest", "math", "solution") if name in missing]
    wanted = sorted(missing & names)
    return lines + ([f"from solution import {', '.join(wanted)}"] if wanted and not star else [])


def _edited(code: str, tree: ast.Module, drop: dict[ast.stmt, str], imports: Sequence[str]) -> str:
    lines = code.split("\n")
    for node in drop:
        first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", ()))])
        lines[first - 1 : node.end_lineno] = [""] * (node.end_lineno - first + 1)
    at = 0
    for number, node in enumerate(tree.body):
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and number == 0
        if not (future or text):
            break
        at = node.end_lineno or at
    lines[at:at] = imports
    return "\n".join(lines).strip("\n") + "\n"


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


@dataclass(frozen=True)
class Validation:
    """Whether a suite can judge.

    `sound`: the reference passes it. `empty`: so does a solution that does nothing, or nothing is collected. A suite is
    of use if it is sound and not empty.
    """

    sound: bool
    empty: bool
    tests: int
    """Number of tests that count."""
    reference: Verdict
    stubs: tuple[Verdict, ...]
    """Verdicts on the reference without its bodies: one that raises, one that returns None."""

    @property
    def usable(self) -> bool:
        return self.sound and not self.empty


def validate_tests_against_solution(
    tests: str, reference: str, verifier: Verifier, files: Mapping[str, str] | None = None, limits: Limits = Limits()
) -> Validation:
    """Run a suite against a reference solution, and against stubs of it.

    Args:
        tests: the suite's text, as `sanitise_tests` gives it.
        reference: a solution that is known to be right.
        verifier: a `PytestSuite`; several suites at once: `validate_many`.
    """
    return validate_many([(tests, reference, files or {})], verifier, limits)[0]


def validate_many(
    suites: Sequence[tuple[str, str, Mapping[str, str]]], verifier: Verifier, limits: Limits = Limits()
) -> list[Validation]:
    """The same for many (tests, reference, files), in parallel, in order."""
    requests = []
    for tests, reference, files in suites:
        problem = PytestProblem(tests, tuple(files.items()), limits)
        stubs = [stubbed(reference, "raise NotImplementedError"), stubbed(reference, "return None")]
        requests += [Request(problem, Candidate(code)) for code in (reference, *stubs)]
    verdicts = verifier.verify(requests)
    found = []
    for at in range(0, len(verdicts), 3):
        own, *others = verdicts[at : at + 3]
        empty = own.total == 0 or any(verdict.outcome == "passed" for verdict in others)
        found.append(Validation(own.outcome == "passed", empty, own.total, own, tuple(others)))
    return found


def stubbed(reference: str, body: str) -> str:
    """The reference with `body` in place of each function's own body. Text that is no Python stays unchanged."""
    try:
        tree = ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return reference
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("__"):
            node.body = ast.parse(body).body if body.startswith("raise") else [ast.Return(ast.Constant(None))]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
