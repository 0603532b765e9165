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
import re
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from rlvr_exp.sandbox.harnesses.python.state_reset import fit_imports

ASSERTED, CAUGHT, ENDED = "@asserted", "@caught", "@ended"
"""Names in a test module that no program can spell."""
CATCHING = {"raises": 0, "assertRaises": 0, "assertRaisesRegex": 0, "suppress": 0, "RaisesExc": 0, "RaisesGroup": 0}
CATCHING |= {"isinstance": 1, "issubclass": 1}
"""Functions that take a class of exceptions, and the place of it among the arguments."""
_BASES_OF = {"__mro__", "mro", "__bases__", "__base__"}
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


class _Watching(ast.NodeTransformer):
    """
    Args:
        bound: names that the text binds itself.
        renamed: other names of functions in `CATCHING`.
        watched: keys of functions that tell their end.
    """

    def __init__(self, bound: set[str], renamed: Mapping[str, str], watched: Set[str]):
        self._bound, self._renamed, self._watched = bound, renamed, watched

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        self.generic_visit(node)
        return [node, _placed(ast.Expr(_call(ASSERTED)), node)]

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        self.generic_visit(node)
        if node.type is not None:
            node.type = self._caught(node.type)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        at = CATCHING.get(self._renamed.get(name, name))
        if at is not None and len(node.args) > at and not isinstance(node.args[at], ast.Starred):
            node.args[at] = self._caught(node.args[at])
        for keyword in node.keywords:
            if at is not None and keyword.arg in ("expected_exception", "exception"):
                keyword.value = self._caught(keyword.value)
        return node

    def _caught(self, kind: ast.expr) -> ast.expr:
        return _placed(_call(CAUGHT, kind, ast.Constant(self._origin(kind))), kind)

    def _origin(self, kind: ast.expr) -> str:
        """`own`: the text itself names a class of the interpreter; `bases`: it takes one from among a class's bases."""
        parts = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        if all(
            isinstance(part, ast.Name) and part.id not in self._bound and hasattr(builtins, part.id) for part in parts
        ):
            return "own"
        below = ast.walk(kind)
        return "bases" if any(isinstance(node, ast.Attribute) and node.attr in _BASES_OF for node in below) else ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        key = key_of_node(node)
        self.generic_visit(node)
        if key in self._watched:
            _Ending(ast.Constant(key)).function(node)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self.generic_visit(node)
        if (key := key_of_node(node)) in self._watched:
            node.body = _placed(_call(ENDED, ast.Constant(key), node.body), node.body)
        return node


class _Ending(ast.NodeTransformer):
    """Let a function call `ENDED` where it ends, with its key."""

    def __init__(self, key: ast.Constant):
        self._key = key

    def function(self, node: ast.FunctionDef) -> None:
        node.body = [part for own in node.body for part in _listed(self.visit(own))]
        last = node.body[-1]
        if not isinstance(last, (ast.Return, ast.Raise)):
            node.body.append(_placed(ast.Expr(_call(ENDED, self._key)), last))

    def visit_Return(self, node: ast.Return) -> ast.Return:
        node.value = _placed(_call(ENDED, self._key, *([node.value] if node.value else [])), node)
        return node

    def _inner(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _inner


def _listed(node: Any) -> list[ast.stmt]:
    return node if isinstance(node, list) else [node]


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [*args], [])


def _placed(node: Any, where: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, where))


def key_of(name: str, line: int) -> str:
    """The key of a function of a file for `ENDED`; its first line is that of its first decorator."""
    return f"{line} {name}"


def key_of_node(node: Any) -> str:
    """The same of its node."""
    if isinstance(node, ast.Lambda):
        return key_of("<lambda>", node.lineno)
    return key_of(node.name, min([node.lineno, *(mark.lineno for mark in node.decorator_list)]))


