"""The tests that a suite's text promises, and its uses of the solution, read by the trusted parent from its syntax tree.

None of it is executed. `shape_of` lists the tests. A run must report every test promised here; so no solution can remove
tests from a suite. Skips and expected failures that the text itself decides, independently of the solution, are not
counted; all others are tests that did not pass.

`uses_of` lists the names that the suite takes from its solution, the classes among them, and the state that both sides
must share. A name means a class if the text treats it as a class (isinstance, deriving, an attribute of the class, an
exception that is caught) or an instance of it as an object that is no plain data. A call of a name decides nothing:
functions are called, too.
"""

import ast
import builtins
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest.ambient import VOCABULARY, WORD

_PATCHING = ("monkeypatch", "mock", "patch", "setattr", "mocker")
_FACTS: dict[str, Any] = {
    "sys.version_info": tuple(sys.version_info),
    "sys.platform": sys.platform,
    "os.name": os.name,
    "platform.system()": platform.system(),
    "sys.implementation.name": sys.implementation.name,
}


@dataclass(frozen=True)
class Test:
    """A test function. `name`: FILE::CLASS::TEST without parameters."""

    name: str
    counted: bool
    """False if its own marks skip it or expect it to fail, whatever the solution is."""
    marked_parameters: bool
    """Some of its parameters have marks of their own, which read nothing of the solution."""


@dataclass(frozen=True)
class Shape:
    """The tests that one or several files promise."""

    tests: tuple[Test, ...]
    imports: tuple[str, ...]
    """Modules that they name, dotted, without the solution's and their own."""
    patches: bool
    """Whether they patch attributes themselves."""
    fault: str = ""
    """Why a file is no Python."""


@lru_cache(256)
def shape_of(files: tuple[tuple[str, str], ...], own: tuple[str, ...]) -> Shape:
    """The shape of test files (name, text). `own`: names of further modules of the task. Never raises."""
    tests: list[Test] = []
    imports: dict[str, None] = {}
    local = {"solution", *own, *(name.removesuffix(".py") for name, _ in files)}
    patches = False
    for name, text in files:
        try:
            tree = ast.parse(text)
            if measured := [name for name in _modules(tree) if name in _MEASURES]:
                return Shape(
                    (), (), False, f"{name}: {measured[0]} measures the process of the suite, not the solution's"
                )
            tests += [] if name == "conftest.py" else _tests(tree, name)
            modules = _modules(tree)
            imports |= dict.fromkeys(module for module in modules if module.partition(".")[0] not in local)
            if any(_word(node) in _PATCHING for node in ast.walk(tree)):
                patches = True
                imports |= dict.fromkeys(module for node in ast.walk(tree) for module in _patched_modules(node))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
            return Shape((), (), False, f"{name}: {type(fault).__name__}: {fault}")
    return Shape(tuple(tests), tuple(imports), patches)


_MEASURES = {"tracemalloc", "resource", "psutil", "memory_profiler"}
"""Modules that measure a process."""


def _modules(tree: ast.Module) -> list[str]:
    """Modules that a file imports, dotted."""
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found[node.module] = None
    return [*found]


