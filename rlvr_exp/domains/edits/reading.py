"""Parses hostile text into plain data: JSON, or a stream of YAML documents as ast-grep reads it (YAML 1.2 scalars, no
merging). `ActionFault` is the one error of all readers of actions.

Bounds what a text may cost before anything is built: its size, the depth and the number of its values, aliases
expanded. Nothing is constructed but None, bool, int, float, str, list and dict; a tag for any other type is a cheat.
The YAML events come from libyaml where PyYAML has it; events need no recursion.

`LANGUAGES` are those that ast-grep 0.51 knows, by every spelling of their names. Spellings are matched without regard to case,
as ast-grep does. Parsers that a project file would load from a shared library are not languages here.
"""

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import yaml

Kind = Literal["parse", "resolve", "rejected"]


class ActionFault(ValueError):
    """`parse`: not an action; `resolve`: an action that names what does not exist; `rejected`: an action that reaches
    for what no edit needs (files, programs, tags), with `rule`, the guard's name."""

    def __init__(self, message: str, kind: Kind = "parse", rule: str | None = None):
        super().__init__(message)
        self.kind, self.rule = kind, rule


def cheat(rule: str, message: str) -> ActionFault:
    return ActionFault(message, "rejected", rule)


def short(value: object) -> str:
    """A value from a hostile text, for a message."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def unknown(what: str, got: str, known: Iterable[str], kind: Kind = "parse") -> ActionFault:
    """The fault of an unknown name, with the nearest known name."""
    names = sorted(known)
    near = difflib.get_close_matches(got[:40], names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    return ActionFault(f"{what}: unknown {short(got)}; {hint}", kind)


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


MAX_CHARS = 64_000
"""Longest action; the longest rule of the public collections is a tenth of it."""
MAX_DEPTH = 48
"""Deepest nesting; ast-grep's own parser stops at 128, and its matcher recurses."""
MAX_VALUES = 5_000

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_PLAIN_TAGS = {"!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,20}|[0-9]{1,20}(?:\.[0-9]{0,20})?)(?:[eE][-+]?[0-9]{1,3})?\Z")
_BASED = re.compile(r"0(?:o[0-7]{1,20}|x[0-9a-fA-F]{1,15})\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class NotJson(ActionFault):
    """The text is not JSON at all; it may be YAML."""


def read_json(text: str) -> Any:
    """One JSON value. Raises ActionFault, or NotJson where the text is no JSON."""
    _check_text(text)
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_refuse_constant)
    except ActionFault:
        raise
    except json.JSONDecodeError as fault:
        raise NotJson(f"not JSON: {fault}"[:200]) from fault
    except (ValueError, RecursionError) as fault:  # too many digits, or too deep
        raise ActionFault(f"not readable: {fault}"[:200]) from fault
    check_value(value)
    return value


def read_yaml(text: str) -> list[Any]:
    """Every document of the stream; empty documents are left out. Raises ActionFault."""
    _check_text(text)
    loader = _LOADER(text)
    try:
        documents = _Builder(loader).documents()
    except yaml.YAMLError as fault:
        raise ActionFault(f"not YAML: {' '.join(str(fault).split())[:200]}") from fault
    finally:
        loader.dispose()
    for document in documents:
        check_value(document)
    return [document for document in documents if document is not None]


def check_value(value: Any) -> None:
    """Plain data within the bounds, its strings free of control characters. Raises ActionFault."""
    left, ahead = MAX_VALUES, [(value, 0)]
    while ahead:
        item, depth = ahead.pop()
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            raise ActionFault(f"more than {MAX_VALUES} values" if left < 0 else f"nested deeper than {MAX_DEPTH}")
        if isinstance(item, str):
            _check_string(item)
        elif isinstance(item, dict):
            ahead += [(part, depth + 1) for pair in item.items() for part in pair]
        elif isinstance(item, list):
            ahead += [(part, depth + 1) for part in item]
        elif isinstance(item, float) and not math.isfinite(item):
            raise ActionFault("a number that is not finite")


def _check_text(text: str) -> None:
    if len(text) > MAX_CHARS:
        raise ActionFault(f"the action has {len(text)} characters, allowed {MAX_CHARS}")
    _check_string(text)


def _check_string(text: str) -> None:
    found = _CONTROL.search(text)
    if found:
        raise ActionFault(f"control character U+{ord(found.group()):04X} in the action")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ActionFault(f"duplicate key {short(twice)}")
    return built


def _refuse_constant(name: str) -> Any:
    raise ActionFault(f"{name} is not a value of JSON")


class _Builder:
    """Documents from a stream of events."""

    def __init__(self, loader: Any):
        self._loader = loader
        self._anchors: dict[str, tuple[Any, int] | None] = {}  # None: begun, not ended
        self._values = 0

    def documents(self) -> list[Any]:
        found = []
        for event in self._events():
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                found.append(self._node(self._loader.get_event(), 0))
        return found

    def _events(self) -> Iterator[yaml.Event]:
        while self._loader.check_event():
            yield self._loader.get_event()

    def _node(self, event: yaml.Event, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor)
        if depth > MAX_DEPTH:
            raise ActionFault(f"nested deeper than {MAX_DEPTH}")
        _check_tag(event.tag)
        self._count(1)
        before = self._values
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(depth)
        else:
            value = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._values - before + 1)
        return value

    def _alias(self, anchor: str) -> Any:
        if anchor not in self._anchors:
            raise ActionFault(f"the alias {short('*' + anchor)} refers to nothing; quote text that begins with *")
        known = self._anchors[anchor]
        if known is None:
            raise cheat("yaml-bomb", f"the alias {short('*' + anchor)} refers to what it is a part of")
        value, size = known
        self._count(size, aliased=True)
        return value

    def _count(self, values: int, aliased: bool = False) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            message = f"more than {MAX_VALUES} values"
            raise cheat("yaml-bomb", f"{message}, aliases expanded") if aliased else ActionFault(message)

    def _sequence(self, depth: int) -> list[Any]:
        built = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            built.append(self._node(event, depth + 1))
        return built

    def _mapping(self, depth: int) -> dict[str, Any]:
        built: dict[str, Any] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            is_text = isinstance(event, yaml.ScalarEvent)
            key = self._node(event, depth + 1)
            if not is_text or event.value in built:
                raise ActionFault(f"duplicate key {short(event.value)}" if is_text else f"{short(key)} is not a key")
            built[event.value] = self._node(self._loader.get_event(), depth + 1)
        return built


def _check_tag(tag: str | None) -> None:
    if tag is None or tag in _PLAIN_TAGS:
        return
    if tag.startswith("!") and "/" not in tag:
        raise ActionFault(f"{short(tag)} is read as a tag; quote text that begins with !")
    raise cheat("yaml-tag", f"the tag {short(tag)} has no place in a rule")


def _scalar(event: yaml.ScalarEvent) -> Any:
    """YAML 1.2's core schema: `yes`, `on` and `1_000` are strings."""
    text = event.value
    if event.style or event.tag is not None:
        return text
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.match(text) or _BASED.match(text):
        return int(text, 0)
    return float(text) if _FLOAT.match(text) else text
