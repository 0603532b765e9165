"""A set's own tests as a pytest file. This file decides the names that the tests take from the solution; it never
changes a test.

The sets' tests are programs that run in one namespace with the solution. In a pytest file each becomes a test function
whose top-level names stay global, so that it means the same. From `solution` it takes, by name, only definitions of the
gold solution that the tests use. Everything that the tests can have without the solution (modules, helpers that the
task itself gives) comes from elsewhere, and no other definition of the solution can reach them: a wildcard import would
admit its own `pytestmark`, `test_...` or `sum`.
"""

import ast
import builtins
import re
import symtable
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rlvr_exp.tasks.completion import unified
from rlvr_exp.tasks.python_syntax import tree

_BUILTIN = frozenset(dir(builtins))
_MULTILINE = re.compile(r"\"\"\"|'''|\\\n")


@dataclass(frozen=True)
class _Names:
    """Global names of a module: names it reads, and names it binds."""

    read: frozenset[str]
    bound: frozenset[str]


def test_file(programs: Sequence[str], gold: str, head: str = "", entry_point: str = "") -> str:
    """A pytest file with one test for each program; all of them see `head`, the task's own code.

    Args:
        programs: Python texts, each run as the body of one test.
        gold: the solution; the tests may take its definitions from a candidate.
        entry_point: a name taken from the candidate in any case.

    Raises:
        SyntaxError: a text is no Python.
    """
    programs = [unified(program) for program in programs]
    used = _names("\n".join([head, *programs]))
    source = _Gold(unified(gold))
    wanted = {name for name in source.bound & used.read if name not in used.bound} | {entry_point} - {""}
    late = {name for name in wanted if name in source.rebound or name.lower().startswith("test")}
    parts = [source.imports_for(used.read - used.bound - source.defined), _import(wanted - late), head.strip("\n")]
    if late:
        parts.insert(0, "import solution")
        programs = [_late(program, late) for program in programs]  # A name test_... here would be a test itself.
    single = len(programs) == 1
    parts += [_function("test_program" if single else f"test_{n}", text) for n, text in enumerate(programs, 1)]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def suite_of(tests: str | Sequence[str], gold: str = "", entry_point: str = "") -> str:
    """Tests as people write them, as a pytest file: a pytest file, a program of asserts, or a list of programs.

    A pytest file that imports from `solution` stays as it is. All other tests take from it the names that they use and
    that neither they nor Python define; with a gold, only names that the gold defines.

    Raises:
        SyntaxError: a text is no Python.
    """
    programs = [tests] if isinstance(tests, str) else list(tests)
    missing = undefined(programs) | {entry_point} - {""}
    if not (isinstance(tests, str) and _has_tests(tests)):
        stubs = "\n".join(f"def {name}(): ..." for name in sorted(missing))
        return test_file(programs, gold or stubs, entry_point=entry_point)
    if _imports_solution(tests):
        return tests
    return "\n\n\n".join(filter(None, [_import(missing & _Gold(gold).bound if gold else missing), tests]))


def undefined(programs: Sequence[str]) -> frozenset[str]:
    """Names that programs use and neither they nor Python define. Raises SyntaxError."""
    used = _names(unified("\n".join(programs)))
    return used.read - used.bound - _BUILTIN


def _has_tests(text: str) -> bool:
    """Whether pytest finds a test in a file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, kinds) and node.name.lower().startswith("test") for node in tree(unified(text)).body)


def _imports_solution(text: str) -> bool:
    for node in ast.walk(tree(unified(text))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if "solution" in names or (isinstance(node, ast.ImportFrom) and node.module == "solution"):
            return True
    return False


def without(text: str, name: str) -> str:
    """A module's text without its top-level definition of a name."""
    kept = [node for node in tree(text).body if getattr(node, "name", None) != name]
    return "\n\n".join(ast.unparse(node) for node in kept)


class _Gold:
    """The names that a solution binds at top level, by how it does."""

    def __init__(self, text: str):
        self._module = tree(text)
        self.bound = _names(text).bound
        self._imports = [node for node in ast.walk(self._module) if isinstance(node, ast.Import | ast.ImportFrom)]
        imported = {_bound_by(alias) for node in self._imports for alias in node.names}
        self.defined = self.bound - imported
        self.bound = self.defined
        declared = {name for node in ast.walk(self._module) if isinstance(node, ast.Global) for name in node.names}
        self.rebound = self.defined & declared
        """Variables that its functions reassign: a copied name would keep their first value."""

    def imports_for(self, names: Iterable[str]) -> str:
        """Import statements of the solution that bind these names: the tests' own copy of the same modules."""
        wanted, lines = set(names), []
        for node in self._imports:
            aliases = [alias for alias in node.names if _bound_by(alias) in wanted or alias.name == "*"]
            if aliases and getattr(node, "level", 0) == 0:
                statement = (
                    ast.Import(aliases) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, aliases, 0)
                )
                lines.append(ast.unparse(statement))
        return "\n".join(dict.fromkeys(lines))


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _names(text: str) -> _Names:
    top = symtable.symtable(text, "tests", "exec")
    read = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    waiting = list(top.get_children())
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        globals_ = [symbol for symbol in scope.get_symbols() if symbol.is_global()]
        read |= {symbol.get_name() for symbol in globals_ if symbol.is_referenced()}
        bound |= {symbol.get_name() for symbol in globals_ if symbol.is_assigned()}
    return _Names(frozenset(read), frozenset(bound))


def _import(names: Iterable[str]) -> str:
    return f"from solution import {', '.join(sorted(names))}" if names else ""


def _late(program: str, names: set[str]) -> str:
    """The program with these names looked up in the solution each time they are read."""

    class Lookup(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id not in names or not isinstance(node.ctx, ast.Load):
                return node
            return ast.Attribute(ast.Name("solution", ast.Load()), node.id, ast.Load())

    return ast.unparse(Lookup().visit(tree(program)))


def _function(name: str, program: str) -> str:
    """A test function that runs a program as module code: names that it binds at top level are global."""
    body = tree(program).body
    hoisted = [node for node in body if isinstance(node, ast.ImportFrom) and _only_at_top(node)]
    if hoisted:
        kept = ast.Module([node for node in body if node not in hoisted], [])
        program = ast.unparse(kept)
    elif _MULTILINE.search(program):
        program = ast.unparse(tree(program))  # Indenting the text would indent the inside of its strings.
    bound = sorted(_names(program).bound)
    lines = [f"global {', '.join(bound)}"] if bound else []
    head = [ast.unparse(node) for node in hoisted]
    text = "\n".join([*lines, program.strip("\n")])
    return "\n\n\n".join([*head, f"def {name}():\n{textwrap.indent(text, '    ')}"])


def _only_at_top(node: ast.ImportFrom) -> bool:
    return node.module == "__future__" or node.names[0].name == "*"
