"""Syntax trees as ast-grep has them, the nodes that an edit may copy, and the difference of two trees as hunks.

A hunk is a stretch of the text before with the text that takes its place. Children of two nodes of one kind are aligned: equal
ones first, then, between them, those of one kind whose texts are alike. The differences in between, blanks too, are hunks, so that
all hunks together always make the text after. A `Step` is a text and the hunks that are left.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from ast_grep_py import SgNode, SgRoot
from rapidfuzz import fuzz
from rapidfuzz.distance import Postfix, Prefix

from rlvr_exp.domains.edits.engines import is_refusal

Rule = dict[str, Any]
"""A rule object of ast-grep, or a form of an action (rlvr_exp.domains.edits.action)."""
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
        if not is_refusal(fault):
            raise
        raise Unparsed(str(fault)) from fault


def find_all(root: SgNode, rule: Rule) -> list[SgNode]:
    """The matches of a rule, outer nodes first; none if ast-grep refuses the rule."""
    config: Any = {"rule": rule}
    try:
        return root.find_all(config)
    except BaseException as fault:
        if not is_refusal(fault):
            raise
        return []


def is_match(node: SgNode, rule: Rule) -> bool:
    try:
        return node.matches(**rule)
    except BaseException as fault:
        if not is_refusal(fault):
            raise
        return False


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
    """Whether a node only groups statements, members, arguments or parameters."""
    return bool(_ROW.search(node.kind()))


def is_sequence(node: SgNode) -> bool:
    """Whether `$$$` can stand for a node's content: a row, or the items of a value."""
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


Key = tuple[str, str]
"""A node's kind, or empty for several nodes, and its text without its line's indentation."""


@dataclass(frozen=True)
class TreeText:
    """A text and the nodes of its tree that may be copied from or to it, in order."""

    text: str
    root: SgNode
    keys: Sequence[tuple[Span, Key]]
    pairs: Sequence[tuple[Span, tuple[Key, Key]]]
    """Siblings that follow each other."""

    @classmethod
    def of(cls, text: str, root: SgNode) -> "TreeText":
        keys: list[tuple[Span, Key]] = []
        pairs: list[tuple[Span, tuple[Key, Key]]] = []
        for node in (root, *descendants(root)):
            children = [(span(child), key_of(child, text)) for child in node.children() if child.is_named()]
            keys += children
            if is_sequence(node):
                pairs += [((one[0][0], other[0][1]), (one[1], other[1])) for one, other in pairwise(children)]
        return cls(text, root, keys, pairs)

    def within(self, place: Span) -> "Copied":
        nodes = [key for reach, key in self.keys if encloses(place, reach)]
        rows = (pair for reach, pair in self.pairs if encloses(place, reach))
        return Copied(frozenset(nodes), frozenset(rows))


@dataclass(frozen=True)
class Copied:
    """What of a stretch of the text after may come from the text before."""

    nodes: frozenset[Key] = frozenset()
    pairs: frozenset[tuple[Key, Key]] = frozenset()


def key_of(node: SgNode, text: str) -> Key:
    return node.kind(), plain(text, span(node))


def plain(text: str, place: Span) -> str:
    """A stretch as it would be written at the margin."""
    return outdented(text[slice(*place)], indentation(text, place[0]))


ALIKE = 45.0
"""Least RapidFuzz ratio of two nodes of one kind that count as the same node, edited."""
MOST_PAIRS = 900
"""Pairs of children compared in one stretch; a longer stretch is one hunk."""
COMPARED = 2000
"""Characters of a node that are compared."""
Pair = tuple[SgNode, SgNode]


@dataclass(frozen=True)
class Hunk:
    start: int
    end: int
    text: str
    """What takes the place of `before[start:end]`."""

    def places(self, before: str) -> list[Span]:
        """Where it may be placed to the same effect: an insertion or a deletion may slide over equal characters."""
        places, (start, end) = [(self.start, self.end)], (self.start, self.end)
        moved = self.text or before[start:end]
        if self.text and start != end:
            return places
        while start > 0 and before[start - 1] == moved[-1]:
            moved = moved[-1] + moved[:-1]
            start, end = start - 1, end - 1
        return [*places, (start, end)] if start != self.start else places


