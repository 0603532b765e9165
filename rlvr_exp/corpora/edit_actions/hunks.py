"""The difference of two syntax trees as hunks: stretches of the text before, each with the text that takes its place.

Children of two nodes of one kind are aligned: equal ones first, then, between them, those of one kind whose texts are
alike. What differs in between, blanks too, is a hunk, so that all hunks together always make the text after.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ast_grep_py import SgNode
from rapidfuzz import fuzz

from rlvr_exp.corpora.edit_actions.nodes import Span, span

ALIKE = 45.0
"""RapidFuzz's ratio from which on two nodes of one kind count as the same node, edited."""
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
    """In order, without overlap; none where the texts are equal."""
    found: list[Hunk] = []
    ahead = [(roots, (0, len(before)), (0, len(after)))]
    while ahead:
        (old, new), (at, end), (to, end_after) = ahead.pop()
        for one, other in _aligned(old.children(), new.children()):
            place, place_after = span(one), span(other)
            found.append(_trimmed(before, (at, place[0]), after[to : place_after[0]]))
            if _is_edited(one, other):
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
    """The hunk without what both texts begin and end with."""
    start, end = place
    most = min(end - start, len(text))
    head = 0
    while head < most and before[start + head] == text[head]:
        head += 1
    tail = 0
    while tail < most - head and before[end - 1 - tail] == text[len(text) - 1 - tail]:
        tail += 1
    return Hunk(start + head, end - tail, text[head : len(text) - tail])


def _is_edited(one: SgNode, other: SgNode) -> bool:
    """Whether two aligned nodes differ in parts, so that their children are aligned, too."""
    if one.is_leaf() or other.is_leaf():
        return False
    texts = one.text(), other.text()
    return texts[0] != texts[1] and _ratio(*texts) >= ALIKE


def _aligned(old: Sequence[SgNode], new: Sequence[SgNode]) -> Iterator[tuple[SgNode, SgNode]]:
    ours, theirs = ([(node.kind(), node.text()) for node in nodes] for nodes in (old, new))
    for tag, i, i2, j, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(old[i:i2], new[j:j2], strict=True)
        elif tag == "replace":
            yield from _paired(old[i:i2], new[j:j2])


def _paired(old: Sequence[SgNode], new: Sequence[SgNode]) -> list[Pair]:
    """Nodes between equal ones, in order: all of them where their kinds agree, else the pairs that are alike most."""
    if [node.kind() for node in old] == [node.kind() for node in new]:
        return list(zip(old, new, strict=True))
    if len(old) * len(new) > MOST_PAIRS:
        return []
    best: list[list[tuple[float, list[Pair]]]] = [[(0.0, [])] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            choices = [best[i][j + 1], best[i + 1][j]]
            if score := _alike(one, other):
                total, pairs = best[i][j]
                choices.append((total + score, [*pairs, (one, other)]))
            best[i + 1][j + 1] = max(choices, key=lambda choice: choice[0])
    return best[-1][-1][1]


def _alike(one: SgNode, other: SgNode) -> float:
    if one.kind() != other.kind() or not one.is_named():
        return 0.0
    score = _ratio(one.text(), other.text())
    return score if score >= ALIKE else 0.0


def _ratio(one: str, other: str) -> float:
    return fuzz.ratio(one[:COMPARED], other[:COMPARED])
