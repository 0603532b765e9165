"""The languages that ast-grep 0.51 knows, every spelling of their names, and the file ending of each.

Spellings are matched without regard to case, as ast-grep does. Parsers that a project file would load from a shared
library are not languages here.
"""

from rlvr_exp.tasks.edits.reading import unknown

_SPELLINGS = {
    "bash": "bash",
    "c": "c",
    "cpp": "cc c++ cpp cxx",
    "csharp": "cs csharp",
    "css": "css",
    "dart": "dart",
    "elixir": "ex elixir",
    "go": "go golang",
    "haskell": "hs haskell",
    "hcl": "hcl",
    "html": "html",
    "java": "java",
    "javascript": "javascript js jsx",
    "json": "json",
    "kotlin": "kotlin kt",
    "lua": "lua",
    "markdown": "md markdown",
    "nix": "nix",
    "php": "php",
    "python": "py python",
    "ruby": "rb ruby",
    "rust": "rs rust",
    "scala": "scala",
    "solidity": "sol solidity",
    "swift": "swift",
    "typescript": "ts typescript",
    "tsx": "tsx",
    "yaml": "yaml yml",
    "zig": "zig",
}
LANGUAGES = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()}
"""Canonical name by spelling, in lower case."""
ENDINGS = {name: name for name in _SPELLINGS} | {
    "bash": "sh",
    "csharp": "cs",
    "elixir": "ex",
    "haskell": "hs",
    "javascript": "js",
    "kotlin": "kt",
    "markdown": "md",
    "python": "py",
    "ruby": "rb",
    "rust": "rs",
    "solidity": "sol",
    "typescript": "ts",
}
"""File ending by canonical name."""


def language_of(spelling: str) -> str:
    """The canonical name. Raises ActionFault (`resolve`) with the nearest name."""
    name = LANGUAGES.get(spelling.strip().lower())
    if name is None:
        raise unknown("language", spelling, LANGUAGES, "resolve")
    return name