def hunks_of(before: str, after: str, roots: Pair) -> list[Hunk]:
    """In order, without overlap; none if the texts are equal."""
    found: list[Hunk] = []
    ahead = [(roots, (0, len(before)), (0, len(after)))]
    while ahead:
        (old, new), (at, end), (to, end_after) = ahead.pop()
        for one, other in _aligned(old.children(), new.children()):
            place, place_after = span(one), span(other)
            found.append(_trimmed(before, (at, place[0]), after[to : place_after[0]]))
            leaf = one.is_leaf() or other.is_leaf()
            if not leaf and one.text() != other.text() and _ratio(one, other):
                ahead.append(((one, other), place, place_after))
            else:
                found.append(_trimmed(before, place, after[slice(*place_after)]))
            at, to = place[1], place_after[1]
        found.append(_trimmed(before, (at, end), after[to:end_after]))
    changing = (hunk for hunk in found if hunk.text or hunk.start != hunk.end)
    return sorted(changing, key=lambda hunk: (hunk.start, hunk.end))


def applied(text: str, hunks: Sequence[Hunk]) -> str:
    """The text with some of its hunks applied."""
    parts, at = [], 0
    for hunk in hunks:
        parts += [text[at : hunk.start], hunk.text]
        at = hunk.end
    return "".join([*parts, text[at:]])


def _trimmed(before: str, place: Span, text: str) -> Hunk:
    """The hunk without the common beginning and end of both texts."""
    old = before[slice(*place)]
    head = Prefix.similarity(old, text)
    tail = Postfix.similarity(old[head:], text[head:])
    return Hunk(place[0] + head, place[1] - tail, text[head : len(text) - tail])


def _aligned(old: Sequence[SgNode], new: Sequence[SgNode]) -> Iterator[tuple[SgNode, SgNode]]:
    ours, theirs = ([(node.kind(), node.text()) for node in nodes] for nodes in (old, new))
    for tag, i, i2, j, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(old[i:i2], new[j:j2], strict=True)
        elif tag == "replace":
            yield from _paired(old[i:i2], new[j:j2])


def _paired(old: Sequence[SgNode], new: Sequence[SgNode]) -> list[Pair]:
    """Nodes between equal ones, in order: all of them if their kinds agree, else the pairs that are alike most."""
    if [node.kind() for node in old] == [node.kind() for node in new]:
        return list(zip(old, new, strict=True))
    if len(old) * len(new) > MOST_PAIRS:
        return []
    best: list[list[tuple[float, list[Pair]]]] = [[(0.0, [])] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            choices = [best[i][j + 1], best[i + 1][j]]
            if one.kind() == other.kind() and one.is_named() and (score := _ratio(one, other)):
                total, pairs = best[i][j]
                choices.append((total + score, [*pairs, (one, other)]))
            best[i + 1][j + 1] = max(choices, key=lambda choice: choice[0])
    return best[-1][-1][1]


def _ratio(one: SgNode, other: SgNode) -> float:
    """The likeness of two nodes' texts; 0 below ALIKE."""
    return fuzz.ratio(one.text()[:COMPARED], other.text()[:COMPARED], score_cutoff=ALIKE)


@dataclass(frozen=True)
class Step:
    language: str
    before: TreeText
    after: TreeText
    hunks: Sequence[Hunk]
    places: Sequence[Sequence[Span]]
    """Of each hunk: all places that it may be at."""

    @classmethod
    def of(cls, before: str, after: TreeText, language: str) -> "Step":
        """Raises Unparsed."""
        root = parse(before, language)
        hunks = hunks_of(before, after.text, (root, after.root))
        return cls(language, TreeText.of(before, root), after, hunks, [hunk.places(before) for hunk in hunks])

    def held(self, place: Span) -> frozenset[int] | None:
        """The numbers of the hunks that a stretch holds or touches; None if it holds only a part of one."""
        found = set()
        for number, hunk in enumerate(self.hunks):
            if any(place[0] <= start and end <= place[1] for start, end in self.places[number]):
                found.add(number)
            elif hunk.start < place[1] and place[0] < hunk.end:
                return None
        return frozenset(found)

    def place_after(self, place: Span, held: frozenset[int]) -> Span:
        """Where a stretch that holds these hunks is in the text after."""
        grown = [len(hunk.text) - (hunk.end - hunk.start) for hunk in self.hunks]
        earlier = sum(
            grown[number] for number, hunk in enumerate(self.hunks) if number not in held and hunk.end <= place[0]
        )
        return place[0] + earlier, place[1] + earlier + sum(grown[number] for number in held)

    def edited(self, held: frozenset[int]) -> str:
        """The text with these hunks applied."""
        return applied(self.before.text, [hunk for number, hunk in enumerate(self.hunks) if number in held])
