"""Python files that a problem gives beside its suite: imported from memory, the same for whoever asks first.

A solution may import them, but not put others in their place. Standard library only.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType


class Given:
    """Finder and loader of the given modules.

    Args:
        folder: where their files lie, too, for what reads them as data.
        files: name: text, of all given files.
        loaded: told of each module once it is there, after `trust` of its code.
    """

    def __init__(
        self, folder: str, files: dict[str, str], trust: Callable[[CodeType], None], loaded: Callable[[], None]
    ):
        self._files = {_module_name(name): (f"{folder}/{name}", text) for name, text in files.items() if _is_code(name)}
        self._trust, self._loaded = trust, loaded
        self._modules: dict[str, ModuleType] = {}

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name not in self._files:
            return None
        origin, _ = self._files[name]
        spec = spec_from_loader(name, self, origin=origin, is_package=origin.endswith("/__init__.py"))
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(origin.removesuffix("/__init__.py"))
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual."""

    def exec_module(self, module: ModuleType) -> None:
        path, text = self._files[module.__name__]
        code = compile(text, path, "exec", dont_inherit=True)
        self._trust(code)
        self._modules[module.__name__] = module
        exec(code, module.__dict__)
        self._loaded()

    def replaced(self) -> str | None:
        """A given module that is another by now."""
        for name in self._files:
            module = sys.modules.get(name)
            if module is not None and module is not self._modules.get(name):
                return name
        return None


def _is_code(name: str) -> bool:
    return name.endswith(".py")


def _module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
