"""Files that a problem adds to its suite: on disk for both processes, as modules from memory for the suite's.

Both processes work in one folder, which the solution may write to; so the suite's process imports nothing from there.
Standard library only.
"""

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

from rlvr_exp.sandbox.harnesses.python.imports import fit_imports


def settle(folder: str, importing: bool) -> None:
    """Use the folder for temporary files, and for imports where wanted; with the settings that libraries need."""
    os.umask(0o022)
    if importing:
        sys.path.insert(0, folder)
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    # Hypothesis keeps what it draws from on disk, by default in the folder that the solution writes to.
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
        folder: where their files are, too, for code that reads them as data.
        files: text by name, for all files.
        special: modules that are loaded by a function in place of a text.
    """

    def __init__(self, folder: str, files: Mapping[str, str], special: Mapping[str, Callable[[ModuleType], None]]):
        self._files = {_module_name(name): (f"{folder}/{name}", text) for name, text in files.items() if _is_code(name)}
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


def _is_code(name: str) -> bool:
    return name.endswith(".py")


def _module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
