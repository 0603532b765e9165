"""One ast-grep rule, checked key by key and brought to its normal form.

Keys without a part in an edit are dropped (`id`, `message`, `files` ..., and keys of relations, `nthChild`, `range`,
transformations, fixes and rewriters that ast-grep does not know and ignores), a long form becomes the equivalent short
form, empty parts are dropped. Which kinds exist and whether a pattern parses is left to ast-grep. Keys as in ast-grep
0.51's published rule schema.
"""

from collections.abc import Iterable
from typing import Any

from rlvr_exp.domains.edits.reading import ActionFault, cheat, language_of, short, unknown

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
    """A rule object. `extra`: further keys where it is inside a relation."""
    known = _heeded if extra else _known
    found = known(_mapping(value, where), where, (*MATCHERS, *extra))
    if not found:
        raise ActionFault(f"{where}: no matcher; one of {', '.join(MATCHERS)} is needed")
    return {key: _matcher_part(key, part, f"{where}.{key}") for key, part in found.items() if not _usual(key, part)}


def _usual(key: str, part: Any) -> bool:
    return key == "stopBy" and part == "neighbor"


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
    _all_text(found, where)
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


def _all_text(values: Data, where: str) -> None:
    for key, part in values.items():
        _text(part, f"{where}.{key}")


def _typed(value: Any, kind: type, where: str, name: str) -> Any:
    if not isinstance(value, kind) or (kind is not str and not value):
        raise ActionFault(f"{where}: {name} is needed, got {short(value)}")
    return value
