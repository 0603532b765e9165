"""Annotations of bodies: removed from the tokens and from the text, and grafted onto another author's body.

From a function's body: `assert e;`, `calc {}`, `reveal f();` and calls of lemmas before an expression. From a method's:
these as statements, `ghost var`, forall statements, lemma calls, and the clauses of loops. Compiled code, or a function's meaning,
stays, so two bodies that are equal without proofs do the same.

In texts (`erased`), comments between annotations and the layout of the rest are kept; a line of annotations alone is removed
with its end. Only the braces of a body that is all proof stay.

Grafted annotations show whether a body can be proved at all. The k-th loop gets the clauses of the gold's k-th loop; a
statement goes where the code before or after it equals the gold's. Renamed variables count as the gold's. Left out:
annotations without such a place, annotations with a variable that the body does not declare, and annotations that the body
already has. A body that equals the gold's, apart from comments and blanks, gets all of them. Code is never changed.

Dafny decides whether a proof holds.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise, takewhile

from rlvr_exp.domains.dafny.problem import DafnyExample
from rlvr_exp.domains.dafny.syntax import Unreadable, parse, qualified
from rlvr_exp.domains.dafny.tokens import (
    COMPREHENSIONS,
    Unbalanced,
    Walker,
    is_name,
    partners,
    pieces,
    places,
    plain,
    tokens,
    tokens_with_starts,
)

_STARTS = frozenset(("", "{", "}", ";", "then", "else", "=>", "(", ",", ":=", ":|"))
_BEFORE_STATEMENTS = frozenset(("", "{", "}", ";", "=>", ":"))
_ASSIGNS = (":=", ":|")
_LOOP_CLAUSES = frozenset(("invariant", "decreases", "modifies"))


def function_body(tokens: Sequence[str]) -> tuple[str, ...]:
    """A function's meaning: its body without proofs."""
    walk = Walker(tokens, partners(tokens))
    kept: list[str] = []
    index = 0
    while index < walk.end:
        stop = _past_proof(walk, index)
        if stop is None:
            kept.append(walk.tokens[index])
        index = index + 1 if stop is None else stop
    return tuple(kept)


def method_body(tokens: Sequence[str], proofs: Collection[str], runs: Collection[str] = ()) -> tuple[str, ...]:
    """A method's code: its body without annotations.

    Args:
        proofs: the names of lemmas and ghost methods.
        runs: the names of compiled methods: a ghost variable that takes the result of such a method is code.
    """
    kept: list[str] = []
    at = 0
    for start, stop in annotations(tokens, proofs, runs):
        kept += tokens[at:start]
        at = stop
    return (*kept, *tokens[at:])


def annotations(
    tokens: Sequence[str], proofs: Collection[str], runs: Collection[str] = ()
) -> Iterator[tuple[int, int]]:
    """The first and the next index of each annotation of a method's body, in order; `method_body` is the rest.

    A ghost variable whose name the code has as well is code, since it may take the place of another variable there.
    """
    walk = Walker(tokens, partners(tokens))
    ghosts = [
        _Ghost(name, index, _end_of_scope(walk, index))
        for index, pair in enumerate(pairwise(tokens))
        if pair == ("ghost", "var")
        for name in _names(walk, index + 2)
    ]
    while True:
        found = list(_spans(walk, ghosts, proofs, runs))
        inside = {index for start, stop in found for index in range(start, stop)}
        code = {token for index, token in enumerate(tokens) if index not in inside}
        left = [ghost for ghost in ghosts if ghost.name not in code]
        if len(left) == len(ghosts):
            return iter(found)
        ghosts = left


@dataclass(frozen=True)
class _Ghost:
    """A ghost variable, with the indices of its declaration and of its scope's end."""

    name: str
    start: int
    stop: int


def _spans(
    walk: Walker, ghosts: Collection[_Ghost], proofs: Collection[str], runs: Collection[str]
) -> Iterator[tuple[int, int]]:
    index = 0
    while index < walk.end:
        past = _past_ghosts(walk, index, ghosts)
        if past is not None and set(walk.tokens[index:past]) & set(runs):
            past = None
        elif past is None:
            past = _past_statement(walk, index, proofs, runs)
        if past is not None:
            yield index, past
        index = index + 1 if past is None else past


