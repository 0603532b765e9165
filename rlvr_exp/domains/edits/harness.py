"""The harness of `ast_grep`: applies an action's rules to a text inside a candidate's own process. Judges nothing.

The wanted text never enters this process, nor do tests: its output is the edited text, as data, and on request the
digest of its syntax tree. Steps are applied in order, each on the result of the previous step. A step's
rules are matched together against one text, like `ast-grep scan --update-all`: all matches are replaced in one
pass, outermost first, a match inside or across an earlier match left out. With more than one pass the list is repeated
until nothing changes; a repeated text ends that as an endless rewriting.

A step of one rule runs in-process by ast_grep_py if both engines mean the same, all else by the ast-grep
program. Records, encoded with `wire`: ["text", text, matches, digest], ["fault", kind, message]; kinds are `resolve`, `loop`,
`output`, `memory`, `crash`, `engine` (the machine's, not the rule's).

The digest covers every node's kind, the text of every leaf (comments, operators and punctuation too), and whatever text
a node has between its children that is not blank: equal digests, equal programs but for the blanks that their grammar ignores.
Strings and templates count in their written form, since blanks inside them are content. Grammars are written for editors and
recover from errors: a text with such an error (ERROR), or with an inserted node, has no digest, nor has Python that Python
itself does not parse. If a grammar ignores a line break or a blank that the language does not ignore, that break or blank
counts (`_BREAKS`, `_lopsided`).

The worker imports this file: standard library, ast_grep_py, `engines` and `rlvr_exp.sandbox` only.
"""

import ast
import hashlib
import json
import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ast_grep_py import SgNode, SgRoot

from rlvr_exp.domains.edits import engines
from rlvr_exp.domains.edits.engines import RuleFault
from rlvr_exp.sandbox import wire
from rlvr_exp.sandbox.isolation import files

_PROGRAM = engines.find_program()
if _PROGRAM is not None:
    # A worker imports its harness before it seals its root, which otherwise shows no program but a shell.
    files.show(_PROGRAM)

Send = Callable[[bytes], None]
_AS_WRITTEN = re.compile(r"string|str_|char|regex|scalar|template|heredoc|text|inline|comment|raw")
_SCRIPTS = ("javascript", "typescript", "tsx")
_SCRIPT = {"throw_statement", "abstract_class_declaration", "class_body"}
_BREAKS: dict[str, set[str]] = {
    **dict.fromkeys(_SCRIPTS, _SCRIPT),
    "kotlin": {"call_expression"},
    "hcl": {"body"},
    "swift": {"call_expression"},
}
"""Kinds of nodes, by language: a line break between two of their children can end a statement."""
_TIED_AFTER, _TIED_BEFORE = {"async", "abstract", "interface", "asserts"}, {"=>"}
"""Words of JavaScript and TypeScript that allow no line break after and before them."""


def run(payload: bytes, send: Send) -> None:
    """Called once in a fresh fork, which ends right after."""
    job = wire.decode_native(payload)
    try:
        text, matches = _apply_all(job)
        record = ["text", text, matches, digest(text, job["tree"]) if job["tree"] else ""]
    except RuleFault as fault:
        record = ["fault", fault.kind, str(fault)[:600]]
    except (MemoryError, RecursionError) as fault:
        record = ["fault", "memory", type(fault).__name__]
    send(wire.encode(record))


def _apply_all(job: dict[str, Any]) -> tuple[str, int]:
    text, matches, seen = job["text"], 0, set()
    for _ in range(job["max_passes"]):
        before = text
        for language, ending, configs in job["steps"]:
            text, count = _apply(text, language, ending, configs, job)
            matches += count
            if len(text.encode()) > job["max_kb"] << 10:
                raise RuleFault("output", f"the edited text is larger than {job['max_kb']} KiB")
        if text == before:
            return text, matches
        seen.add(hashlib.blake2b(before.encode()).digest())
        if hashlib.blake2b(text.encode()).digest() in seen:
            raise RuleFault("loop", "the rules undo one another: a text came back that was there before")
    if job["max_passes"] > 1:
        raise RuleFault("loop", f"the text still changes after {job['max_passes']} passes")
    return text, matches