def transform(tree: ast.Module, watched: Set[str]) -> None:
    """In place: each assertion that holds calls `ASSERTED`; each class of exceptions that the text catches goes through
    `CAUGHT`; each function with one of these keys calls `ENDED` where it ends."""
    nodes = [*ast.walk(tree)]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    aliases = [alias for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
    bound |= {alias.asname or alias.name for alias in aliases}
    _Watching(bound, {alias.asname: alias.name for alias in aliases if alias.asname}, watched).visit(tree)


class Evaluating:
    """Replacements of `eval`, `exec` and `compile`: for calls by the suite, under whatever name, and by libraries that evaluate
    a text which they are given, such as an annotation of the solution's.

    Args:
        paths: of the suite's files.
        own: texts of the suite, which are evaluated as usual.
        received: lines of texts of the solution that could be code.
        elsewhere: sends a request to the solution's process: ("eval" or "exec", text and namespaces).
    """

    def __init__(
        self,
        paths: Iterable[str],
        own: Set[str],
        received: Iterable[str],
        elsewhere: Callable[[str, tuple[Any, ...]], Any],
    ):
        self._paths, self._own, self._received, self._elsewhere = frozenset(paths), own, received, elsewhere

    def take_over(self) -> None:
        """Replace the three for the rest of this process."""
        for name in ("eval", "exec", "compile"):
            setattr(builtins, name, partial(self._do, name))

    def _do(self, name: str, text: Any, *args: Any, **options: Any) -> Any:
        frame = sys._getframe(1)
        path = frame.f_code.co_filename
        if path in self._paths and not self._is_harmless(name, text):
            if name == "compile":  # decided where it is evaluated
                ast.parse(text)
                return text
            return self._elsewhere(name, (text, *args))
        flags = options.get("flags", args[2] if name == "compile" and len(args) > 2 else 0)
        if path not in self._paths and not flags & ast.PyCF_ONLY_AST:  # a tree alone does nothing
            self._check(path, text, frame)
        if name == "compile":
            if len(args) < 4 and "dont_inherit" not in options:  # with the caller's own `from __future__` flags
                flags = (args[2] if len(args) > 2 else options.pop("flags", 0)) | (frame.f_code.co_flags & _FUTURES)
                args, options = args[:2], options | {"flags": flags, "dont_inherit": True}
        elif not args or args[0] is None:
            args = (frame.f_globals, frame.f_locals, *args[2:]) if not args[1:] else (frame.f_globals, *args[1:])
        return _REAL[name](text, *args, **options)

    def _check(self, path: str, text: Any, frame: types.FrameType) -> None:
        """Raises NameError if a library would evaluate a text of the solution that is not harmless."""
        if isinstance(text, types.CodeType) or (isinstance(text, str) and text in self._own):
            return
        library = path.rpartition("/")[2]
        if library == "sympy_parser.py":
            names = {**frame.f_locals.get("global_dict", {}), **frame.f_locals.get("local_dict", {})}
            harmless = text == "from sympy import *" or _is_of_sympy(text, names)
        elif "/jinja2/" in path:
            harmless = not _PRIVATE.search(str(text))
        elif library in _ANNOTATING and _consists_of(text, _ANNOTATION):
            harmless = True
        else:
            source = text.decode("latin-1") if isinstance(text, (bytes, bytearray)) else text
            source = source if isinstance(source, str) else ""
            harmless = not any(line in source for line in self._received)
        if not harmless:
            raise NameError(f"{library} does not evaluate a text of the solution in the suite's process")

    def _is_harmless(self, name: str, text: Any) -> bool:
        if type(text) is not str:
            return name == "compile" and not isinstance(text, (bytes, bytearray))
        return text in self._own or (name == "eval" and _consists_of(text, _ARITHMETIC))


_ANNOTATING = ("typing.py", "inspect.py", "annotationlib.py")
"""Libraries' files that evaluate annotations."""
_PRIVATE = re.compile(r"['\"]_")
"""In the code of a template of Jinja: the name of a private attribute, which leads to everything."""
_SYMPY = "core functions simplify solvers series integrals concrete matrices polys ntheory sets logic calculus".split()


def _is_of_sympy(text: Any, names: Mapping[str, Any]) -> bool:
    """Whether it calls nothing but SymPy's mathematics."""
    try:
        tree = text if isinstance(text, ast.AST) else ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False
    nodes = [*ast.walk(tree)]
    used = [names.get(node.id) for node in nodes if isinstance(node, ast.Name)]
    modules = [getattr(one, "__module__", None) or type(one).__module__ for one in used]
    mathematics = all(str(module).split(".")[:2] in [["sympy", part] for part in _SYMPY] for module in modules)
    public = not any(node.attr.startswith("_") for node in nodes if isinstance(node, ast.Attribute))
    return mathematics and public and _consists_of(tree, (*_ARITHMETIC, *_ANNOTATION, ast.Call, ast.keyword))


_REAL = {"eval": eval, "exec": exec, "compile": compile}
_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def _consists_of(text: Any, kinds: tuple[type, ...]) -> bool:
    """Whether an expression, or its text, has no other nodes than these."""
    try:
        tree = text if isinstance(text, ast.AST) else ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False
    return all(isinstance(node, kinds) for node in ast.walk(tree))


_ARITHMETIC = (ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.BoolOp)
_ARITHMETIC += (ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_ANNOTATION = (ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Starred)
_ANNOTATION += (ast.BinOp, ast.UnaryOp, ast.Slice, ast.operator, ast.unaryop, ast.expr_context)


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
            is_text = name.startswith("<") and not os.path.exists(path)
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


def repeat_examples() -> None:
    """Let Hypothesis draw the same examples in each run of a suite, unless its own settings say otherwise."""
    try:
        hypothesis = import_module("hypothesis")
    except ImportError:  # the suite's own import fails, too
        return
    hypothesis.settings.register_profile("repeated", derandomize=True, database=None)
    hypothesis.settings.load_profile("repeated")


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
