"""The in-process engine: one rule by ast_grep_py, which finds matches; templates are filled in here.

Takes only rules that it applies exactly like the ast-grep program, and returns None for all others: no `transform`,
`rewriters` or object `fix`, usual strictness, plain template variables that the rule defines, no suppression comments,
and matches that end where their pattern ends (the program shortens the others). Indentation follows ast-grep's
published algorithm: a variable's later lines move by the difference between its original line and its new place, and
all of a replacement's later lines by the indentation of the line of its match.

A worker imports this file: standard library, ast_grep_py and `program` only.
"""

import re
from typing import Any

from ast_grep_py import SgNode, SgRoot

from rlvr_exp.domains.edits.program import RuleFault

_PLAIN_KEYS = {"rule", "constraints", "utils", "fix"}
_VARIABLE = re.compile(r"\$(?:\$\$)?[A-Z][A-Z0-9]*(?![A-Za-z0-9_$])")
_IN_PATTERN = re.compile(r"\$+([A-Z_][A-Z0-9_]*)")
_ONE_VARIABLE = re.compile(r"\$+[A-Z0-9_]*\W*\Z")
_LOOK_BACK = 512
"""Bytes in which ast-grep searches for the line's start."""
_MOST_LINES = 10_000


def apply(text: str, language: str, parts: dict[str, Any], max_bytes: int) -> tuple[str, int] | None:
    """(edited text, matches replaced), or None where the program has to do it, or to report the rule's fault.

    Raises RuleFault where the text grows past `max_bytes`.
    """
    found = _find(text, language, parts) if _is_plain(parts, text) else None
    if found is None:
        return None
    patterns = _patterns_at_top(parts["rule"])
    template, pieces, end, count, size = _Template(parts["fix"], text), [], 0, 0, 0
    for node in found:
        reach = node.range()
        if reach.start.index < end:
            continue
        if not _ends_with_pattern(node, patterns):
            return None
        pieces += [text[end : reach.start.index], template.fill(node)]
        end, count, size = reach.end.index, count + 1, size + len(pieces[-1])
        if size > max_bytes:
            raise RuleFault("output", f"the edited text is larger than {max_bytes} bytes")
    return "".join([*pieces, text[end:]]), count


def _find(text: str, language: str, parts: dict[str, Any]) -> list[SgNode] | None:
    """All matches in source order, outer ones first; None for a rule that this engine does not take."""
    config: Any = {key: part for key, part in parts.items() if key != "fix"}
    try:
        return SgRoot(text, language).root().find_all(config)
    except MemoryError:
        raise
    except Exception:  # the binding raises RuntimeError or the bare class: the program reports the reason
        return None
    except BaseException as fault:
        if type(fault).__name__ == "PanicException":
            return None
        raise


def _is_plain(parts: dict[str, Any], text: str) -> bool:
    fix = parts.get("fix")
    if not isinstance(fix, str) or set(parts) - _PLAIN_KEYS or "ast-grep-ignore" in text:
        return False
    if not text.strip() or text.count("\n") > _MOST_LINES or "strictness" in str(parts):
        return False
    if not _names_kinds(parts["rule"]):
        return False
    rest = _VARIABLE.sub("", fix)
    return "$" not in rest and {name.lstrip("$") for name in _VARIABLE.findall(fix)} <= _defined(parts)


def _names_kinds(rule: dict[str, Any]) -> bool:
    """Whether it is certain that only some kinds of node match: the program refuses a rule that may match all."""
    if "kind" in rule or ("all" in rule and any(map(_names_kinds, rule["all"]))):
        return True
    if "any" in rule and all(map(_names_kinds, rule["any"])):
        return True
    pattern = rule.get("pattern")
    return isinstance(pattern, str) and not _ONE_VARIABLE.match(pattern.strip())


def _defined(parts: dict[str, Any]) -> set[str]:
    """Names that the rule's patterns hold: the program refuses a fix that uses another."""
    names: set[str] = set()
    ahead: list[Any] = [parts.get(key) for key in ("rule", "constraints", "utils")]
    while ahead:
        item = ahead.pop()
        if isinstance(item, dict):
            for key in ("pattern", "context"):
                if isinstance(item.get(key), str):
                    names.update(_IN_PATTERN.findall(item[key]))
            ahead += item.values()
        elif isinstance(item, list):
            ahead += item
    return names


def _patterns_at_top(rule: dict[str, Any]) -> list[str] | None:
    """The patterns that may decide where a match ends; None where that cannot be said."""
    found: list[str] = []
    ahead = [rule]
    while ahead:
        item = ahead.pop()
        if "matches" in item:
            return None
        pattern = item.get("pattern")
        if isinstance(pattern, dict):
            return None
        found += [pattern.rstrip()] if pattern is not None else []
        ahead += [*item.get("all", []), *item.get("any", [])]
    return found


def _ends_with_pattern(node: SgNode, patterns: list[str] | None) -> bool:
    if patterns is not None and not patterns:
        return True
    last = node
    while not last.is_leaf():
        last = last.children()[-1]
    if last.is_named():
        return True
    return patterns is not None and bool(last.text()) and all(pattern.endswith(last.text()) for pattern in patterns)


class _Template:
    """A fix, cut at its variables."""

    def __init__(self, fix: str, source: str):
        self._source = source
        self._parts: list[str | tuple[str, bool, int]] = []
        end = 0
        for found in _VARIABLE.finditer(fix):
            name, indent = found.group().lstrip("$"), _indent(fix[: found.start()])
            self._parts += [fix[end : found.start()], (name, found.group().startswith("$$$"), indent)]
            end = found.end()
        self._parts.append(fix[end:])

    def fill(self, node: SgNode) -> str:
        text = "".join(part if isinstance(part, str) else self._value(node, *part) for part in self._parts)
        return _moved(text, 0, _indent(self._source[: node.range().start.index]))

    def _value(self, node: SgNode, name: str, several: bool, indent: int) -> str:
        nodes = node.get_multiple_matches(name) if several else [*filter(None, [node.get_match(name)])]
        if not nodes:
            return ""
        start, end = nodes[0].range().start.index, nodes[-1].range().end.index
        return _moved(self._source[start:end], _indent(self._source[:start]), indent)


def _moved(text: str, old: int, new: int) -> str:
    """Later lines indented by the difference; a line with less indentation stays unchanged."""
    if old <= new:
        return text.replace("\n", "\n" + " " * (new - old))
    return "\n".join(line.removeprefix(" " * (old - new)) for line in text.split("\n"))


def _indent(before: str) -> int:
    """Spaces at the start of the last line of `before`; 0 where that line starts too early."""
    tail = before[-_LOOK_BACK:].encode()[-_LOOK_BACK:]
    line_start = tail.rfind(b"\n") + 1
    if line_start == 0 and len(before.encode()) > _LOOK_BACK:
        return 0
    line = tail[line_start:]
    return len(line) - len(line.lstrip(b" "))