def _patched_modules(node: ast.AST) -> Iterator[str]:
    """Modules of the standard library in a text such as "urllib.request.urlopen"."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
        parts = node.value.split(".")
        if parts[0] in sys.stdlib_module_names:
            yield from (".".join(parts[:end]) for end in range(1, len(parts)))


_DOTTED = re.compile(r"[a-z_]\w*(\.\w+)+")


def _tests(tree: ast.Module, file: str) -> list[Test]:
    marks = [mark for node in tree.body for mark in _pytestmark(node)]
    names = _of_solution(tree)
    found = {}
    for node in tree.body:
        for path, function, decorators in _functions(node, ()):
            own = [*marks, *decorators, *function.decorator_list]
            keywords = [node for mark in own for node in ast.walk(mark) if isinstance(node, ast.keyword)]
            marked = [keyword.value for keyword in keywords if keyword.arg == "marks"]
            found[path] = Test(
                "::".join((file, *path)),
                counted=not any(_settles(mark) for mark in own),
                marked_parameters=bool(marked) and not any(_reads(mark, tree, names) for mark in marked),
            )
        if isinstance(node, ast.Assign) and _word(node.value) == "TestCase":  # a state machine's of Hypothesis
            path = (dotted(node.targets[0]), "runTest")
            found[path] = Test("::".join((file, *path)), counted=True, marked_parameters=False)
    return list(found.values())


def _of_solution(tree: ast.Module) -> frozenset[str]:
    """Names that a file takes from its solution."""
    found = {"solution"}
    for node in ast.walk(tree):
        aliases = node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if isinstance(node, ast.ImportFrom) and node.module != "solution":
            continue
        found |= {
            alias.asname or alias.name
            for alias in aliases
            if isinstance(node, ast.ImportFrom) or alias.name == "solution"
        }
    return frozenset(found)


def _reads(part: ast.AST, tree: ast.Module, names: frozenset[str], depth: int = 0) -> bool:
    """Whether a part of a file, with the values and functions that it names, reads one of these names."""
    texts = (node.value for node in ast.walk(part) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    read = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)} | {*WORD.findall(" ".join(texts))}
    if read & names or "*" in names or depth > 3:
        return True
    given: list[ast.AST] = [
        node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in read
    ]
    given += [node.value for node in tree.body if isinstance(node, ast.Assign) and {*map(_word, node.targets)} & read]
    return any(_reads(one, tree, names, depth + 1) for one in given if one is not part)


def _functions(
    node: ast.stmt, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef | ast.AsyncFunctionDef, list[ast.expr]]]:
    """The test functions that a statement surely defines, with the marks of their classes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.name.startswith("test") and not any(_called(mark).endswith("fixture") for mark in node.decorator_list):
            yield (*path, node.name), node, []
    elif isinstance(node, ast.ClassDef) and _is_test_class(node):
        marks = node.decorator_list + [mark for part in node.body for mark in _pytestmark(part)]
        for part in node.body:
            for name, function, inner in _functions(part, (*path, node.name)):
                yield name, function, [*marks, *inner]


def _is_test_class(node: ast.ClassDef) -> bool:
    defined = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    assigned = {_word(target) for part in node.body if isinstance(part, ast.Assign) for target in part.targets}
    if "__test__" in assigned:
        return False
    if any(_called(base).endswith("TestCase") for base in node.bases):
        return True
    return node.name.startswith("Test") and not defined & {"__init__", "__new__"}


def _settles(mark: ast.expr) -> bool:
    """Whether a decorator takes its test out of the count by itself."""
    name = _called(mark)
    args = mark.args if isinstance(mark, ast.Call) else []
    words = {word.arg: word.value for word in mark.keywords} if isinstance(mark, ast.Call) else {}
    condition = args[0] if args else words.get("condition")
    if name in (
        "pytest.mark.skip",
        "mark.skip",
        "unittest.skip",
        "skip",
        "unittest.expectedFailure",
        "expectedFailure",
    ):
        return True
    if name in ("pytest.mark.xfail", "mark.xfail"):
        return condition is None or _known(condition) is True
    if name in ("pytest.mark.skipif", "mark.skipif", "unittest.skipIf", "skipIf"):
        return condition is not None and _known(condition) is True
    if name in ("unittest.skipUnless", "skipUnless"):
        return condition is not None and _known(condition) is False
    return False


def _known(condition: ast.expr) -> bool | None:
    """A condition on the interpreter or the platform; None for any other, which a solution may influence."""
    if isinstance(condition, ast.Constant) and isinstance(condition.value, str):
        try:
            condition = ast.parse(condition.value, mode="eval").body
        except (SyntaxError, ValueError):
            return None
    if isinstance(condition, ast.Constant):
        return bool(condition.value)
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        inner = _known(condition.operand)
        return None if inner is None else not inner
    if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
        return _compared(condition)
    if isinstance(condition, ast.Call) and ast.unparse(condition.func) == "sys.platform.startswith":
        return any(isinstance(arg, ast.Constant) and sys.platform.startswith(str(arg.value)) for arg in condition.args)
    return None


def _compared(node: ast.Compare) -> bool | None:
    fact, operator = _FACTS.get(ast.unparse(node.left)), type(node.ops[0])
    try:
        value = ast.literal_eval(node.comparators[0])
        if fact is None or type(fact) is not type(value):
            return None
        results = {ast.Lt: fact < value, ast.LtE: fact <= value, ast.Gt: fact > value, ast.GtE: fact >= value}
        return (results | {ast.Eq: fact == value, ast.NotEq: fact != value}).get(operator)
    except (ValueError, TypeError, SyntaxError):
        return None


