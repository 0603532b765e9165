"""The two engines that apply rules: ast_grep_py in this process, and the ast-grep command line.

In-process, ast_grep_py finds the matches of one rule, and templates are filled in here. This engine takes only rules that it
applies exactly like the program, and returns None for all others: no `transform`, `rewriters` or object `fix`, usual strictness,
plain template variables that the rule defines, no suppression comments, and matches that end where their pattern ends (the program
shortens the others). Indentation follows ast-grep's published algorithm: a variable's later lines move by the difference between
its original line and its new place, and all of a replacement's later lines by the indentation of the line of its match.

The program applies one step to a file in the candidate's own folder. The folder has its own project file, so that no other is
searched for; rules are passed as a file, so that nothing is quoted. Limits are the process's; the program's messages go to a file,
bounded by the limit on file size.

The parent and the workers import this file: standard library only, and ast_grep_py when a rule is applied.
"""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The parent names a missing ast_grep_py in its own words.
    from ast_grep_py import SgNode


class RuleFault(Exception):
    """`kind`: one of the harness's kinds of fault."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


SUPPRESSES = "ast-grep-ignore"
"""The word of a comment that suppresses matches."""
_PLAIN_KEYS = {"rule", "constraints", "utils", "fix"}
_VARIABLE = re.compile(r"\$(?:\$\$)?[A-Z][A-Z0-9]*(?![A-Za-z0-9_$])")
_IN_PATTERN = re.compile(r"\$+([A-Z_][A-Z0-9_]*)")
_ONE_VARIABLE = re.compile(r"\$+[A-Z0-9_]*\W*\Z")
_LOOK_BACK = 512
"""Bytes in which ast-grep searches for the line's start."""
_MOST_LINES = 10_000


def apply_in_process(text: str, language: str, parts: dict[str, Any], max_bytes: int) -> tuple[str, int] | None:
    """(edited text, matches replaced), or None if the program has to apply the rule, or to report its fault.

    Raises RuleFault if the text grows past `max_bytes`.
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


def _find(text: str, language: str, parts: dict[str, Any]) -> "list[SgNode] | None":
    """All matches in source order, outer ones first; None for a rule that this engine does not take."""
    from ast_grep_py import SgRoot

    config: Any = {key: part for key, part in parts.items() if key != "fix"}
    try:
        return SgRoot(text, language).root().find_all(config)
    except BaseException as fault:
        if not is_refusal(fault):
            raise
        return None  # The program reports the reason.


def is_refusal(fault: BaseException) -> bool:
    """Whether ast_grep_py refuses a rule or a text: it raises RuntimeError, the bare class, or a panic, which is no Exception."""
    return type(fault).__name__ == "PanicException" or (
        isinstance(fault, Exception) and not isinstance(fault, MemoryError)
    )


def _is_plain(parts: dict[str, Any], text: str) -> bool:
    fix = parts.get("fix")
    if not isinstance(fix, str) or set(parts) - _PLAIN_KEYS or SUPPRESSES in text:
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
    """The patterns that may decide the end of a match; None if they are not certain."""
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


def _ends_with_pattern(node: "SgNode", patterns: list[str] | None) -> bool:
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

    def fill(self, node: "SgNode") -> str:
        text = "".join(part if isinstance(part, str) else self._value(node, *part) for part in self._parts)
        return _moved(text, 0, _indent(self._source[: node.range().start.index]))

    def _value(self, node: "SgNode", name: str, several: bool, indent: int) -> str:
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
    """Spaces at the start of the last line of `before`; 0 if that line starts too early."""
    tail = before[-_LOOK_BACK:].encode()[-_LOOK_BACK:]
    line_start = tail.rfind(b"\n") + 1
    if line_start == 0 and len(before.encode()) > _LOOK_BACK:
        return 0
    line = tail[line_start:]
    return len(line) - len(line.lstrip(b" "))


_USUAL_PLACES = ("/usr/local/bin", "/usr/bin", os.path.expanduser("~/.local/bin"), os.path.expanduser("~/.cargo/bin"))
_PROJECT = "sgconfig.yml"
_ENVIRONMENT = {"NO_COLOR": "1", "LC_ALL": "C.UTF-8", "RAYON_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
_APPLIED = re.compile(rb"Applied (\d+) changes?")
_MOST_OUTPUT = 4000
_YAML_MARKS = "\x7f\x85\u2028\u2029\ufeff\ufffe\uffff"
"""Not printable, or a line's end, in YAML; JSON writes them unescaped."""


