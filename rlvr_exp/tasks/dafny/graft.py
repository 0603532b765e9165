"""Gold annotations on another author's body, to see whether the body can be proved at all.

The k-th loop gets the clauses of the gold's k-th loop; a statement (assert, lemma call, calc, ghost code) goes where
the code before or after it equals the gold's. Renamed variables count as the gold's. Left out: annotations without such
a place, annotations with a variable that the body does not declare, and annotations that the body already has. A body
that equals the gold's, apart from comments and blanks, gets all of them. Never decides whether the proof holds, and
never changes the code.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from rlvr_exp.tasks.dafny.erase import annotations
from rlvr_exp.tasks.dafny.example import DafnyExample
from rlvr_exp.tasks.dafny.expressions import Unbalanced, Walker, is_name, partners
from rlvr_exp.tasks.dafny.syntax import Declaration, Unreadable, parse
from rlvr_exp.tasks.dafny.tokens import pieces, plain

_CLAUSES = frozenset(("invariant", "decreases", "modifies", "free"))
_BOUNDARIES = frozenset(("{", "}", ";"))


@dataclass(frozen=True)
class Annotation:
    """One annotation of a body. `place`: the index of the code token that follows it."""

    tokens: tuple[str, ...]
    text: str
    place: int

    @property
    def clause(self) -> bool:
        """Whether it belongs to a loop, not a statement."""
        return self.tokens[0] in _CLAUSES


class Body:
    """A body, braces included, taken apart into code and annotations.

    Raises:
        Unbalanced: brackets do not match.
    """

    def __init__(self, text: str, proofs: Collection[str]):
        self.text = text
        found, self._starts = _tokens(text)
        self.code: list[str] = []
        self._places: list[int] = []
        """The index among all tokens of each token of the code."""
        self.annotations: list[Annotation] = []
        at = 0
        for start, stop in annotations(found, proofs):
            self._keep(found, at, start)
            spoken = text[self._starts[start] : self._starts[stop - 1] + len(found[stop - 1])]
            self.annotations.append(Annotation(tuple(found[start:stop]), spoken, len(self.code)))
            at = stop
        self._keep(found, at, len(found))
        self.loops = _loops(self.code)

    def _keep(self, found: Sequence[str], start: int, stop: int) -> None:
        self.code += found[start:stop]
        self._places += range(start, stop)

    @property
    def declared(self) -> list[str]:
        """Names of its variables in their order, without those of annotations."""
        return list(dict.fromkeys(_declared(self.code)))

    def grafted(self, chosen: Sequence[Annotation]) -> str:
        """The text with annotations before the code tokens that they name, each on its own line."""
        parts, at = [], 0
        for one in sorted(chosen, key=lambda one: one.place):
            start = self._starts[self._places[one.place]]
            lead = self.text[self.text.rfind("\n", 0, start) + 1 : start]
            parts += [self.text[at:start], f"\n{one.text}\n" if lead.strip() else f"{one.text}\n{lead}"]
            at = start
        return "".join([*parts, self.text[at:]])


def grafted(written: str, example: DafnyExample) -> str:
    """The written body with the gold's annotations; unchanged where its brackets do not match. A body with the gold's
    code and no further annotations becomes the gold's text."""
    proofs = _proofs(example.gold)
    try:
        own = Body(written, proofs)
    except Unbalanced:
        return written
    gold = Body(plain(example.annotated_body), proofs)
    gold = Body(_renamed(gold, own), proofs)
    if own.code == gold.code and {one.tokens for one in own.annotations} <= {one.tokens for one in gold.annotations}:
        return gold.text
    return own.grafted(list(_Grafting(gold, own).chosen()))


def _renamed(gold: Body, own: Body) -> str:
    """The gold with its variables renamed as in the other body, where both declare equally many variables that the
    other lacks: matched in their order."""
    theirs, ours = (
        [name for name in one.declared if name not in other.declared] for one, other in ((gold, own), (own, gold))
    )
    parts = pieces(gold.text)
    if len(theirs) != len(ours) or {part.text for part in parts} & set(ours):
        return gold.text
    names = dict(zip(theirs, ours, strict=True))
    return "".join(names.get(part.text, part.text) for part in parts)


