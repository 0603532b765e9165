"""Hostile text to plain data, and one ast-grep rule to its normal form, checked key by key.

Texts are JSON, or a stream of YAML documents as ast-grep reads it (YAML 1.2 scalars, no merging). The cost of a text is bounded
before anything is built: its size, and the depth and the number of its values, aliases expanded. Nothing is constructed but None,
bool, int, float, str, list and dict; a tag for any other type is a cheat. The YAML events come from libyaml if PyYAML has it;
events need no recursion. `ActionFault` is the one error of all readers of actions.

`LANGUAGES` are those of ast-grep 0.51, by every spelling of their names, whose case does not count. Parsers that a project file
would load from a shared library are not languages here.

Normal form of a rule: keys without a part in an edit are dropped (`id`, `message`, `files` ..., and keys of relations, `nthChild`,
`range`, transformations, fixes and rewriters that ast-grep does not know and ignores), a long form becomes the equivalent short
form, empty parts are dropped. Which kinds exist and whether a pattern parses is left to ast-grep. Keys as in ast-grep 0.51's
published rule schema.
"""

import difflib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import yaml

Kind = Literal["parse", "resolve", "rejected"]


class ActionFault(ValueError):
    """`parse`: not an action; `resolve`: an action that names something unknown; `rejected`: an action that reaches for files,
    programs or tags, with `rule`, the guard's name."""

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
    """One JSON value. Raises ActionFault, or NotJson if the text is no JSON."""
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
        while self._loader.check_event():
            if isinstance(self._loader.get_event(), yaml.DocumentStartEvent):
                self._anchors = {}
                found.append(self._node(self._loader.get_event(), 0))
        return found

    def _node(self, event: yaml.Event, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor)
        if depth > MAX_DEPTH:
            raise ActionFault(f"nested deeper than {MAX_DEPTH}")
        if event.tag is not None and event.tag not in _PLAIN_TAGS:
            if event.tag.startswith("!") and "/" not in event.tag:
                raise ActionFault(f"{short(event.tag)} is read as a tag; quote text that begins with !")
            raise cheat("yaml-tag", f"the tag {short(event.tag)} has no place in a rule")
        self._count(1)
        before = self._values
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = []
            while not isinstance(part := self._loader.get_event(), yaml.SequenceEndEvent):
                value.append(self._node(part, depth + 1))
        else:
            value = {}
            while not isinstance(part := self._loader.get_event(), yaml.MappingEndEvent):
                is_text = isinstance(part, yaml.ScalarEvent)
                key = self._node(part, depth + 1)
                if not is_text or part.value in value:
                    raise ActionFault(f"duplicate key {short(part.value)}" if is_text else f"{short(key)} is not a key")
                value[part.value] = self._node(self._loader.get_event(), depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._values - before + 1)
        return value

    def _alias(self, anchor: str) -> Any:
        if anchor not in self._anchors:
            raise ActionFault(f"the alias {short('*' + anchor)} refers to nothing; quote text that begins with *")
        known = self._anchors[anchor]
        if known is None:
            raise cheat("yaml-bomb", f"the alias {short('*' + anchor)} refers to a value that contains it")
        value, size = known
        self._count(size, aliased=True)
        return value

    def _count(self, values: int, aliased: bool = False) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            message = f"more than {MAX_VALUES} values"
            raise cheat("yaml-bomb", f"{message}, aliases expanded") if aliased else ActionFault(message)


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


ACTING = ("rule", "constraints", "utils", "transform", "rewriters", "fix")
"""Keys that decide an edit."""
SILENT = ("id", "message", "note", "severity", "labels", "files", "ignores", "url", "metadata")
"""Keys allowed at a rule's top without a part in the edit: an action edits one text that has no name."""
MATCHERS = (
    "pattern",
    "kind",
    "regex",
    "nthChild",
    "range",
    "inside",
    "has",
    "precedes",
    "follows",
    "all",
    "any",
    "not",
    "matches",
)
RELATIONS = ("inside", "has", "precedes", "follows")
STRICTNESS = ("cst", "smart", "ast", "relaxed", "signature", "template")
TRANSFORMS = {
    "substring": (("source",), ("startChar", "endChar")),
    "replace": (("source", "replace", "by"), ()),
    "convert": (("source", "toCase"), ("separatedBy",)),
    "rewrite": (("source", "rewriters"), ("joinBy",)),
}
"""Required and further keys of each transformation."""
_PROJECT = ("ruleDirs", "utilDirs", "testConfigs", "languageGlobs", "languageInjections")
_LIBRARY = ("customLanguages", "libraryPath")
Data = dict[str, Any]