def _pytestmark(node: ast.stmt) -> list[ast.expr]:
    if not isinstance(node, ast.Assign) or not any(_word(target) == "pytestmark" for target in node.targets):
        return []
    return list(node.value.elts) if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]


def _called(node: ast.expr) -> str:
    """The dotted name of a decorator, called or not."""
    return dotted(node.func if isinstance(node, ast.Call) else node)


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


_THREADS = re.compile(r"thread|concurrent|async|sleep|\.wait|Timer|\.join\(|queue|signal", re.IGNORECASE)
_CAPITALISED = re.compile(r"[A-Z][A-Za-z0-9]*")
_CHECKS = {"isinstance": 1, "issubclass": 0, "assertIsInstance": 1, "assertNotIsInstance": 1}
_CHECKS |= dict.fromkeys(("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns"), 0)
"""Functions that take classes, with the index of the first such argument."""
_OF_PLAIN = frozenset(
    name
    for kind in (int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
    for name in dir(kind)
)


@dataclass(frozen=True)
class Uses:
    """How one suite uses its solution."""

    classes: tuple[str, ...]
    """Classes whose instances it compares with plain data."""
    stars: tuple[str, ...]
    """Names that it reads and does not bind: a star import may define them."""
    words: tuple[str, ...]
    """Its words of `ambient.VOCABULARY`."""
    threads: bool
    """Whether it mentions threads, event loops or waiting."""


@lru_cache(256)
def uses_of(texts: tuple[str, ...]) -> Uses:
    """The uses of all files of a suite. Raises SyntaxError, ValueError for a text that is no Python."""
    trees = [ast.parse(text) for text in texts]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    bound = {name for node in nodes for name in bound_names(node)}
    words = {word for text in texts for word in WORD.findall(text)} & VOCABULARY
    threads = any(_THREADS.search(text) for text in texts)
    return Uses(tuple(_classes(nodes)), tuple(sorted(read - bound - set(dir(builtins)))), tuple(sorted(words)), threads)


def bound_names(node: ast.AST) -> Iterator[str]:
    """Names that a node binds by itself."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias) and node.name != "*":
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name


def _classes(nodes: Sequence[ast.AST]) -> list[str]:
    """Classes by the text's own use, whose instances it compares with plain data."""
    variables = dict(pair for node in nodes for pair in _given(node))
    variables |= dict(pair for node in nodes for pair in _drawn(node, variables))
    used = {name for node in nodes for name in _named(node)}
    used |= {_class_of(call) for node in nodes for call in _as_objects(node, variables)}
    against = {_class_of(call) for node in nodes for call in _compared_with_plain(node, variables)}
    imports = [alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    originals = {alias.asname: alias.name for alias in imports}
    return sorted({originals.get(name, name) for name in used & against})


def _given(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Variables and fixtures that get an instance, by name."""
    pairs: list[tuple[ast.AST | None, ast.AST | None]] = []
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs += zip(target.elts, node.value.elts)  # noqa: B905  of one length
            else:
                pairs.append((target, node.value))
    elif isinstance(node, ast.FunctionDef) and any("fixture" in ast.unparse(mark) for mark in node.decorator_list):
        local = dict(pair for part in ast.walk(node) if part is not node for pair in _given(part))
        parts = (part.value for part in ast.walk(node) if isinstance(part, (ast.Return, ast.Yield)))
        pairs = [(ast.Name(node.name), local.get(dotted(part), part)) for part in parts]
    for name, value in pairs:
        if (call := _construction(value, {}) or _built(value)) and dotted(name):
            yield dotted(name), call


def _built(value: ast.AST | None) -> ast.Call | None:
    """`Point()` for `st.builds(Point, ...)`, Hypothesis's strategy."""
    if isinstance(value, ast.Call) and _word(value.func) in ("builds", "from_type") and value.args:
        call = ast.Call(value.args[0], [], [])
        return call if _CAPITALISED.fullmatch(_word(value.args[0])) else None
    return None


def _drawn(node: ast.AST, variables: dict[str, ast.Call]) -> Iterator[tuple[str, ast.Call]]:
    """Arguments that `@given` draws, from strategies that are variables or built in place."""
    if not isinstance(node, ast.FunctionDef):
        return
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and _word(mark.func) == "given":
            names = [one.arg for one in node.args.args]
            pairs = [*zip(names[len(names) - len(mark.args) :], mark.args, strict=False)]
            pairs += [(keyword.arg or "", keyword.value) for keyword in mark.keywords]
            for name, value in pairs:
                if name and (call := _built(value) or variables.get(dotted(value))):
                    yield name, call


def _named(node: ast.AST) -> Iterator[str]:
    """Names that can only be a class in this place."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Call):
        places = node.args[_CHECKS.get(_word(node.func), len(node.args)) :]
    elif isinstance(node, ast.ClassDef):
        places = node.bases
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        places = [node.type]
    elif isinstance(node, ast.Attribute) and _CAPITALISED.fullmatch(_word(node.value)):
        places = [node.value]
    for place in places:
        for part in place.elts if isinstance(place, ast.Tuple) else [place]:
            yield from filter(None, [_word(part)])


def _as_objects(node: ast.AST, variables: dict[str, ast.Call]) -> Iterator[ast.Call]:
    """Calls of capitalised names whose results are used as no plain result is: by an attribute of their own, in a
    sum or an order with something else, as a container, compared with each other or with their own arguments."""
    if isinstance(node, ast.Attribute):
        call = _construction(node.value, variables)
        if call and node.attr not in _OF_PLAIN:
            yield call
    elif isinstance(node, (ast.BinOp, ast.Call)):
        yield from _operands(node, variables)
    elif isinstance(node, ast.Compare):
        calls = [(call, others, op) for call, others, op in _compared_to(node, variables) if call]
        names = [_class_of(call) for call, _, _ in calls]
        for call, others, op in calls:
            several = names.count(_class_of(call)) > 1
            if several or isinstance(op, (*_ORDERS, ast.In)) or any(_echoes(call, other) for other in others):
                yield call


def _compared_with_plain(node: ast.AST, variables: dict[str, ast.Call]) -> Iterator[ast.Call]:
    """Instances that are compared or counted with something that is no instance."""
    if isinstance(node, (ast.BinOp, ast.Call)):
        yield from _operands(node, variables)
    elif isinstance(node, ast.Compare):
        sides = [_construction(side, variables) for side in (node.left, *node.comparators)]
        if None in sides:
            yield from filter(None, sides)


def _operands(node: ast.AST, variables: dict[str, ast.Call]) -> Iterator[ast.Call]:
    """The operands of an operator, or of a function that applies an operator."""
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    if isinstance(node, ast.Call) and _word(node.func) in _COUNTING:
        parts = node.args
    yield from filter(None, (_construction(part, variables) for part in parts))


def _compared_to(
    node: ast.Compare, variables: dict[str, ast.Call]
) -> Iterator[tuple[ast.Call | None, list[ast.expr], ast.cmpop]]:
    """(instance, the other sides, operator before it) of each side."""
    sides = [node.left, *node.comparators]
    for at, side in enumerate(sides):
        operator = node.ops[at - 1] if at else node.ops[0] if isinstance(node.ops[0], _ORDERS) else ast.Eq()
        yield _construction(side, variables), sides[:at] + sides[at + 1 :], operator


_COUNTING = ("divmod", "pow", "sum", "max", "min")


def _class_of(call: ast.Call) -> str:
    """`Point(1, 2)`, `shapes.Point(1, 2)`, `Point.origin()`."""
    name = _word(call.func)
    if isinstance(call.func, ast.Attribute) and not _CAPITALISED.fullmatch(name):
        return _word(call.func.value)
    return name


def _echoes(call: ast.Call, other: ast.AST) -> bool:
    """`Money(5) == 5`, `Vector(1, 2) == (1, 2)`."""
    if not call.args or call.keywords:
        return False
    forms = [call.args[0]] if len(call.args) == 1 else []
    forms += [kind(list(call.args), ast.Load()) for kind in (ast.Tuple, ast.List)]
    return any(ast.dump(form) == ast.dump(other) for form in forms)


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _construction(node: ast.AST | None, variables: dict[str, ast.Call]) -> ast.Call | None:
    """The call of a capitalised name that an expression is, or that was assigned to a variable."""
    if isinstance(node, ast.Call):
        return node if _CAPITALISED.fullmatch(_class_of(node)) else None
    return variables.get(dotted(node)) if node is not None else None


def dotted(node: ast.AST | None) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
