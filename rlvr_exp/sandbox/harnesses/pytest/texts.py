"""A suite's syntax tree in its running form: assertions counted, texts evaluated in the solution's process.

A suite may evaluate or unpickle data of the solution. A text that is neither its own nor mere arithmetic is
evaluated in the solution's process, and nothing is unpickled but data.

Files that a problem adds to its suite (`Given`) are on disk for both processes, as modules from memory for the suite's.
Both processes work in one folder, and the solution may write to it; so the suite's process imports nothing from there.
Standard library only.
"""

import __future__

import ast
import builtins
import enum
import os
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from rlvr_exp.sandbox.harnesses.python.state_reset import fit_imports

ASSERTED = "@asserted"
"""A name in a test module that no program can spell."""
_HARMLESS = {
    "builtins": "list dict set frozenset tuple int float complex str bytes bytearray bool range slice object",
    "collections": "OrderedDict Counter deque defaultdict",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "uuid": "UUID",
    "copyreg": "_reconstructor __newobj__",
    "numpy": "ndarray dtype",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
}


class _Counting(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        self.generic_visit(node)
        counted = ast.Expr(ast.Call(ast.Name(ASSERTED, ast.Load()), [], []))
        return [node, ast.fix_missing_locations(ast.copy_location(counted, node))]


def transform(tree: ast.Module) -> None:
    """Let each assertion that holds call `ASSERTED`, in place."""
    _Counting().visit(tree)


def managed_assertions(suite: Mapping[str, str]) -> dict[str, list[tuple[int, int, list[int]]]]:
    """By path: first and last line of each `with` block, and the last lines of its assertions."""
    found: dict[str, list[tuple[int, int, list[int]]]] = {}
    for path, text in suite.items():
        blocks = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.With, ast.AsyncWith))]
        found[path] = [
            (block.lineno, block.end_lineno, [node.end_lineno for node in ast.walk(block) if _asserts(node)])
            for block in blocks
        ]
    return found


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("assert")


