"""Lemmas without automatic induction, and programs with loops: both decide how Dafny is asked to verify a candidate.

Dafny adds an induction hypothesis to lemmas on its own, and to ghost methods. With some recursive types that proves false
(dafny#6366). `{:induction false}` switches it off for one lemma, `--manual-lemma-induction` for all of them.
"""

from collections.abc import Callable
from itertools import pairwise

from rlvr_exp.domains.dafny.guards import labelled
from rlvr_exp.domains.dafny.syntax import parse
from rlvr_exp.domains.dafny.tokens import Walker, partners, pieces

_OFF = " {:induction false}"


def manual_induction(text: str, wanted: Callable[[str], bool]) -> str:
    """Return the program without automatic induction in the lemmas whose labels are wanted. Each line keeps its number.

    Attributes of these lemmas that ask for induction are blanked out, `{:induction}` of their quantifiers as well.

    Args:
        text: from `tokens.plain`.
        wanted: called with each label of `guards.labelled`.

    Raises:
        Unreadable: the program cannot be parsed.
    """
    declarations = parse(text)
    parts = pieces(text)
    places = [index for index, piece in enumerate(parts) if piece.token]
    words = [parts[place].text for place in places]
    walk = Walker(words, partners(words))
    shown = [piece.text for piece in parts]
    for label, one in labelled(declarations):
        if one.where is None or one.kind not in ("lemma", "method") or not one.ghost or not wanted(label):
            continue
        for index in range(one.where.start, one.where.closes):
            stop = _attribute_end(walk, index)
            for place in places[index:stop]:
                shown[place] = " " * len(shown[place])
        shown[places[one.where.keyword]] += _OFF
    return "".join(shown)


def _attribute_end(walk: Walker, index: int) -> int:
    """The index after an attribute on induction that begins there; the same index if there is none."""
    if walk.is_attribute(index) and walk.at(index + 2).startswith("induction"):
        return walk.closes[index] + 1
    if walk.at(index) == "@" and walk.at(index + 1).startswith("Induction"):
        return walk.past_at_attribute(index)
    return index


def has_loops(text: str) -> bool:
    """Return whether the program has a `while` or a `for` statement."""
    words = [piece.text for piece in pieces(text) if piece.token]
    return any(word in ("while", "for") and before != "." for before, word in pairwise(["", *words]))
