"""What a rule could rewrite to make some hunks: a node around them, or a run of siblings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ast_grep_py import SgNode

from rlvr_exp.corpora.edit_actions.nodes import Span, is_sequence, span

LONGEST = 8_000
"""Characters of what a rule may match."""


@dataclass(frozen=True)
class Target:
    """Nodes from `first` to `last`, which are the same or siblings, and all ancestors but the root, the nearest first."""

    first: SgNode
    last: SgNode
    ancestors: tuple[SgNode, ...]

    @property
    def span(self) -> Span:
        return span(self.first)[0], span(self.last)[1]

    @property
    def is_run(self) -> bool:
        return span(self.first) != span(self.last)


def targets_of(root: SgNode, hunks: Sequence[Sequence[Span]]) -> list[Target]:
    """Of every hunk, by its places: each named node below the root that holds or touches it, and the shortest run of siblings."""
    found: dict[tuple[Span, str], Target] = {}
    for places in hunks:
        for place in places:
            for target in _around(root, place):
                start, end = target.span
                if end - start <= LONGEST:
                    found.setdefault((target.span, target.first.kind()), target)
    return sorted(found.values(), key=lambda target: target.span[1] - target.span[0])


def _around(root: SgNode, place: Span) -> Iterator[Target]:
    ahead: list[tuple[SgNode, tuple[SgNode, ...]]] = [(root, ())]
    while ahead:
        node, above = ahead.pop()
        children = [child for child in node.children() if child.is_named()]
        holding = [child for child in children if _holds(child, place)]
        for child in holding:
            yield Target(child, child, above)
            ahead.append((child, (child, *above)))
        if not holding and (node is root or is_sequence(node)) and (run := _run(children, place)):
            yield Target(*run, above)


def _holds(node: SgNode, place: Span) -> bool:
    start, end = span(node)
    return start <= place[0] and place[1] <= end and start < end


def _run(children: Sequence[SgNode], place: Span) -> tuple[SgNode, SgNode] | None:
    """The first and the last of the fewest siblings that hold a place together; None where not all of it is held."""
    first = [child for child in children if span(child)[0] <= place[0]]
    last = [child for child in children if span(child)[1] >= place[1]]
    return (first[-1], last[0]) if first and last and span(first[-1])[0] < span(last[0])[0] else None
