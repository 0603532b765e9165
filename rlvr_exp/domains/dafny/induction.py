"""Lemmas without automatic induction.

Dafny adds an induction hypothesis to lemmas on its own, and to ghost methods. If the requirements of a lemma call something, the
hypothesis can prove false (dafny#6366). `{:induction false}` switches it off for one lemma, `--manual-lemma-induction` for all of them.
"""

from collections.abc import Callable

from rlvr_exp.domains.dafny.guards import labelled
from rlvr_exp.domains.dafny.syntax import Declaration, parse
from rlvr_exp.domains.dafny.tokens import Walker, is_name, partners, pieces

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


def calls_in_requirements(one: Declaration) -> bool:
    """Return whether a `requires` clause may call a function or take a member of a value.

    The unsound induction hypothesis of dafny#6366 lets such calls be used for values outside of their types.
    """
    for clause in one.clauses:
        if clause.word == "requires":
            for before, word, after in zip(("", *clause.text), clause.text, (*clause.text[1:], ""), strict=False):
                if (
                    word == "."
                    or (word == "(" and (is_name(before or " ") or before in (")", "]", ">")))
                    or after == "#"
                ):
                    return True
    return False
