"""Syntax trees as ast-grep has them, and the places of their nodes in the text."""

import re
from collections.abc import Iterator
from typing import Any

from ast_grep_py import SgNode, SgRoot

Rule = dict[str, Any]
"""A rule object of ast-grep, or a form of an action (rlvr_exp.tasks.edits.action)."""
Span = tuple[int, int]
"""Start and end in characters."""
_ROW = re.compile(
    r"(?:block|body|arguments|argument_list|parameters|parameter_list|statements|statement_list|compound_statement|"
    r"declaration_list)$"
)
_COLLECTION = re.compile(r"^(?:list|array|tuple|dictionary|object)$")


class Unparsed(Exception):
    """ast-grep has no tree of a text."""


def parse(text: str, language: str) -> SgNode:
    """The root. Raises Unparsed."""
    try:
        return SgRoot(text, language).root()
    except BaseException as fault:
        if not _is_refusal(fault):
            raise
        raise Unparsed(str(fault)) from fault


def find_all(root: SgNode, rule: Rule) -> list[SgNode]:
    """What a rule matches, outer nodes first; nothing where ast-grep refuses the rule."""
    config: Any = {"rule": rule}
    try:
        return root.find_all(config)
    except BaseException as fault:
        if not _is_refusal(fault):
            raise
        return []


def is_match(node: SgNode, rule: Rule) -> bool:
    try:
        return node.matches(**rule)
    except BaseException as fault:
        if not _is_refusal(fault):
            raise
        return False


def _is_refusal(fault: BaseException) -> bool:
    """The binding raises RuntimeError, the bare class or a panic of its own, which is no Exception."""
    return type(fault).__name__ == "PanicException" or (
        isinstance(fault, Exception) and not isinstance(fault, MemoryError)
    )


def span(node: SgNode) -> Span:
    reach = node.range()
    return reach.start.index, reach.end.index


def descendants(root: SgNode) -> Iterator[SgNode]:
    """Every node below the root, parents first."""
    ahead = root.children()
    while ahead:
        node = ahead.pop()
        yield node
        ahead += node.children()


def is_row(node: SgNode) -> bool:
    """Whether a node is only what holds statements, members, arguments or parameters."""
    return bool(_ROW.search(node.kind()))


def is_sequence(node: SgNode) -> bool:
    """Whether `$$$` can stand for what a node holds: a row, or the items of a value."""
    return is_row(node) or bool(_COLLECTION.search(node.kind()))


def is_part(root: SgNode, place: Span) -> bool:
    """Whether a stretch is a node below the root, or some statements, members or items of one parent without marks between."""
    here: SgNode | None = root
    while here is not None:
        parent, children = here, here.children()
        inside = [child for child in children if place[0] <= span(child)[0] and span(child)[1] <= place[1]]
        if len(inside) == 1 and span(inside[0]) == place:
            return True
        if inside and (span(inside[0])[0], span(inside[-1])[1]) == place:
            unmarked = all(child.is_named() or not child.text().strip() for child in inside)
            return unmarked and (parent is root or is_sequence(parent))
        here = next((child for child in children if encloses(span(child), place)), None)
    return False


def encloses(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def indentation(text: str, position: int) -> int:
    """Spaces at the start of the line of a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return len(line) - len(line.lstrip(" "))


def outdented(text: str, by: int) -> str:
    """The text with its later lines that many spaces to the left; a line with fewer stays."""
    return text.replace("\n" + " " * by, "\n")