def _past_proof(walk: Walker, index: int) -> int | None:
    """The index after a proof that precedes an expression; None if none begins."""
    if walk.at(index - 1) not in _STARTS and index:
        return None
    if walk.at(index) in ("assert", "reveal", "calc"):
        return _past_argument(walk, index)
    if not is_name(walk.at(index)) or walk.at(index - 1) in (":=", ":|", "(", ","):
        return None
    return _past_call(walk, index)


def _past_argument(walk: Walker, index: int) -> int | None:
    """The index after an assert, reveal or calc."""
    if walk.at(index) == "calc":
        return _past_braces(walk, index)
    stop = walk.past_expression(index + 1)
    if walk.at(stop) == "by":
        return _past_braces(walk, stop)
    return stop + 1 if walk.at(stop) == ";" else None


def _past_braces(walk: Walker, index: int) -> int | None:
    """The index after the next braces, attributes skipped."""
    while index < walk.end and (walk.at(index) != "{" or walk.is_attribute(index)):
        if walk.at(index) in (";", "}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return walk.closes[index] + 1 if index < walk.end else None


def _past_call(walk: Walker, index: int) -> int | None:
    """The index after `name.name(arguments);`. Inside a function it can only call a lemma."""
    while is_name(walk.at(index)) and walk.at(index + 1) == ".":
        index += 2
    if not is_name(walk.at(index)) or walk.at(index + 1) != "(":
        return None
    close = walk.closes[index + 1]
    return close + 2 if walk.at(close + 1) == ";" else None


def _past_statement(walk: Walker, index: int, proofs: Collection[str], runs: Collection[str]) -> int | None:
    token, before = walk.at(index), walk.at(index - 1) if index else ""
    if token in _LOOP_CLAUSES and before != ".":
        stop = walk.past_expression(index + 1)
        return stop + 1 if walk.at(stop) == ";" else stop
    if before not in _BEFORE_STATEMENTS:
        return None
    if token in ("assert", "reveal", "calc"):
        return _past_argument(walk, index)
    if token == "forall":
        return _past_forall(walk, index, proofs)
    if token == "label":  # A label that a `break` or `continue` names is code, not only a mark for `old@`.
        name = walk.at(index + 1)
        left = any(word in ("break", "continue") and label == name for word, label in pairwise(walk.tokens))
        return None if left else index + 3
    called = _called(walk, index)
    reveals = called.startswith("reveal_") and called not in runs
    return _past_call(walk, index) if called in proofs or reveals else None


def _called(walk: Walker, index: int) -> str:
    """The last of the names that dots join."""
    while walk.at(index + 1) == ".":
        index += 2
    return walk.at(index)


def _past_forall(walk: Walker, index: int, proofs: Collection[str]) -> int | None:
    """The index after a forall statement with an ensures clause, or whose body is one call of a proof. A forall that assigns is
    code."""
    stop = start = walk.past_expression(index + 1)
    while walk.at(stop) == "ensures":
        stop = walk.past_expression(stop + 1)
        stop += walk.at(stop) == ";"
    if walk.at(stop) != "{":
        return None
    close = walk.closes[stop]
    calls = _called(walk, stop + 1) in proofs and _past_call(walk, stop + 1) == close
    return close + 1 if stop > start or calls else None


def _past_ghosts(walk: Walker, index: int, ghosts: Collection[_Ghost]) -> int | None:
    """The index after a statement that declares these ghost variables or assigns to them alone."""
    if (walk.at(index - 1) if index else "") not in _BEFORE_STATEMENTS:
        return None
    if walk.at(index) == "ghost" and walk.at(index + 1) == "var":
        seen = {ghost.name for ghost in ghosts if ghost.start == index}
        targets = _names(walk, index + 2)
    else:
        seen = {ghost.name for ghost in ghosts if ghost.start < index < ghost.stop}
        at, targets = index, [walk.at(index)]
        while walk.at(at + 1) == ",":
            at += 2
            targets.append(walk.at(at))
        if walk.at(at + 1) not in _ASSIGNS:
            return None
    if not targets or not seen.issuperset(targets):
        return None
    while index < walk.end and walk.at(index) != ";":
        if walk.at(index) in ("}", ")", "]"):
            return None
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index + 1


def _names(walk: Walker, index: int) -> list[str]:
    """The names in a list `a: T, b := ...` of declared variables; none if it has a pattern."""
    found: list[str] = []
    angles, due = 0, True
    while index < walk.end and walk.at(index) not in (*_ASSIGNS, ";"):
        token = walk.at(index)
        if due and not walk.is_attribute(index):
            if not is_name(token) or walk.at(index + 1) not in (",", ":", ";", *_ASSIGNS):
                return []
            found.append(token)
        due = (due and walk.is_attribute(index)) or (token == "," and not angles)
        angles += (token == "<") - (token == ">")
        index = walk.closes[index] + 1 if token in ("(", "[", "{") else index + 1
    return found


def _end_of_scope(walk: Walker, index: int) -> int:
    """The brace that closes the block of a statement, or the next case."""
    while index < walk.end and walk.at(index) not in ("}", "case"):
        index = walk.closes[index] + 1 if walk.at(index) in ("{", "(", "[") else index + 1
    return index


_BLANKS, _ENDS = " \t", "\r\n"
Span = tuple[int, int]


def erased(body: str, proofs: Collection[str], goes: Callable[[str], bool] = lambda comment: False) -> str:
    """A method's body without annotations, braces included.

    Args:
        proofs: names of the program's lemmas and ghost methods.
        goes: decides by the text of a comment whether it is part of annotations.

    Raises:
        Unbalanced: brackets do not match.
    """
    found = places(body)
    spans = [(found[a][0], found[b - 1][1]) for a, b in annotations(tokens(plain(body)), proofs)]
    at = 0
    for piece in pieces(body):
        comment = piece.text.rstrip()
        within = any(start <= at < stop for start, stop in spans)
        if not piece.token and piece.text[0] == "/" and not within and goes(comment):
            spans.append((at, at + len(comment)))
        at += len(piece.text)
    return without_spans(body, spans)


def without_spans(text: str, spans: Iterable[Span]) -> str:
    """The text without these parts of it. A line that has nothing else goes too."""
    joined: list[Span] = []
    for start, stop in sorted(spans):  # Spans with only blanks between them are one.
        if joined and not text[joined[-1][1] : start].strip(_BLANKS):
            start = joined.pop()[0]
        joined.append((start, stop))
    parts, at = [], 0
    for start, stop in joined:
        start, stop = _widened(text, start, stop)
        parts.append(text[at:start])
        at = stop
    return "".join(parts) + text[at:]


def hollow(body: str) -> str:
    """The braces of a body, the last with its indentation."""
    line = body[max(body.rfind(end) for end in _ENDS) + 1 :]
    if len(line) == len(body):
        return "{}"
    indent = line[: len(line) - len(line.lstrip(_BLANKS))]
    return "{" + ("\r\n" if "\r\n" in body else "\n") + indent + "}"


def _widened(body: str, start: int, stop: int) -> Span:
    """The span with left-over blanks: its complete line, the blanks after it at the start of a line or before it at the end."""
    left, right = start, stop
    while left and body[left - 1] in _BLANKS:
        left -= 1
    while right < len(body) and body[right] in _BLANKS:
        right += 1
    first, last = not left or body[left - 1] in _ENDS, right == len(body) or body[right] in _ENDS
    if first and last:
        return left, right + (2 if body.startswith("\r\n", right) else 1)
    return (left, stop) if last else (start, right)


_BOUNDARIES = frozenset(("{", "}", ";"))


@dataclass(frozen=True)
class Annotation:
    """One annotation of a body. `place`: the index of the code token that follows it."""

    tokens: tuple[str, ...]
    text: str
    place: int


class Body:
    """A body, braces included, taken apart into code and annotations.

    Raises:
        Unbalanced: brackets do not match.
    """

    def __init__(self, text: str, proofs: Collection[str]):
        self.text = text
        found, starts = tokens_with_starts(text)
        self.code: list[str] = []
        self._starts: list[int] = []
        """The offset of each token of the code."""
        self.annotations: list[Annotation] = []
        at = 0
        for start, stop in (*annotations(found, proofs), (len(found), len(found))):
            self.code += found[at:start]
            self._starts += starts[at:start]
            if start < stop:
                spoken = text[starts[start] : starts[stop - 1] + len(found[stop - 1])]
                self.annotations.append(Annotation(tuple(found[start:stop]), spoken, len(self.code)))
            at = stop
        self.declared = list(dict.fromkeys(_declared(self.code)))
        """Names of its variables in their order, without those of annotations."""
        self.loops: list[int] = []
        """For each loop the index of its body's brace in the code; -1 if it has none of the usual form."""
        walk = Walker(self.code, partners(self.code))
        for index in (index for index, token in enumerate(self.code) if token in ("while", "for")):
            stop = walk.past_expression(index + 1)
            if walk.at(stop) in ("to", "downto"):
                stop = walk.past_expression(stop + 1)
            self.loops.append(stop if walk.at(stop) == "{" else -1)

    def grafted(self, chosen: Iterable[Annotation]) -> str:
        """The text with annotations before the code tokens that they name, each on its own line."""
        parts, at = [], 0
        for one in sorted(chosen, key=lambda one: one.place):
            start = self._starts[one.place]
            lead = self.text[self.text.rfind("\n", 0, start) + 1 : start]
            parts += [self.text[at:start], f"\n{one.text}\n" if lead.strip() else f"{one.text}\n{lead}"]
            at = start
        return "".join([*parts, self.text[at:]])


def grafted(written: str, example: DafnyExample) -> str:
    """The written body with the gold's annotations; unchanged if its brackets do not match. A body with the gold's
    code and no further annotations becomes the gold's text."""
    proofs = proofs_of(example.gold)
    try:
        own = Body(written, proofs)
    except Unbalanced:
        return written
    gold = Body(plain(example.annotated_body), proofs)
    # If each body declares as many variables that the other lacks, the gold's get the other names, in their order.
    theirs = [name for name in gold.declared if name not in own.declared]
    ours = [name for name in own.declared if name not in gold.declared]
    parts = [piece.text for piece in pieces(gold.text)]
    if len(theirs) == len(ours) and not set(parts) & set(ours):
        names = dict(zip(theirs, ours, strict=True))
        gold = Body("".join(names.get(part, part) for part in parts), proofs)
    if own.code == gold.code and {one.tokens for one in own.annotations} <= {one.tokens for one in gold.annotations}:
        return gold.text
    return own.grafted(_placed(gold, own))


def _placed(gold: Body, own: Body) -> Iterator[Annotation]:
    """The gold's annotations that have a place in the other body, in the gold's order."""
    blocks = SequenceMatcher(None, gold.code, own.code, autojunk=False).get_matching_blocks()
    same = {block.a + n: block.b + n for block in blocks for n in range(block.size)}
    missing = set(gold.declared) - set(own.declared)
    present = {(one.tokens, one.place) for one in own.annotations}
    measured = {one.place for one in own.annotations if one.tokens[0] == "decreases"}

    def fits(place: int, one: Annotation) -> bool:
        """Whether a statement may precede that token."""
        if not 0 < place < len(own.code):
            return False
        before, after = own.code[place - 1], own.code[place]
        if after == "case":
            return before != "{" and gold.code[one.place] == "case"
        return before in _BOUNDARIES and after not in ("else", "{")

    for one in gold.annotations:
        place: int | None = None
        if one.tokens[0] not in _LOOP_CLAUSES:
            before = same.get(one.place - 1)
            options = (same.get(one.place), None if before is None else before + 1)
            place = next((option for option in options if option is not None and fits(option, one)), None)
        elif one.place in gold.loops:  # The brace of the loop with the same number.
            number = gold.loops.index(one.place)
            place = own.loops[number] if number < len(own.loops) and own.loops[number] >= 0 else None
        if place is None or missing & _free(one.tokens):
            missing |= set(_declared(one.tokens))
        # Two `decreases` of one loop would mean something else.
        elif (one.tokens, place) not in present and not (one.tokens[0] == "decreases" and place in measured):
            yield replace(one, place=place)


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
        if token in COMPREHENSIONS:
            bound.update(takewhile(lambda word: word not in ("::", "|", "{"), tokens[index + 1 :]))
    return {
        token
        for index, token in enumerate(tokens)
        if is_name(token) and token not in bound and (index == 0 or tokens[index - 1] != ".")
    }


@lru_cache(maxsize=4096)
def proofs_of(program: str) -> frozenset[str]:
    """Names of the lemmas and ghost methods of a program: calls of them are annotations. None if it cannot be read."""
    try:
        every = qualified(parse(plain(program)))
        return frozenset(one.name for _, one in every if one.ghost and one.kind in ("lemma", "method"))
    except Unreadable:
        return frozenset()
