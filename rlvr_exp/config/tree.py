"""A configuration before it is typed: nested dicts, with the origin of every leaf; and the folder of its YAML files."""

from dataclasses import dataclass, field
from pathlib import Path as Folder
from typing import Any

from rlvr_exp.core.secrets import masked

PACKAGE = Folder(__file__).resolve().parents[1]


def conf_directory() -> Folder:
    """The absolute folder of the config groups.

    Raises:
        FileNotFoundError: neither place exists; the installation is broken.
    """
    installed, checkout = PACKAGE / "conf", PACKAGE.parent / "conf"
    for folder in (installed, checkout):
        if (folder / "config.yaml").is_file():
            return folder
    raise FileNotFoundError(f"no config.yaml in {installed} or {checkout}; reinstall rlvr_exp")


Path = tuple[str, ...]


def dotted(path: Path) -> str:
    return ".".join(path)


@dataclass
class Tree:
    """The values of the YAML files and the command line. A leaf's origin is a file or a word of the command line."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)

    def merge(self, values: dict[str, Any], origin: str, at: Path = ()) -> None:
        """Merge nested values; lists and leaves are replaced."""
        for key, value in values.items():
            self.put((*at, str(key)), value, origin)

    def put(self, path: Path, value: Any, origin: str) -> None:
        """Set a leaf or merge a dict, creating the nodes on the way.

        Raises:
            KeyError: a part of the way is no node; its argument is the dotted path of that part.
        """
        parent = self._parent(path)
        if isinstance(value, dict) and isinstance(parent.get(path[-1], {}), dict):
            parent.setdefault(path[-1], {})
            self.merge(value, origin, path)
            return
        self._forget(path)
        parent[path[-1]] = value
        self.origins[path] = origin

    def get(self, path: Path) -> Any:
        """The value at a path. Raises KeyError."""
        node: Any = self.values
        for part in path:
            if not isinstance(node, dict):
                raise KeyError(dotted(path))
            node = node[part]
        return node

    def remove(self, path: Path) -> None:
        """Raises KeyError when nothing is there."""
        self.get(path)
        del self._parent(path)[path[-1]]
        self._forget(path)

    def origin(self, path: Path) -> str:
        """The origin of a value, or of the list or node around it; empty: the schema's default."""
        while path:
            if path in self.origins:
                return self.origins[path]
            path = path[:-1]
        return ""

    def shown(self, path: Path, value: Any = None) -> str:
        """A value and its origin, for a message."""
        try:
            value = self.get(path) if value is None else value
        except KeyError:
            return self.origin(path)
        origin, text = self.origin(path), masked(repr(value))
        return f"{text} ({origin})" if origin else text

    def _parent(self, path: Path) -> dict[str, Any]:
        node = self.values
        for depth, part in enumerate(path[:-1]):
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise KeyError(dotted(path[: depth + 1]))
        return node

    def _forget(self, path: Path) -> None:
        for known in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[known]
