"""The suite's view of the solution: a module whose attributes are requested over the bridge.

Owns the parts of the bridge that a suite's process needs besides mirrors. Standard library only.
"""

import importlib
import sys
import types
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from rlvr_exp.sandbox.harnesses.pytest import texts
from rlvr_exp.sandbox.harnesses.pytest.ambient import WORD, Ambient, Watched
from rlvr_exp.sandbox.harnesses.pytest.channel import Channel
from rlvr_exp.sandbox.harnesses.pytest.mirrors import ROOT, STATE, Mirror, State
from rlvr_exp.sandbox.harnesses.pytest.peer import Peer
from rlvr_exp.sandbox.harnesses.pytest.rules import Rules

_DEPTH = 3000
"""Frames that a suite may nest: alternating callbacks and calls take several each."""
_ALIASES = {"np": "numpy", "pd": "pandas"}


class Bridge:
    """The bridge's end in the suite's process."""

    def __init__(self, fd: int, job: dict[str, Any]):
        own = frozenset(name.removesuffix(".py") for name in job["tests"])
        self.rules = Rules(job["classes"], job["sites"], job["recording"], own)
        channel, self._job = Channel(fd), job
        ambient = Ambient(0, job["words"], self.rules.changes)
        self._peer = Peer(channel, 0, self.rules, ambient, own)
        self.rules.handed = self._peer.objects.handed
        self._root = Mirror()
        object.__setattr__(self._root, STATE, State(self._peer, 1, ROOT))
        self._module: _Solution | None = None
        self._own = own
        if job["threads"]:
            channel.watch()
        self._ambient = ambient
        sys.setrecursionlimit(_DEPTH)

    def load(self, path: str) -> types.ModuleType:
        """The solution's module. Raises what loading the solution raises."""
        for name in self._job["imports"]:
            _try_import(name)
        if self._job["patches"]:
            words = frozenset(word for text in self._job["tests"].values() for word in WORD.findall(text))
            self._ambient.watched = Watched(words, self._own)
        shown = self._peer.request("load")
        folder = path.rpartition("/")[0]
        suite = {f"{folder}/{name}": text for name, text in self._job["tests"].items()}
        self.rules.managed = texts.managed_assertions(suite)
        texts.Evaluating(suite, self._elsewhere).take_over()
        self._module = _Solution(self._peer, self._root, path, self._bound_by_star(shown))
        self._peer.unpickled = self._module.__dict__["_unpickled"]
        return self._module

    def reload(self) -> None:
        """Load the solution afresh. Raises the same."""
        self._peer.request("load")

    def _bound_by_star(self, shown: Iterable[Any]) -> list[str]:
        """The names of the solution that the suite's text reads and gets from nowhere else."""
        stars = set(self._job["stars"])
        return [name for name in dict.fromkeys(shown) if name in stars and not self._is_module(name)]

    @cached_property
    def names(self) -> dict[str, Any]:
        """Names of a test module besides its own."""
        names = {}
        for name in filter(self._is_module, self._job["stars"]):
            _try_import(_ALIASES.get(name, name))
            names[name] = sys.modules.get(_ALIASES.get(name, name))
        return names

    def _elsewhere(self, what: str, args: tuple[Any, ...]) -> Any:
        place = self.rules.place(None, what)
        return self.rules.believed(place, self._peer.request(what, "", None, args))

    def _is_module(self, name: str) -> bool:
        return name in _ALIASES or name in sys.stdlib_module_names


class _Solution(types.ModuleType):
    """`solution`, in the suite's process."""

    def __init__(self, peer: Peer, root: Mirror, path: str, shown: list[str]):
        super().__init__("solution")

        def _unpickled(data: bytes) -> Any:
            return peer.request("unpickle", "", None, (data,))

        _unpickled.__module__, _unpickled.__qualname__ = "solution", "_unpickled"
        self.__dict__.update({"@": (peer, root), "__file__": path, "__all__": shown, "_unpickled": _unpickled})

    def __getattr__(self, name: str) -> Any:
        if name in ("__path__", "__wrapped__"):
            raise AttributeError(name)
        peer, root = self.__dict__["@"]
        return peer.get(root, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("__spec__", "__loader__"):
            self.__dict__[name] = value
            return
        peer, root = self.__dict__["@"]
        peer.set(root, name, value)

    def __delattr__(self, name: str) -> None:
        peer, root = self.__dict__["@"]
        peer.delete(root, name)

    def __dir__(self) -> list[str]:
        peer, root = self.__dict__["@"]
        return peer.names(root)


def _try_import(name: str) -> None:
    """Import a module in advance; where that fails, the suite's own import will fail."""
    try:
        importlib.import_module(name)
    except BaseException:  # Some modules end the interpreter that imports them.
        return
