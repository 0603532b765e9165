"""A pattern and its rewrite for a stretch of a program: variables stand for what the edit copies unchanged.

`$A` stands for a node and `$$$A` for several in a row (statements of a body, arguments); equal nodes have one variable.
Names of functions, attributes and keywords stay as they are, since they say what a rule is about.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from string import ascii_uppercase

from ast_grep_py import SgNode

from rlvr_exp.corpora.edit_actions.nodes import (
    Span,
    encloses,
    indentation,
    is_row,
    is_sequence,
    outdented,
    span,
)
from rlvr_exp.corpora.edit_actions.texts import Copied, Key, Text, key_of, plain

_CONSTANT = re.compile(
    r"comment|(?:^|_)string|(?:^|_)char|number|integer|float|"
    r"^(?:int|bool|boolean|null|nil|none|true|false|undefined)(?:_literal)?$|^dotted_name$"
)
"""Kinds of nodes that stay as they are: they say what a rule is about, too."""
NAMED_BY = ("function", "name", "attribute", "property", "field", "method", "key", "operator", "macro", "module_name")
"""Fields of nodes that are names, which are never variables."""


class Generality(IntEnum):
    """What variables may stand for; each includes the following."""

    EVERYTHING = 3
    COMPOSED = 2
    """Nodes that have children."""
    SEQUENCES = 1
    """Several nodes in a row."""
    NOTHING = 0


@dataclass
class Template:
    """Fills in variables, first for the nodes before, then for those after.

    Args:
        unusable: names that the texts use themselves.
    """

    generality: Generality
    copied: Copied
    unusable: str
    _variables: dict[Key, str] = field(default_factory=dict)

    def pattern(self, source: Text, node: SgNode) -> str:
        places = sorted(self._copied(source.text, node))
        return _filled(source.text, span(node), [(place, self._named(key)) for place, key in places])

    def rewrite(self, source: Text, place: Span) -> str:
        return _filled(source.text, place, list(_known(source, place, self._variables)))

    @property
    def names(self) -> list[str]:
        """The variables of the pattern."""
        return list(self._variables.values())

    def _named(self, key: Key) -> str:
        if key not in self._variables:
            marks = "" if key[0] else "$$"
            taken = {name.lstrip("$") for name in self._variables.values()}
            free = (name for name in ascii_uppercase if name not in taken and f"${name}" not in self.unusable)
            name = next(free, "")
            if not name:
                return ""
            self._variables[key] = f"{marks}${name}"
        return self._variables[key]

    def _copied(self, text: str, node: SgNode) -> Iterator[tuple[Span, Key]]:
        """Places below a node that become variables, without overlap."""
        ahead = [node]
        while ahead:
            here = ahead.pop()
            names = {span(found) for name in NAMED_BY if (found := here.field(name))}
            children = [child for child in here.children() if child.is_named()]
            runs, marks = self._runs(text, here, children)
            places = [(span(run[0])[0], span(run[-1])[1]) for run in runs]
            yield from ((place, ("", plain(text, place))) for place in places)
            for child in children:
                key, place = key_of(child, text), span(child)
                if any(encloses(run, place) for run in places):
                    continue
                if self._stands_for(child, key) and place not in names and place not in marks:
                    yield place, key
                elif not _CONSTANT.search(child.kind()):
                    ahead.append(child)

    def _runs(self, text: str, node: SgNode, children: Sequence[SgNode]) -> tuple[list[list[SgNode]], set[Span]]:
        """Rows of children that become one variable, and the places of children that must not become one: two variables
        for several nodes would have no end between them."""
        if not is_sequence(node) or self.generality < Generality.SEQUENCES:
            return [], set()
        runs: list[list[SgNode]] = [[]]
        for child in children:
            key = key_of(child, text)
            follows = runs[-1] and (key_of(runs[-1][-1], text), key) in self.copied.pairs
            if key not in self.copied.nodes:
                runs.append([])
            elif follows or not runs[-1]:
                runs[-1].append(child)
            else:
                runs.append([child])
        marks = {span(other.pop(0)) for one, other in pairwise(runs) if one and other and max(len(one), len(other)) > 1}
        return [run for run in runs if len(run) > 1 or (run and len(run) == len(children))], marks

    def _stands_for(self, node: SgNode, key: Key) -> bool:
        least = Generality.EVERYTHING if node.is_leaf() else Generality.COMPOSED
        may = not (is_row(node) or _CONSTANT.search(node.kind()))
        return may and self.generality >= least and key in self.copied.nodes


def outline(text: str, node: SgNode) -> str:
    """The node with `$$$` for what its bodies, arguments and lists hold: a pattern that no rewrite takes anything from."""
    places, ahead = [], [node]
    while ahead:
        here = ahead.pop()
        children = [child for child in here.children() if child.is_named()]
        if is_sequence(here) and children:
            places.append(((span(children[0])[0], span(children[-1])[1]), "$$$"))
        else:
            ahead += children
    return _filled(text, span(node), places)


def _known(source: Text, place: Span, variables: Mapping[Key, str]) -> Iterator[tuple[Span, str]]:
    """Places of a stretch of the text after whose content a variable stands for, without overlap."""
    ahead = [source.root]
    while ahead:
        here = ahead.pop()
        children = [child for child in here.children() if _meets(child, place)]
        while children:
            run, name = _known_run(source.text, here, children, place, variables)
            if name:
                yield (span(run[0])[0], span(run[-1])[1]), name
            else:
                ahead += run
            children = children[len(run) :]


def _known_run(
    text: str, parent: SgNode, children: Sequence[SgNode], place: Span, variables: Mapping[Key, str]
) -> tuple[Sequence[SgNode], str]:
    """The longest row of nodes, from the first on, that is a variable, with its name; else the first, and no name."""
    first = children[0]
    if not first.is_named() or not encloses(place, span(first)):
        return children[:1], ""
    if is_sequence(parent):
        for count in range(len(children), 0, -1):
            reach = span(first)[0], span(children[count - 1])[1]
            name = variables.get(("", plain(text, reach))) if reach[1] <= place[1] else None
            if name:
                return children[:count], name
    return children[:1], variables.get(key_of(first, text), "")


def _meets(node: SgNode, place: Span) -> bool:
    start, end = span(node)
    return start < place[1] and place[0] < end


def _filled(text: str, place: Span, variables: Sequence[tuple[Span, str]]) -> str:
    """The stretch with variables in their places, at the margin of its line."""
    start, end = place
    cuts = sorted((found for found in variables if found[1]), key=lambda found: found[0])
    ends = [(start, start), *(at for at, _ in cuts), (end, end)]
    parts = [text[one[1] : other[0]] for one, other in pairwise(ends)]
    names = [*(name for _, name in cuts), ""]
    written = "".join(part + name for part, name in zip(parts, names, strict=True))
    return outdented(written, indentation(text, start))
