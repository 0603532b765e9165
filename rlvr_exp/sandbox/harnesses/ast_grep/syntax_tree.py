"""A text's syntax tree as one digest: equal digests, equal programs but for the blanks that their grammar ignores.

The digest covers every node's kind, the text of every leaf (comments, operators and punctuation too), and whatever text
a node has between its children that is not blank. Strings and templates count in their written form, since blanks
inside them are content. Grammars are written for editors and recover from errors: a text with such an error (ERROR), or
with an inserted node, has no digest, nor has Python that Python itself does not parse. Where a grammar ignores a line
break or a blank that the language does not ignore, that break or blank counts (`_BREAKS`, `_lopsided`).
Standard library and ast_grep_py only.
"""

import ast
import hashlib
import re
import warnings
from itertools import pairwise

from ast_grep_py import SgNode, SgRoot

_AS_WRITTEN = re.compile(r"string|str_|char|regex|scalar|template|heredoc|text|inline|comment|raw")
_SCRIPTS = ("javascript", "typescript", "tsx")
_SCRIPT = {"throw_statement", "abstract_class_declaration", "class_body"}
_BREAKS: dict[str, set[str]] = {
    **dict.fromkeys(_SCRIPTS, _SCRIPT),
    "kotlin": {"call_expression"},
    "hcl": {"body"},
    "swift": {"call_expression"},
}
"""Kinds of nodes, by language, within which a line break between two children can end a statement."""
_TIED_AFTER, _TIED_BEFORE = {"async", "abstract", "interface", "asserts"}, {"=>"}
"""Words of JavaScript and TypeScript after and before which there may be no line break."""


class _Unread(Exception):
    """The text does not parse without errors."""


def digest(text: str, language: str) -> str:
    """32 hexadecimal digits; empty where the text does not parse without errors."""
    if language == "python" and not _is_python(text):
        return ""
    hashed = hashlib.blake2b(digest_size=16)
    root = SgRoot(text, language).root()
    try:
        _add(hashed, text[: root.range().start.index] if language == "php" else "")
        _digest(hashed, root, text, language)
    except _Unread:
        return ""
    return hashed.hexdigest()


def _digest(hashed: "hashlib._Hash", root: SgNode, text: str, language: str) -> None:
    ahead: list[SgNode | str] = [root]
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
    """Children in order, and the text between them where it is not blank."""
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


def _add(hashed: "hashlib._Hash", *parts: str) -> None:
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