class _Grafting:
    """The places of the gold's annotations in another body."""

    def __init__(self, gold: Body, own: Body):
        self._gold, self._own = gold, own
        blocks = SequenceMatcher(None, gold.code, own.code, autojunk=False).get_matching_blocks()
        self._same = {block.a + n: block.b + n for block in blocks for n in range(block.size)}
        self._missing = set(gold.declared) - set(own.declared)

    def chosen(self) -> Iterator[Annotation]:
        """The annotations that have a place, in the gold's order."""
        present = {(one.tokens, one.place) for one in self._own.annotations}
        for one in self._gold.annotations:
            place = self._loop(one) if one.clause else self._statement(one)
            if place is None or self._missing & _free(one.tokens):
                self._missing |= set(_declared(one.tokens))
            elif (one.tokens, place) not in present and not self._settled(one, place):
                yield Annotation(one.tokens, one.text, place)

    def _loop(self, one: Annotation) -> int | None:
        """The brace of the loop with the same number."""
        if one.place not in self._gold.loops:
            return None
        number = self._gold.loops.index(one.place)
        found = self._own.loops[number] if number < len(self._own.loops) else -1
        return found if found >= 0 else None

    def _statement(self, one: Annotation) -> int | None:
        before = self._same.get(one.place - 1)
        places = (self._same.get(one.place), None if before is None else before + 1)
        return next((place for place in places if place is not None and self._fits(place, one)), None)

    def _fits(self, place: int, one: Annotation) -> bool:
        """Whether a statement may precede that token."""
        if not 0 < place < len(self._own.code):
            return False
        before, after = self._own.code[place - 1], self._own.code[place]
        if after == "case":
            return before != "{" and self._gold.code[one.place] == "case"
        return before in _BOUNDARIES and after not in ("else", "{")

    def _settled(self, one: Annotation, place: int) -> bool:
        """Whether the loop already has a `decreases`: two would mean something else."""
        own = (other.tokens[0] for other in self._own.annotations if other.place == place)
        return one.tokens[0] == "decreases" and "decreases" in own


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """The tokens of a text and where each starts."""
    found, starts, at = [], [], 0
    for piece in pieces(text):
        if piece.token:
            found.append(piece.text)
            starts.append(at)
        at += len(piece.text)
    return found, starts


def _loops(code: Sequence[str]) -> list[int]:
    """For each loop of a code without annotations the index of its body's brace; -1 where it has none of the usual
    form."""
    walk = Walker(code, partners(code))
    found = []
    for index in (index for index, token in enumerate(code) if token in ("while", "for")):
        stop = walk.past_expression(index + 1)
        if walk.at(stop) in ("to", "downto"):
            stop = walk.past_expression(stop + 1)
        found.append(stop if walk.at(stop) == "{" else -1)
    return found


def _declared(tokens: Sequence[str]) -> Iterator[str]:
    """Names that `var` and `for` declare."""
    for index, token in enumerate(tokens):
        if token not in ("var", "for"):
            continue
        for at in range(index + 1, len(tokens) - 1):
            if tokens[at] in (":=", ":|", ";", "{"):
                break
            if is_name(tokens[at]) and tokens[at - 1] in (token, ",", "(") and tokens[at + 1] not in (">", "<", "."):
                yield tokens[at]


def _free(tokens: Sequence[str]) -> set[str]:
    """Names that an annotation uses and does not bind itself: no members, no bound variables."""
    bound = set(_declared(tokens))
    for index, token in enumerate(tokens):
        if token in ("forall", "exists", "set", "map", "iset", "imap"):
            after = index + 1
            while after < len(tokens) and tokens[after] not in ("::", "|", "{"):
                bound.add(tokens[after])
                after += 1
    return {
        token
        for index, token in enumerate(tokens)
        if is_name(token) and token not in bound and (index == 0 or tokens[index - 1] != ".")
    }


@lru_cache(maxsize=4096)
def _proofs(program: str) -> frozenset[str]:
    """Names of the lemmas and ghost methods of a program: calls of them are annotations. None where it cannot be
    read."""
    try:
        return frozenset(_ghosts(parse(plain(program))))
    except Unreadable:
        return frozenset()


def _ghosts(declarations: Sequence[Declaration]) -> Iterator[str]:
    for one in declarations:
        if one.ghost and one.kind in ("lemma", "method"):
            yield one.name
        yield from _ghosts(one.members or ())
