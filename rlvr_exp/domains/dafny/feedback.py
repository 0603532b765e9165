"""Dafny's errors as the author of an answer reads them.

A verdict's log counts the lines of the judged program. The author of a body never sees that program: the body is part of the
given program, and a writer's body is judged with the reference annotations. The feedback counts the lines of the answer and
quotes the line that an error points to. An error in a reference annotation is told without its text.
"""

from collections.abc import Collection, Iterator, Sequence

from rlvr_exp.domains.dafny.annotations import annotations, proofs_of
from rlvr_exp.domains.dafny.problem import PLACE, DafnyExample
from rlvr_exp.domains.dafny.tokens import Unbalanced, plain, tokens_with_starts

_HIDDEN = "the reference proof fails after this line"


def of_body(feedback: str, example: DafnyExample, written: str, judged: str) -> str:
    """Feedback on a body.

    Args:
        written: the body as its author wrote it.
        judged: the same body, perhaps with reference annotations, which stay hidden.
    """
    program, own = plain(example.program(judged)).split("\n"), written.split("\n")
    first = plain(example.before + example.header + example.spec).count("\n") + 1
    places = _places(written, judged, proofs_of(example.gold))
    found: dict[str, None] = {}
    for line in feedback.splitlines():
        place = PLACE.fullmatch(line)
        number = int(place[2]) - first if place else -1
        if place is None or int(place[2]) > len(program):
            found[line] = None
        elif 0 <= number < len(places):
            at, hidden = places[number]
            found[f"{place[1]}line {at + 1} of the body: {_HIDDEN if hidden else place[3]}\n    {own[at].strip()}"] = (
                None
            )
        else:
            found[f"{place[1]}in the given program: {place[3]}\n    {program[int(place[2]) - 1].strip()}"] = None
    return "\n".join(found)


def _places(written: str, judged: str, proofs: Collection[str]) -> list[tuple[int, bool]]:
    """For each line of the judged body the line of the written one, from 0, and whether it has words that were not written."""
    if written == judged:
        return [(number, False) for number in range(written.count("\n") + 1)]
    theirs, starts = tokens_with_starts(judged)
    mine, own_starts = tokens_with_starts(written)
    try:
        same = _same(_parts(mine, proofs), _parts(theirs, proofs))
    except Unbalanced:
        return []
    at = [None if own is None else written.count("\n", 0, own_starts[own]) for own in same]
    found, token, last = [], 0, 0
    for number in range(judged.count("\n") + 1):
        first = token
        while token < len(starts) and judged.count("\n", 0, starts[token]) == number:
            token += 1
        hidden, lines = None in at[first:token], [line for line in at[first:token] if line is not None]
        found.append((last if hidden or not lines else lines[0], hidden))
        last = lines[-1] if lines else last
    return found


def _parts(words: Sequence[str], proofs: Collection[str]) -> Iterator[tuple[tuple[str, ...], int, bool]]:
    """Tokens of code and annotations, each with the index of its first token and whether it is an annotation."""
    at = 0
    for start, stop in (*annotations(words, proofs), (len(words), len(words))):
        for index in range(at, start):
            yield (words[index],), index, False
        if start < stop:
            yield tuple(words[start:stop]), start, True
        at = stop


def _same(
    mine: Iterator[tuple[tuple[str, ...], int, bool]], theirs: Iterator[tuple[tuple[str, ...], int, bool]]
) -> list[int | None]:
    """For each of their tokens the same token of mine; None in an annotation that is only theirs."""
    own, at, found = list(mine), 0, list[int | None]()
    for words, _, proof in theirs:
        while not proof and at < len(own) and own[at][2]:  # My annotation, which they have elsewhere.
            at += 1
        same = at < len(own) and own[at][0] == words and own[at][2] == proof
        found += [own[at][1] + index if same else None for index in range(len(words))]
        at += same
    return found
