"""Wrong bodies: a needed annotation left out, an annotation changed, the code changed. The builder checks whether Dafny
refuses them: a wrong-looking body may still be proved.
"""

from collections.abc import Sequence
from random import Random

from rlvr_exp.corpora.dafny.layout import BodyLine, body
from rlvr_exp.tasks.dafny.tokens import pieces

SWAPS = {
    "<=": "<", "<": "<=", ">=": ">", ">": ">=", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+",
    "&&": "||", "||": "&&", "true": "false", "false": "true",
}  # fmt: skip


def mutant(lines: Sequence[BodyLine], kind: str, rng: Random) -> str | None:
    """The annotated body, changed in one place; None where this change does not apply."""
    if kind == "missing":
        places = [i for i, line in enumerate(lines) if line.mark == "@"]
        return _without(lines, rng.choice(places)) if places else None
    annotation = kind == "wrong_annotation"
    places = [i for i, line in enumerate(lines) if bool(line.mark) == annotation and _edits(line.text)]
    if not places:
        return None
    place = rng.choice(places)
    changed = BodyLine(rng.choice(_edits(lines[place].text)), lines[place].mark)
    return body([*lines[:place], changed, *lines[place + 1 :]])


def _without(lines: Sequence[BodyLine], place: int) -> str:
    return body([*lines[:place], *lines[place + 1 :]])


def _edits(text: str) -> list[str]:
    """The line with one operator or number replaced, for every possible place."""
    parts = [piece.text for piece in pieces(text)]
    found = []
    for at, part in enumerate(parts):
        other = str(int(part) + 1) if part.isdigit() else SWAPS.get(part)
        if other is not None:
            found.append("".join([*parts[:at], other, *parts[at + 1 :]]))
    return found
