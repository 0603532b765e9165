"""Attributes of libraries that a suite patches: a patch in its own process is applied in the solution's, too.

Only attributes that the suite's text names can be patched by it: they are compared with their values before it ran.
Standard library only.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

_NOT = {("sys", "stdout"), ("sys", "stderr"), ("sys", "modules"), ("sys", "path"), ("os", "environ")}
_OURS = ("pytest", "_pytest", "unittest", "hypothesis", "solution", "typing", "collections", "rlvr_exp", "__main__")


class Watched:
    """In the suite's process.

    Args:
        words: words of the suite's text.
        own: modules of the suite itself.
    """

    def __init__(self, words: frozenset[str], own: Iterable[str]):
        self._attributes: list[tuple[Any, list[str], Any]] = []
        self._patched: dict[int, Any] = {}
        skipped = {*_OURS, *own}
        for name, module in list(sys.modules.items()):
            parts = name.split(".")
            if parts[0] not in skipped and words.issuperset(parts):
                self._watch(module, name, "", words)

    def _watch(self, owner: Any, module: str, path: str, words: frozenset[str]) -> None:
        for name in words & vars(owner).keys():
            part = vars(owner)[name]
            if (module, name) not in _NOT:
                self._attributes.append((owner, [module, path, name], part))
            if not path and isinstance(part, type) and part.__module__.partition(".")[0] == module.partition(".")[0]:
                self._watch(part, module, name, words)

    def news(self, peer: Any) -> list[Any]:
        """["patch", module, class, name, value] of each changed attribute, without the value where it is restored."""
        items = []
        for at, (owner, named, original) in enumerate(self._attributes):
            now = vars(owner).get(named[2])
            if now is not self._patched.get(at, original):
                self._patched[at] = now
                items.append(["patch", *named, *([] if now is original else [peer.values.code(now)])])
        return items


class Patched:
    """In the solution's process."""

    def __init__(self) -> None:
        self._originals: dict[tuple[str, str, str], Any] = {}

    def patch(self, peer: Any, module: str, path: str, name: str, *value: Any) -> None:
        """Replace an attribute's value; without a value, restore the original."""
        owner = getattr(import_module(module), path) if path else import_module(module)
        original = self._originals.setdefault((module, path, name), vars(owner).get(name))
        setattr(owner, name, peer.values.value(value[0]) if value else original)