def normal_rule(config: Any, default_language: str) -> tuple[str, Data]:
    """(canonical language, the acting parts in normal form). Raises ActionFault."""
    _mapping(config, "rule")
    for key in config:
        if key in _LIBRARY:
            raise cheat("custom-language", f"{key} would load a parser from a file")
        if key in _PROJECT:
            raise cheat("project-file", f"{key} belongs to a project file, not to a rule")
    config = _known(config, "rule", (*ACTING, *SILENT, "language"))
    _check_globs(config)
    if config.get("severity") == "off":
        raise ActionFault("severity: off turns the rule off", "resolve")
    language = language_of(_text(config.get("language") or default_language, "language"))
    return language, _core(config, "rule", with_rewriters=True)


def _core(config: Data, where: str, with_rewriters: bool = False) -> Data:
    if "rule" not in config:
        raise ActionFault(f"{where}: no `rule`, the part that says what to match")
    parts: Data = {"rule": matcher(config["rule"], f"{where}.rule")}
    for key, normal in (("constraints", matcher), ("utils", matcher), ("transform", _transform)):
        if config.get(key):
            items = _mapping(config[key], f"{where}.{key}").items()
            parts[key] = {name: normal(item, f"{where}.{key}.{name[:20]}") for name, item in items}
    if with_rewriters and config.get("rewriters"):
        parts["rewriters"] = [_rewriter(item) for item in _list(config["rewriters"], "rewriters")]
    if "fix" in config:
        parts["fix"] = _fix(config["fix"], f"{where}.fix")
    return parts


def matcher(value: Any, where: str, extra: tuple[str, ...] = ()) -> Data:
    """A rule object. `extra`: further keys inside a relation."""
    known = _heeded if extra else _known
    found = known(_mapping(value, where), where, (*MATCHERS, *extra))
    if not found:
        raise ActionFault(f"{where}: no matcher; one of {', '.join(MATCHERS)} is needed")
    return {
        key: _matcher_part(key, part, f"{where}.{key}")
        for key, part in found.items()
        if (key, part) != ("stopBy", "neighbor")
    }


def _matcher_part(key: str, part: Any, where: str) -> Any:
    if key == "pattern":
        return _pattern(part, where)
    if key in RELATIONS:
        return matcher(part, where, ("stopBy", "field"))
    if key == "not":
        return matcher(part, where)
    if key in ("all", "any"):
        return [matcher(item, f"{where}[{at}]") for at, item in enumerate(_list(part, where))]
    if key == "stopBy":
        return part if part == "end" else matcher(part, where)
    if key == "nthChild":
        return _nth_child(part, where)
    if key == "range":
        return _range(part, where)
    if key == "matches" and isinstance(part, dict):
        calls = {name: _mapping(args, where).items() for name, args in part.items()}
        return {name: {arg: matcher(rule, where) for arg, rule in args} for name, args in calls.items()}
    return _text(part, where)


def _pattern(value: Any, where: str) -> str | Data:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise ActionFault(f"{where}: a string or a mapping with `context` is needed, got {short(value)}")
    found = _known(value, where, ("context", "selector", "strictness"))
    if "context" not in found:
        raise ActionFault(f"{where}: no `context`, the code that holds the pattern")
    for key, part in found.items():
        _text(part, f"{where}.{key}")
    strictness = found.get("strictness", "smart")
    if strictness not in STRICTNESS:
        raise unknown(f"{where}.strictness", strictness, STRICTNESS)
    found = {key: part for key, part in found.items() if (key, part) != ("strictness", "smart")}
    return found["context"] if len(found) == 1 else found


