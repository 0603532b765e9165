"""What an edit may copy: the nodes of a text by their kind and by their content as it would be written at the margin."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ast_grep_py import SgNode

from rlvr_exp.corpora.edit_actions.nodes import Span, descendants, encloses, indentation, is_sequence, outdented, span

Key = tuple[str, str]
"""A node's kind, or empty for several nodes, and its text without its line's indentation."""


@dataclass(frozen=True)
class Text:
    """A text and the nodes of its tree that may be copied from or to it, in order."""

    text: str
    root: SgNode
    keys: Sequence[tuple[Span, Key]]
    pairs: Sequence[tuple[Span, tuple[Key, Key]]]
    """Siblings of which one follows the other."""

    @classmethod
    def of(cls, text: str, root: SgNode) -> "Text":
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