def _apply(text: str, language: str, ending: str, configs: list[str], job: dict[str, Any]) -> tuple[str, int]:
    rules, engine = [json.loads(config) for config in configs], job["engine"]
    if engine != "program" and len(rules) == 1:
        edited = engines.apply_in_process(text, language, rules[0], job["max_kb"] << 10)
        if edited is not None:
            return edited
    if engine == "inline":
        raise RuleFault("engine", "this step is not one for the in-process engine")
    return engines.apply_by_program(text, language, ending, rules, job["program"])


class _Unread(Exception):
    """The text does not parse without errors."""


def digest(text: str, language: str) -> str:
    """32 hexadecimal digits; empty if the text does not parse without errors."""
    if language == "python" and not _is_python(text):
        return ""
    hashed = hashlib.blake2b(digest_size=16)
    tree = SgRoot(text, language).root()
    try:
        _add(hashed, text[: tree.range().start.index] if language == "php" else "")
        _digest(hashed, tree, text, language)
    except _Unread:
        return ""
    return hashed.hexdigest()


def _digest(hashed: hashlib.blake2b, tree: SgNode, text: str, language: str) -> None:
    ahead: list[SgNode | str] = [tree]
    while ahead:
        item = ahead.pop()
        if isinstance(item, str):
            _add(hashed, item)
            continue
        children = item.children()
        reach = item.range()
        if item.kind() == "ERROR" or (not children and text and reach.start.index == reach.end.index):
            raise _Unread
        if not children or _AS_WRITTEN.search(item.kind()):
            _check(children)
            _add(hashed, f"leaf {item.kind()}", item.text())
            continue
        _add(hashed, f"node {item.kind()}", _lopsided(children) if language == "swift" else "")
        ahead.append("end")
        ahead += reversed(_inside(item, children, text, language))


def _check(nodes: list[SgNode]) -> None:
    """Text that counts in its written form has to parse, too. An empty leaf is no fault there: strings have them."""
    ahead = list(nodes)
    while ahead:
        node = ahead.pop()
        if node.kind() == "ERROR":
            raise _Unread
        ahead += node.children()


def _inside(node: SgNode, children: list[SgNode], text: str, language: str) -> list[SgNode | str]:
    """Children in order, and the text between them if it is not blank."""
    parts: list[SgNode | str] = []
    at, last, breaks = node.range().start.index, "", node.kind() in _BREAKS.get(language, ())
    for child in children:
        reach, kind = child.range(), child.kind()
        tied = language in _SCRIPTS and (last in _TIED_AFTER or kind in _TIED_BEFORE)
        parts += _gap(text[at : reach.start.index], breaks or tied)
        parts.append(child)
        at, last = max(at, reach.end.index), kind
    return parts + _gap(text[at : node.range().end.index], False)


def _gap(text: str, breaks: bool) -> list[SgNode | str]:
    if text.strip():
        return ["between", text]
    return ["break"] if breaks and "\n" in text else []


def _lopsided(children: list[SgNode]) -> str:
    """Swift tells a prefix from a binary operator by the blanks on its sides: whether they are on one side alone."""
    reaches = [child.range() for child in children]
    gaps = [one.end.index < other.start.index for one, other in pairwise(reaches)]
    if len(gaps) == 1 and not children[1].is_named():
        return "apart" if gaps[0] else ""
    if len(gaps) == 2 and not children[1].is_named() and not re.match(r"[\w({[:,.]", children[1].text()):
        return "lopsided" if gaps[0] != gaps[1] else ""
    return ""


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _add(hashed: hashlib.blake2b, *parts: str) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