def _nth_child(value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        return _position(value, where)
    found = _heeded(value, where, ("position", "ofRule", "reverse"))
    normal: Data = {"position": _position(found.get("position"), where)}
    if "ofRule" in found:
        normal["ofRule"] = matcher(found["ofRule"], f"{where}.ofRule")
    if found.get("reverse") not in (None, False, True):
        raise ActionFault(f"{where}.reverse: got {short(found['reverse'])}, allowed true or false")
    if found.get("reverse"):
        normal["reverse"] = True
    return normal if len(normal) > 1 else normal["position"]


def _position(value: Any, where: str) -> int | str:
    if type(value) is int and value >= 0:
        return value
    return _text(value, where)


def _range(value: Any, where: str) -> Data:
    found = _heeded(_mapping(value, where), where, ("start", "end"))
    ends = {key: _heeded(_mapping(end, where), where, ("line", "column")) for key, end in found.items()}
    if len(ends) != 2 or any(type(number) is not int or number < 0 for end in ends.values() for number in end.values()):
        raise ActionFault(f"{where}: start and end are needed, each with line and column from 0")
    return ends


def _transform(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return value
    name, *more = _mapping(value, where)
    if more or name not in TRANSFORMS:
        raise unknown(where, more[0] if name in TRANSFORMS else name, TRANSFORMS)
    needed, further = TRANSFORMS[name]
    found = _heeded(_mapping(value[name], where), f"{where}.{name}", (*needed, *further))
    missing = [key for key in needed if key not in found]
    if missing:
        raise ActionFault(f"{where}.{name}: no `{missing[0]}`")
    return {name: found}


def _rewriter(value: Any) -> Data:
    where = "rewriters"
    found = _heeded(_mapping(value, where), where, ("id", "rule", "fix", "constraints", "utils", "transform"))
    if "fix" not in found:
        raise ActionFault(f"{where}: a rewriter without `fix`")
    return {"id": _text(found.get("id"), f"{where}.id")} | _core(found, where)


def _fix(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        fixes = [_fix_object(item, where) for item in _list(value, where)]
        if not all("title" in item for item in _list(value, where)):
            raise ActionFault(f"{where}: every fix of a list needs a `title`", "resolve")
        return fixes[0]  # the others are offered to a person, never applied
    return _fix_object(value, where)


def _fix_object(value: Any, where: str) -> Any:
    found = _heeded(_mapping(value, where), where, ("template", "expandStart", "expandEnd", "title"))
    normal: Data = {"template": _text(found.get("template"), f"{where}.template")}
    for key in ("expandStart", "expandEnd"):
        if key in found:
            normal[key] = matcher(found[key], f"{where}.{key}", ("stopBy", "field"))
    return normal if len(normal) > 1 else normal["template"]


def _check_globs(config: Data) -> None:
    for key in ("files", "ignores"):
        for glob in _list(config.get(key) or [""], key):
            text = _text(glob.get("glob") if isinstance(glob, dict) else glob, key)
            if text.startswith(("/", "~")) or ".." in text.split("/"):
                raise cheat("file-access", f"{key}: {short(text)} leads out of the project")


def _known(value: Data, where: str, allowed: Iterable[str]) -> Data:
    """The object without null parts, which ast-grep takes as absent."""
    names = tuple(allowed)
    for key in value:
        if key not in names:
            raise unknown(where, key, names)
    return {key: part for key, part in value.items() if part is not None}


def _heeded(value: Data, where: str, allowed: Iterable[str]) -> Data:
    """The same, for objects in which ast-grep ignores unknown keys."""
    names = tuple(allowed)
    return _known({key: part for key, part in value.items() if key in names}, where, names)


def _mapping(value: Any, where: str) -> Data:
    return _typed(value, dict, where, "a mapping")


def _list(value: Any, where: str) -> list[Any]:
    return _typed(value, list, where, "a list")


def _text(value: Any, where: str) -> str:
    return _typed(value, str, where, "a string")


def _typed(value: Any, kind: type, where: str, name: str) -> Any:
    if not isinstance(value, kind) or (kind is not str and not value):
        raise ActionFault(f"{where}: {name} is needed, got {short(value)}")
    return value