class Evaluating:
    """Replacements of `eval`, `exec` and `compile` for calls by the suite, under whatever name.

    Args:
        suite: its texts by their paths, whose constants are evaluated as usual.
        elsewhere: sends a request to the solution's process: ("eval" or "exec", text and namespaces).
    """

    def __init__(self, suite: Mapping[str, str], elsewhere: Callable[[str, tuple[Any, ...]], Any]):
        parts = (node for text in suite.values() for node in ast.walk(ast.parse(text)))
        self._own = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        self._paths, self._elsewhere = frozenset(suite), elsewhere

    def take_over(self) -> None:
        """Replace the three for the rest of this process."""
        for name in ("eval", "exec", "compile"):
            setattr(builtins, name, partial(self._do, name))

    def _do(self, name: str, text: Any, *args: Any, **options: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_code.co_filename in self._paths and not self._is_harmless(name, text):
            if name == "compile":  # decided where it is evaluated
                ast.parse(text)
                return text
            return self._elsewhere(name, (text, *args))
        if name == "compile":
            if len(args) < 4 and "dont_inherit" not in options:  # with the caller's own `from __future__` flags
                flags = (args[2] if len(args) > 2 else options.pop("flags", 0)) | (frame.f_code.co_flags & _FUTURES)
                args, options = args[:2], options | {"flags": flags, "dont_inherit": True}
        elif not args or args[0] is None:
            args = (frame.f_globals, frame.f_locals, *args[2:]) if not args[1:] else (frame.f_globals, *args[1:])
        return _REAL[name](text, *args, **options)

    def _is_harmless(self, name: str, text: Any) -> bool:
        if type(text) is not str:
            return name == "compile" and not isinstance(text, (bytes, bytearray))
        return text in self._own or (name == "eval" and _is_arithmetic(text))


_REAL = {"eval": eval, "exec": exec, "compile": compile}
_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def _is_arithmetic(text: Any) -> bool:
    """Whether it is constants and operators, without calls and lookups."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False
    return all(isinstance(node, _ARITHMETIC) for node in ast.walk(tree))


_ARITHMETIC = (ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp)
_ARITHMETIC += (ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)


def guard(folder: str, own: Iterable[str]) -> None:
    """Nothing that is unpickled in this process names more than data and classes of `own` files' modules, and no file
    of the shared folder but these is executed."""
    names = {name.removesuffix(".py").replace("/", ".") for name in own}
    folder = _real(folder)
    paths = {os.path.join(folder, name) for name in own}

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "pickle.find_class":
            module, name = args
            if not _unpickles(module, name, names):
                raise ValueError(f"{module}.{name} is not unpickled in the suite's process")
        elif event in ("marshal.load", "marshal.loads"):
            if not _reads_a_librarys_bytecode(sys._getframe(1), folder):
                raise ValueError("no code is read from bytes in the suite's process")
        elif event == "exec":
            name = getattr(args[0], "co_filename", "")
            path = _real(os.path.join(folder, name))
            is_text = name.startswith("<") and name.endswith(">") and not os.path.exists(path)
            if path.startswith(f"{folder}/") and path not in paths and not is_text:
                raise ValueError(f"{path} is not executed in the suite's process")

    sys.addaudithook(watch)
    # How newer Pythons pickle a member; 3.11.2 calls `getattr`, and so a pickle reaches everything.
    enum.Enum.__reduce_ex__ = lambda member, protocol: (member.__class__, (member._value_,))


def _real(path: str) -> str:
    """Two slashes at the beginning are one."""
    return "/" + os.path.realpath(path).lstrip("/")


def _unpickles(module: str, name: str, own: Iterable[str]) -> bool:
    """Of own modules their own classes, neither imported ones nor values."""
    if module == "solution":
        return not any(part.startswith("__") for part in name.split("."))
    if module in own:
        found: Any = sys.modules.get(module, object)
        for part in name.split("."):
            found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
            if not (isinstance(found, type) and found.__module__ == module):
                return False
        return True
    return name in _HARMLESS.get(module, "").split()


_READERS = {"_compile_bytecode": "bytecode_path", "_read_pyc": "pyc"}
"""Functions of the import system and of pytest that read compiled modules, with their names of the file."""


def _reads_a_librarys_bytecode(frame: types.FrameType, folder: str) -> bool:
    path = frame.f_locals.get(_READERS.get(frame.f_code.co_name, ""))
    ours = frame.f_code.co_filename.endswith(("<frozen importlib._bootstrap_external>", "_pytest/assertion/rewrite.py"))
    return ours and path is not None and not _real(str(path)).startswith(f"{folder}/")


def settle(folder: str, importing: bool) -> None:
    """Use the folder for temporary files, and for imports if wanted; with the settings that libraries need."""
    os.umask(0o022)
    if importing:
        sys.path.insert(0, folder)
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    # Hypothesis keeps its tables on disk, by default in the folder that the solution writes to.
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = "/dev/null/hypothesis"
    warnings.filterwarnings("ignore", message="(?s).*in-memory database")
    fit_imports()


def write_files(folder: str, files: Mapping[str, str]) -> None:
    """Write the files of a run, their names checked by the sender. Raises OSError."""
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)


class Given:
    """Finder and loader of modules from their text.

    Args:
        folder: it holds their files, too, for code that reads them as data.
        files: text by name, for all files.
        special: modules that are loaded by a function in place of a text.
    """

    def __init__(self, folder: str, files: Mapping[str, str], special: Mapping[str, Callable[[ModuleType], None]]):
        self._files = {
            name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): (f"{folder}/{name}", text)
            for name, text in files.items()
            if name.endswith(".py")
        }
        self._special = special

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name in self._special:
            return spec_from_loader(name, self)
        if name not in self._files:
            return None
        origin, _ = self._files[name]
        spec = spec_from_loader(name, self, origin=origin, is_package=origin.endswith("/__init__.py"))
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(origin.removesuffix("/__init__.py"))
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """The default module creation."""

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in self._special:
            self._special[module.__name__](module)
            return
        path, text = self._files[module.__name__]
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
