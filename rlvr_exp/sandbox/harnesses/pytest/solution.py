"""The solution's process: it loads the solution, then serves the suite's process, until that is gone.

The suite's text is not here, and nothing here is trusted. Standard library only.
"""

import linecache
import os
import pickle
import sys
import types
from typing import Any

from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.harnesses.pytest.ambient import Ambient
from rlvr_exp.sandbox.harnesses.pytest.peer import Channel, Gone, Peer
from rlvr_exp.sandbox.harnesses.pytest.rules import Trusting
from rlvr_exp.sandbox.harnesses.pytest.texts import settle

NAME = "solution"
_OWN = frozenset((NAME, "__main__"))


def serve(payload: bytes, fd: int) -> None:
    """Called once in a fresh fork, next to the suite's. `payload`: solution, words of the suite's text."""
    job = wire.decode_native(payload)
    settle(os.getcwd(), importing=True)
    channel = Channel(fd)
    ambient = Ambient(1, job["words"])
    peer = Peer(channel, 1, Trusting(), ambient, _OWN)
    loader = _Loader(job["solution"], os.getcwd(), peer)
    peer.serves("load", loader.load)
    peer.serves("derive", lambda target, name, args, kwargs: peer.objects.number_of(_derived(name, *args, kwargs)))
    peer.serves("eval", lambda target, name, args, kwargs: eval(*args, *([] if args[1:] else [loader.names()])))
    peer.serves("unpickle", lambda target, name, args, kwargs: pickle.loads(*args))
    peer.serves("exec", lambda target, name, args, kwargs: _execute(*args))
    ambient.capture(peer)
    if job["threads"]:
        channel.watch()
    try:
        peer.serve()
    except Gone:
        return


class _Loader:
    """The solution's module. Its number is 1, the first number."""

    def __init__(self, text: str, folder: str, peer: Peer):
        self._text, self._path = text, os.path.join(folder, f"{NAME}.py")
        self._module = types.ModuleType(NAME)
        peer.objects.number_of(self._module)

    def names(self) -> dict[str, Any]:
        """Its namespace."""
        return vars(self._module)

    def load(self, *_: Any) -> list[str]:
        """Run the solution's text in its module, or rerun it. The names that it defines."""
        module = self._module
        module.__dict__["__file__"] = self._path
        sys.modules[NAME] = module
        lines = self._text.splitlines(keepends=True)
        linecache.cache[self._path] = (len(self._text), None, lines, self._path)
        exec(compile(self._text, self._path, "exec", dont_inherit=True), module.__dict__)
        listed = getattr(module, "__all__", None)
        names = vars(module) if listed is None else listed
        return [str.__str__(name) for name in names if isinstance(name, str) and (listed or not name.startswith("_"))]


def _execute(text: str, names: dict[str, Any] | None = None, local: dict[str, Any] | None = None) -> None:
    """The names that a text binds in its namespace, without those that `exec` adds."""
    space: dict[str, Any] = {**(names or {})}
    exec(text, space, local)
    space.pop("__builtins__", None)
    if names is not None:
        names.update(space)


def _derived(name: str, bases: list[Any], parts: list[Any], module: str, options: dict[str, Any]) -> type:
    """A class whose functions are the suite's."""
    names: dict[str, Any] = {"__module__": module}
    for key, kind, part in parts:
        names[key] = {"staticmethod": staticmethod, "classmethod": classmethod}.get(kind, lambda part: part)(part)
        if kind == "property":
            names[key] = property(*part)
    return types.new_class(name, tuple(bases), options, lambda space: space.update(names))