def find_program() -> str | None:
    """The ast-grep program: first next to this interpreter, in the same installation as the package. The parent and a worker,
    which has no PATH, find the same."""
    places = (os.path.dirname(sys.executable), sysconfig.get_path("scripts"), *_USUAL_PLACES)
    found = next(filter(None, (shutil.which("ast-grep", path=place) for place in places)), None)
    return os.path.realpath(found) if found else None


def apply_by_program(
    text: str, language: str, ending: str, rules: list[dict[str, Any]], program: str
) -> tuple[str, int]:
    """(edited text, matches replaced). Raises RuleFault."""
    source = Path(f"source.{ending}")
    usual = {"language": language, "message": "", "severity": "hint"}
    documents = [{"id": f"rule-{at}", **usual, **parts} for at, parts in enumerate(rules, 1)]
    try:
        Path(_PROJECT).write_text("ruleDirs: []\n", encoding="utf-8")
        Path("rule.yml").write_text(_yaml(documents), encoding="utf-8")
        source.write_bytes(text.encode())
    except OSError as fault:
        raise _machine(fault) from fault
    status, output = _run([program, "scan", "--rule", "rule.yml", "--update-all", "--threads", "1", source.name])
    if status != 0:
        raise _fault(status, output)
    applied = _APPLIED.search(output)
    return source.read_bytes().decode(), int(applied.group(1)) if applied else 0


def _yaml(documents: list[dict[str, Any]]) -> str:
    """JSON is YAML once YAML's further line ends inside strings are escaped."""
    lines = (json.dumps(document, ensure_ascii=False) for document in documents)
    text = "\n---\n".join(lines)
    return "".join(f"\\u{ord(mark):04x}" if mark in _YAML_MARKS else mark for mark in text)


def _run(command: list[str]) -> tuple[int, bytes]:
    try:
        with open("said", "w+b") as output:
            # Its standard input is the candidate's own, which is empty.
            done = subprocess.run(command, stdout=output, stderr=output, env=_ENVIRONMENT, check=False)
            output.seek(0)
            return done.returncode, output.read(_MOST_OUTPUT)
    except OSError as fault:
        raise _machine(fault) from fault


def _machine(fault: OSError) -> RuleFault:
    if fault.errno in (errno.ENOMEM, errno.EAGAIN):
        return RuleFault("memory", f"no memory for the program: {os.strerror(fault.errno)}")
    if fault.errno in (errno.EFBIG, errno.ENOSPC):
        return RuleFault("output", f"the text does not fit: {os.strerror(fault.errno)}")
    return RuleFault("engine", f"the ast-grep program does not start: {fault}")


def _fault(status: int, output: bytes) -> RuleFault:
    text = " ".join(
        re.sub(
            r"Error: Cannot parse rule \S+|Help: [^\n]*|See also: \S+|[✖╰▻]|Caused by",
            " ",
            output.decode(errors="replace"),
        ).split()
    )
    if -status == signal.SIGXFSZ:
        return RuleFault("output", "the edited text is larger than a file may be")
    if "memory allocation" in text or -status == signal.SIGKILL:
        return RuleFault("memory", text[:300] or "the program was ended for its use of memory or time")
    if status < 0 or "panicked" in text:
        return RuleFault("crash", f"ast-grep broke under the rule (status {status}): {text[:300]}")
    return RuleFault("resolve", text[:600] or f"ast-grep ended with exit code {status}")
